// distance on the GPU: the search of search.py, one warp per pair of elements. Bounds only save
// work; what is measured, and which of several is taken, does not depend on the order.
#include "geometry/boxes.cuh"
#include "geometry/triangles.cuh"
#include "geometry/winding.cuh"

typedef unsigned long long u64;

const unsigned ALL = 0xffffffffu;
const u64 NONE = ~0ull;
#define INFINITE DISTANCE_INFINITY

struct Elements {
    const double* vertices;
    const int* faces;
    const i64 *vertex_starts, *face_starts;
    const double* boxes;
    const i64* cluster_starts;
    const double* clusters;
    const signed char* side;
    const int* label;
};

// A corner of a face.
__device__ inline Vec corner_of(const Elements& e, i64 v0, i64 face, int k) {
    return corner(e.vertices, v0 + e.faces[3 * face + k]);
}

__device__ inline double gap(double low_a, double high_a, double low_b, double high_b,
                             double slack) {
    const double forth = low_b - high_a, back = low_a - high_b;
    const double wide = (forth > back ? forth : back) - slack;
    return wide > 0.0 ? wide : 0.0;
}

// A lower bound of the squared distance of two boxes, xmin .. zmax.
__device__ inline double bound(const double* a, const double* b, double slack) {
    const double x = gap(a[0], a[3], b[0], b[3], slack), y = gap(a[1], a[4], b[1], b[4], slack),
                 z = gap(a[2], a[5], b[2], b[5], slack);
    return x * x + y * y + z * z;
}

__device__ inline void box_of(Vec p, Vec q, Vec r, double* box) {
    box[0] = min3(p.x, q.x, r.x);
    box[1] = min3(p.y, q.y, r.y);
    box[2] = min3(p.z, q.z, r.z);
    box[3] = max3(p.x, q.x, r.x);
    box[4] = max3(p.y, q.y, r.y);
    box[5] = max3(p.z, q.z, r.z);
}

__device__ inline double min_of_warp(double value) {
    for (int away = 16; away > 0; away /= 2) {
        const double other = __shfl_xor_sync(ALL, value, away);
        value = other < value ? other : value;
    }
    return value;
}

__device__ inline u64 first_of_warp(u64 key) {
    for (int away = 16; away > 0; away /= 2) {
        const u64 other = __shfl_xor_sync(ALL, key, away);
        key = other < key ? other : key;
    }
    return key;
}

// An upper bound of the squared distance: that of the corner of a nearest to the box of b and the
// corner of b nearest to that.
__device__ double guess(const Elements& e, i64 a, i64 b, int lane) {
    const double* box = e.boxes + 6 * b;
    double best = INFINITE;
    Vec mine = {0.0, 0.0, 0.0};
    for (i64 f = e.face_starts[a] + lane; f < e.face_starts[a + 1]; f += 32) {
        const Vec p = corner_of(e, e.vertex_starts[a], f, 0);
        const double point[6] = {p.x, p.y, p.z, p.x, p.y, p.z};
        const double d2 = bound(point, box, 0.0);
        if (d2 < best) {
            best = d2;
            mine = p;
        }
    }
    const double nearest = min_of_warp(best);
    const int winner = __ffs(__ballot_sync(ALL, best == nearest)) - 1;
    mine = {__shfl_sync(ALL, mine.x, winner), __shfl_sync(ALL, mine.y, winner),
            __shfl_sync(ALL, mine.z, winner)};
    best = INFINITE;
    for (i64 f = e.face_starts[b] + lane; f < e.face_starts[b + 1]; f += 32) {
        const Vec r = corner_of(e, e.vertex_starts[b], f, 0) - mine;
        const double d2 = dot(r, r);
        best = d2 < best ? d2 : best;
    }
    return min_of_warp(best);
}

// The first vertex of a connected part of an element that is inside another, closed one; or -1.
__device__ i64 vertex_inside(const Elements& e, i64 inner, i64 outer, int lane) {
    if (e.side[outer] == 0) return -1;
    const i64 v0 = e.vertex_starts[inner], stop = e.vertex_starts[inner + 1];
    const i64 w0 = e.vertex_starts[outer];
    const double* box = e.boxes + 6 * outer;
    for (i64 start = v0; start < stop; start += 32) {
        const i64 v = start + lane;
        bool may = v < stop && e.label[v] == v - v0;
        if (may) {
            const Vec p = corner(e.vertices, v);
            may = box[0] < p.x && p.x < box[3] && box[1] < p.y && p.y < box[4] &&
                  box[2] < p.z && p.z < box[5];
        }
        for (unsigned todo = __ballot_sync(ALL, may); todo; todo &= todo - 1) {
            const i64 candidate = start + __ffs(todo) - 1;
            const Vec p = corner(e.vertices, candidate);
            int turns = 0;
            for (i64 f = e.face_starts[outer] + lane; f < e.face_starts[outer + 1]; f += 32)
                turns += winding_of(p, corner_of(e, w0, f, 0), corner_of(e, w0, f, 1),
                                    corner_of(e, w0, f, 2));
            for (int away = 16; away > 0; away /= 2) turns += __shfl_xor_sync(ALL, turns, away);
            if (turns * e.side[outer] > 0) return candidate;
        }
    }
    return -1;
}

// distance_measure: distance and closest points of pairs of elements.            (search.measure)
// warp     one pair; lanes: the pairs of triangles of two clusters
// writes   measures: distance, point of a, point of b; infinite beyond the limit
extern "C" __global__ void __launch_bounds__(128) distance_measure(
    const i64* rows_a, const i64* rows_b, i64 n, double limit, double rounding, double beyond,
    const double* vertices, const int* faces, const i64* vertex_starts, const i64* face_starts,
    const double* boxes, const i64* cluster_starts, const double* clusters,
    const signed char* side, const int* label, double* measures) {
    const i64 pair = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (pair >= n) return;
    const Elements e = {vertices, faces,    vertex_starts, face_starts, boxes, cluster_starts,
                        clusters, side, label};
    const i64 a = rows_a[pair], b = rows_b[pair], va = vertex_starts[a], vb = vertex_starts[b];
    const double *box_a = boxes + 6 * a, *box_b = boxes + 6 * b;
    double slack = 0.0;
    for (int axis = 0; axis < 3; ++axis)
        slack += max3(box_a[3 + axis], box_b[3 + axis], box_a[3 + axis]) -
                 min3(box_a[axis], box_b[axis], box_a[axis]);
    slack *= rounding;
    double best = limit * limit * beyond, mine = INFINITE;
    u64 key = NONE;  // triangle of a, triangle of b
    if (bound(box_a, box_b, slack) <= best) {
        double near = sqrt(guess(e, a, b, lane)) + slack;
        near *= near;
        best = near < best ? near : best;
        for (i64 c = cluster_starts[a]; c < cluster_starts[a + 1]; ++c) {
            if (bound(clusters + 6 * c, box_b, slack) > best) continue;
            const i64 first_a = face_starts[a] + (c - cluster_starts[a]) * CLUSTER;
            for (i64 start = cluster_starts[b]; start < cluster_starts[b + 1]; start += 32) {
                const i64 d = start + lane;
                const bool may = d < cluster_starts[b + 1] &&
                                 bound(clusters + 6 * c, clusters + 6 * d, slack) <= best;
                for (unsigned todo = __ballot_sync(ALL, may); todo; todo &= todo - 1) {
                    const i64 other = start + __ffs(todo) - 1;
                    const i64 g = face_starts[b] + (other - cluster_starts[b]) * CLUSTER + lane % 8;
                    for (i64 f = first_a + lane / 8; f < first_a + CLUSTER; f += 4) {
                        if (f >= face_starts[a + 1] || g >= face_starts[b + 1]) continue;
                        const Vec p = corner_of(e, va, f, 0), q = corner_of(e, va, f, 1),
                                  r = corner_of(e, va, f, 2), u = corner_of(e, vb, g, 0),
                                  v = corner_of(e, vb, g, 1), w = corner_of(e, vb, g, 2);
                        double one[6], two[6];
                        box_of(p, q, r, one);
                        box_of(u, v, w, two);
                        if (bound(one, two, slack) > best) continue;
                        double d2 = closest_of_triangles(p, q, r, u, v, w).d2;
                        if (d2 <= slack * slack) d2 = 0.0;  // they meet within rounding
                        const u64 at = (u64)(f - face_starts[a]) << 32 | (u64)(g - face_starts[b]);
                        if (d2 < mine || (d2 == mine && at < key)) {
                            mine = d2;
                            key = at;
                        }
                    }
                    const double lowest = min_of_warp(mine);
                    best = lowest < best ? lowest : best;
                }
            }
            if (best == 0.0 && min_of_warp(mine) == 0.0) break;  // what follows comes later in the order
        }
    }
    const double d2 = min_of_warp(mine);
    key = first_of_warp(mine == d2 ? key : NONE);
    double distance = sqrt(d2);
    Vec on_a = {0.0, 0.0, 0.0}, on_b = on_a;
    if (d2 > 0.0 && bound(box_a, box_b, 0.0) == 0.0) {
        i64 v = vertex_inside(e, a, b, lane);
        if (v < 0) v = vertex_inside(e, b, a, lane);
        if (v >= 0) {
            distance = 0.0;
            key = NONE;
            on_a = on_b = corner(vertices, v);
        }
    }
    if (lane > 0) return;
    if (key != NONE) {
        const i64 f = face_starts[a] + (i64)(key >> 32), g = face_starts[b] + (i64)(key & ALL);
        const Closest found = closest_of_triangles(
            corner_of(e, va, f, 0), corner_of(e, va, f, 1), corner_of(e, va, f, 2),
            corner_of(e, vb, g, 0), corner_of(e, vb, g, 1), corner_of(e, vb, g, 2));
        on_a = found.a;
        on_b = found.b;
    }
    double* out = measures + 7 * pair;
    out[0] = distance <= limit ? distance : INFINITE;
    out[1] = on_a.x;
    out[2] = on_a.y;
    out[3] = on_a.z;
    out[4] = on_b.x;
    out[5] = on_b.y;
    out[6] = on_b.z;
}

// Whether points are inside an element, and how far from its surface: the rules of
// point_in_solid.py, each by a whole warp.
#pragma once
#include "geometry/boxes.cuh"
#include "geometry/triangles.cuh"
#include "geometry/winding.cuh"

const unsigned ALL = 0xffffffffu;
#define INFINITE __longlong_as_double(0x7FF0000000000000ll)

// The elements: `Solids` of solids.py.
struct Solids {
    const double* vertices;
    const int* faces;
    const i64* vertex_starts;
    const i64* face_starts;
    const double* boxes;
    const signed char* side;
    const int* label;
    const int* parts;
    const i64* cluster_starts;
    const double* clusters;
};

// Which face a lane looks at: four clusters at once, eight lanes each, taken out of `hits`, which
// has a bit for each of the 32 clusters from `start` on. The end of the faces if none.
__device__ inline i64 face_of_lane(
    unsigned& hits, i64 start, i64 first_cluster, i64 f0, i64 f1, int lane) {
    int mine = -1;
    for (int k = 0; k < 32 / CLUSTER && hits; ++k) {
        int bit = __ffs(hits) - 1;
        hits &= hits - 1;
        if (lane / CLUSTER == k) mine = bit;
    }
    i64 f = f0 + (start - first_cluster + mine) * CLUSTER + lane % CLUSTER;
    return mine < 0 || f >= f1 ? f1 : f;
}

// Whether a point is inside an element, computed by a whole warp.
__device__ __noinline__ bool is_inside(const Solids& s, Vec p, i64 e, int lane) {
    i64 v0 = s.vertex_starts[e], f0 = s.face_starts[e], f1 = s.face_starts[e + 1], total = 0;
    i64 first = s.cluster_starts[e], stop = s.cluster_starts[e + 1];
    bool closed = s.side[e] != 0;
    for (i64 start = first; start < stop; start += 32) {
        bool near = start + lane < stop;
        if (near && closed) {  // the ray upwards passes the box
            Box box = box_at(s.clusters, start + lane);
            near = box.low.x <= p.x && p.x <= box.high.x && box.low.y <= p.y &&
                   p.y <= box.high.y && p.z <= box.high.z;
        }
        unsigned hits = __ballot_sync(ALL, near);
        while (hits) {
            i64 f = face_of_lane(hits, start, first, f0, f1, lane);
            if (f == f1) continue;
            Vec a = corner(s.vertices, v0 + s.faces[3 * f]);
            Vec b = corner(s.vertices, v0 + s.faces[3 * f + 1]);
            Vec c = corner(s.vertices, v0 + s.faces[3 * f + 2]);
            total += closed ? winding_of(p, a, b, c) : solid_angle(a - p, b - p, c - p);
        }
    }
    for (int away = 16; away > 0; away /= 2) total += __shfl_xor_sync(ALL, total, away);
    if (closed) return s.side[e] * total > 0;
    return fabs(total / TURN) > 0.5;
}

__device__ inline double gap(double x, double low, double high) {
    return x < low ? low - x : (x > high ? x - high : 0.0);
}

__device__ inline double far_squared(Vec p, const Box& b) {
    double x = gap(p.x, b.low.x, b.high.x), y = gap(p.y, b.low.y, b.high.y);
    double z = gap(p.z, b.low.z, b.high.z);
    return (x * x + y * y + z * z) * (1.0 - 1e-12);
}

// The squared distance of p from the surface of e, if it is below a bound, the nearest point and the
// face; without one the point is p and the face the end of the faces.
__device__ __noinline__ double nearest(
    const Solids& s, Vec p, double bound, i64 e, int lane, Vec& q, i64& face) {
    i64 v0 = s.vertex_starts[e], f0 = s.face_starts[e], f1 = s.face_starts[e + 1];
    i64 first = s.cluster_starts[e], stop = s.cluster_starts[e + 1], at = f1;
    double best = bound, all_best = bound;
    q = p;
    for (i64 start = first; start < stop; start += 32) {
        double lower = INFINITE;
        if (start + lane < stop) lower = far_squared(p, box_at(s.clusters, start + lane));
        unsigned hits = __ballot_sync(ALL, lower < all_best);
        while (hits) {
            i64 f = face_of_lane(hits, start, first, f0, f1, lane);
            if (f < f1) {
                Vec found;
                double d2 = distance_of_point(
                    p, corner(s.vertices, v0 + s.faces[3 * f]),
                    corner(s.vertices, v0 + s.faces[3 * f + 1]),
                    corner(s.vertices, v0 + s.faces[3 * f + 2]), found);
                if (d2 < best) {
                    best = d2;
                    at = f;
                    q = found;
                }
            }
            if (hits) {
                double d2 = best;
                for (int away = 16; away > 0; away /= 2)
                    d2 = min3(d2, d2, __shfl_xor_sync(ALL, d2, away));
                all_best = d2;
                hits &= __ballot_sync(ALL, lower < all_best);
            }
        }
    }
    // of several lanes the nearest, then the first face
    double min_d2 = best;
    i64 min_at = at;
    for (int away = 16; away > 0; away /= 2) {
        double d2 = __shfl_xor_sync(ALL, min_d2, away);
        i64 f = __shfl_xor_sync(ALL, min_at, away);
        if (d2 < min_d2 || (d2 == min_d2 && f < min_at)) {
            min_d2 = d2;
            min_at = f;
        }
    }
    int from = __ffs(__ballot_sync(ALL, at == min_at)) - 1;
    q = {__shfl_sync(ALL, q.x, from), __shfl_sync(ALL, q.y, from), __shfl_sync(ALL, q.z, from)};
    face = min_at;
    return min_d2;
}

__device__ inline double nearest(const Solids& s, Vec p, double bound, i64 e, int lane, Vec& q) {
    i64 face;
    return nearest(s, p, bound, e, lane, q, face);
}

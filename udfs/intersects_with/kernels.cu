// Relations of elements at a tolerance: the rules of triangle_pair.py, point_in_solid.py,
// inscribed_ball.py and narrow_phase.py, operation by operation; a loop there is a warp here.
#include "intersects_with/point_in_solid.cuh"

typedef unsigned long long u64;

#define NOTHING __longlong_as_double(0x7FF8000000000000ll)
const u64 NONE = ~0ull;
const int WARPS = 4;  // of a block, where a warp works alone
const double CLOSE = 0.001;
const int MAX_SHALLOW = 4;
const int MAX_STEPS = 512;
const int MAX_SURFACES = 16;
const double NOISE = 0.05;
const double PARALLEL = 0.999;

enum { APART, CROSS, SHALLOW, COPLANAR, NEAR };
enum { CLASSIFY, DISTANCE, CLOSEST };
enum { NEEDED = 1, DEFERRED = 2 };
enum { DISJOINT, TOUCH, OVERLAP, CONTAINS, INSIDE, COVERS, COVERED_BY, EQUALS };

// What comparing triangles finds, one entry per pair of elements.
struct PairResults {
    u64* crossing;  // the first pair of triangles that cross
    u64* d2;        // bits of the minimum squared distance
    u64* closest;   // the first pair of triangles at that distance
    signed char* needs_distance;  // whether the distance is needed
};

struct Triangle {
    Vec p0, p1, p2, n;
};

__device__ inline bool meet(const Box& a, const Box& b) {
    return !(a.low.x > b.high.x || a.high.x < b.low.x || a.low.y > b.high.y ||
             a.high.y < b.low.y || a.low.z > b.high.z || a.high.z < b.low.z);
}
__device__ inline bool within(const Box& a, const Box& b, double t) {
    return !(b.low.x - a.high.x > t || a.low.x - b.high.x > t || b.low.y - a.high.y > t ||
             a.low.y - b.high.y > t || b.low.z - a.high.z > t || a.low.z - b.high.z > t);
}
__device__ inline bool sticks_out(const Box& a, const Box& b, double t) {
    return a.low.x < b.low.x - t || a.low.y < b.low.y - t || a.low.z < b.low.z - t ||
           a.high.x > b.high.x + t || a.high.y > b.high.y + t || a.high.z > b.high.z + t;
}
__device__ inline bool outside_box(Vec p, const Box& b, double t) {
    return p.x < b.low.x - t || p.x > b.high.x + t || p.y < b.low.y - t ||
           p.y > b.high.y + t || p.z < b.low.z - t || p.z > b.high.z + t;
}
// What two boxes share, larger by t on every side.
__device__ inline Box shared_box(const Box& a, const Box& b, double t) {
    Box s;
    s.low.x = (a.low.x > b.low.x ? a.low.x : b.low.x) - t;
    s.low.y = (a.low.y > b.low.y ? a.low.y : b.low.y) - t;
    s.low.z = (a.low.z > b.low.z ? a.low.z : b.low.z) - t;
    s.high.x = (a.high.x < b.high.x ? a.high.x : b.high.x) + t;
    s.high.y = (a.high.y < b.high.y ? a.high.y : b.high.y) + t;
    s.high.z = (a.high.z < b.high.z ? a.high.z : b.high.z) + t;
    return s;
}
// Corners and normal of a face; false if it has no area.
__device__ inline bool load(const Solids& s, i64 v0, i64 f, Triangle& t) {
    t.p0 = corner(s.vertices, v0 + s.faces[3 * f]);
    t.p1 = corner(s.vertices, v0 + s.faces[3 * f + 1]);
    t.p2 = corner(s.vertices, v0 + s.faces[3 * f + 2]);
    Vec n = cross(t.p1 - t.p0, t.p2 - t.p0);
    double size = sqrt(dot(n, n));
    t.n = (1.0 / size) * n;
    return size != 0.0;
}

// ---------------------------------------------------------------- pairs of triangles (triangle_pair.py)

__device__ __noinline__ double overlap(Vec u, Vec v, Vec w, Vec n, Vec b0, Vec b1, Vec b2) {
    Vec m = cross(v - u, n);
    m = (1.0 / sqrt(dot(m, m))) * m;
    double far = dot(m, w - u), p0 = dot(m, b0 - u), p1 = dot(m, b1 - u), p2 = dot(m, b2 - u);
    double low = min3(p0, p1, p2), high = max3(p0, p1, p2);
    return (high > 0.0 ? 0.0 : high) - (far > low ? far : low);
}

__device__ inline void cut(double p, double q, double d, double e, double& low, double& high) {
    if ((d < 0.0) != (e < 0.0)) {
        double at = p + (q - p) * (d / (d - e));
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
}

// A distance from a face with the sign that is negative behind it; within the noise it is 0.
__device__ inline double behind(double d, int side, double noise) {
    if (-noise <= d && d <= noise) return 0.0;
    return side < 0 ? -d : d;
}

__device__ __noinline__ int classify(const Triangle& a, const Triangle& b, int side, int other_side,
                                     double t, bool closely) {
    double d0 = dot(a.n, b.p0 - a.p0), d1 = dot(a.n, b.p1 - a.p0), d2 = dot(a.n, b.p2 - a.p0);
    double blow = min3(d0, d1, d2), bhigh = max3(d0, d1, d2);
    if (blow > t || bhigh < -t) return APART;
    double e0 = dot(b.n, a.p0 - b.p0), e1 = dot(b.n, a.p1 - b.p0), e2 = dot(b.n, a.p2 - b.p0);
    double alow = min3(e0, e1, e2), ahigh = max3(e0, e1, e2);
    if (alow > t || ahigh < -t) return APART;
    double cosine = dot(a.n, b.n);
    if ((cosine > PARALLEL || cosine < -PARALLEL) &&
        ((blow >= -t && bhigh <= t) || (alow >= -t && ahigh <= t))) {
        if (!closely && cosine * side * other_side < 0.0) return NEAR;
        double w = overlap(a.p0, a.p1, a.p2, a.n, b.p0, b.p1, b.p2);
        if (w < -t) return APART;
        w = min3(w, w, overlap(a.p1, a.p2, a.p0, a.n, b.p0, b.p1, b.p2));
        w = min3(w, w, overlap(a.p2, a.p0, a.p1, a.n, b.p0, b.p1, b.p2));
        if (w < -t) return APART;
        w = min3(w, w, overlap(b.p0, b.p1, b.p2, b.n, a.p0, a.p1, a.p2));
        w = min3(w, w, overlap(b.p1, b.p2, b.p0, b.n, a.p0, a.p1, a.p2));
        w = min3(w, w, overlap(b.p2, b.p0, b.p1, b.n, a.p0, a.p1, a.p2));
        if (w < -t) return APART;
        return w > t ? COPLANAR : NEAR;
    }
    const double noise = NOISE * t;
    e0 = behind(e0, other_side, noise);
    e1 = behind(e1, other_side, noise);
    e2 = behind(e2, other_side, noise);
    d0 = behind(d0, side, noise);
    d1 = behind(d1, side, noise);
    d2 = behind(d2, side, noise);
    if (min3(e0, e1, e2) >= 0.0 || max3(e0, e1, e2) < 0.0 || min3(d0, d1, d2) >= 0.0 ||
        max3(d0, d1, d2) < 0.0)
        return NEAR;
    Vec u = cross(a.n, b.n);
    u = (1.0 / sqrt(dot(u, u))) * u;
    double p1 = dot(u, a.p1 - a.p0), p2 = dot(u, a.p2 - a.p0);
    double alo = INFINITE, ahi = -INFINITE, blo = INFINITE, bhi = -INFINITE;
    cut(0.0, p1, e0, e1, alo, ahi);
    cut(p1, p2, e1, e2, alo, ahi);
    cut(p2, 0.0, e2, e0, alo, ahi);
    double q0 = dot(u, b.p0 - a.p0), q1 = dot(u, b.p1 - a.p0), q2 = dot(u, b.p2 - a.p0);
    cut(q0, q1, d0, d1, blo, bhi);
    cut(q1, q2, d1, d2, blo, bhi);
    cut(q2, q0, d2, d0, blo, bhi);
    double length = min3(ahi, ahi, bhi) - max3(alo, alo, blo);
    if (length <= noise) return NEAR;  // a gap on this line says nothing about the gap beside it
    if (length > t && alow < -t && ahigh > t && blow < -t && bhigh > t) return CROSS;
    return SHALLOW;
}

// A point inside the overlap of two coplanar triangles.
__device__ Vec coplanar_centre(const Triangle& a, const Triangle& b) {
    Vec polygon[9] = {b.p0, b.p1, b.p2}, spare[9];
    const Vec corners[4] = {a.p0, a.p1, a.p2, a.p0};
    int n = 3;
    for (int edge = 0; edge < 3; ++edge) {
        Vec u = corners[edge], m = cross(corners[edge + 1] - u, a.n);
        int kept = 0;
        for (int k = 0; k < n; ++k) {
            Vec next = polygon[k + 1 < n ? k + 1 : 0];
            double p = dot(m, polygon[k] - u), q = dot(m, next - u);
            if (p <= 0.0) spare[kept++] = polygon[k];
            if ((p <= 0.0) != (q <= 0.0))
                spare[kept++] = polygon[k] + (p / (p - q)) * (next - polygon[k]);
        }
        n = kept;
        for (int k = 0; k < n; ++k) polygon[k] = spare[k];
    }
    Vec sum = {0.0, 0.0, 0.0};
    for (int k = 0; k < n; ++k) sum = sum + polygon[k];
    return {sum.x / n, sum.y / n, sum.z / n};
}

// A point in both bodies if these lie on the same side of coplanar faces.
__device__ Vec point_below(const Triangle& a, const Triangle& b, int side, double t) {
    Vec p = coplanar_centre(a, b);
    double d = dot(a.n, p - a.p0);
    double down = -side * (t + fabs(d));
    return p + down * a.n;
}

__device__ inline void ends(const Triangle& by, int out, double noise, const Triangle& t, Vec u,
                            Vec origin, double& first, double& last, Vec& at_first, Vec& at_last) {
    const Vec corners[4] = {t.p0, t.p1, t.p2, t.p0};
    first = INFINITE;
    last = -INFINITE;
    for (int k = 0; k < 3; ++k) {
        double d = behind(dot(by.n, corners[k] - by.p0), out, noise);
        double e = behind(dot(by.n, corners[k + 1] - by.p0), out, noise);
        if ((d < 0.0) != (e < 0.0)) {
            Vec p = corners[k] + (d / (d - e)) * (corners[k + 1] - corners[k]);
            double along = dot(u, p - origin);
            if (along < first) {
                first = along;
                at_first = p;
            }
            if (along > last) {
                last = along;
                at_last = p;
            }
        }
    }
}

// The centre of the line along which two triangles cross.
__device__ Vec crossing_centre(const Triangle& a, const Triangle& b, int side, int other_side,
                               double t) {
    Vec u = cross(a.n, b.n), a_first, a_last, b_first, b_last;
    double alo, ahi, blo, bhi;
    ends(b, other_side, NOISE * t, a, u, a.p0, alo, ahi, a_first, a_last);
    ends(a, side, NOISE * t, b, u, a.p0, blo, bhi, b_first, b_last);
    return 0.5 * ((blo > alo ? b_first : a_first) + (bhi < ahi ? b_last : a_last));
}

// A step from a point of that line to a point behind both faces.
__device__ Vec point_behind(Vec p, const Triangle& a, const Triangle& b, int side, int other_side,
                            double step) {
    double sa = -side, sb = other_side;
    Vec u = sa * a.n - sb * b.n;
    double size = sqrt(dot(u, u));
    if (size == 0.0) return p;
    return {p.x + step * u.x / size, p.y + step * u.y / size, p.z + step * u.z / size};
}

// ---------------------------------------------------------------- inside or outside (point_in_solid.py)

struct Sides {
    bool inside, outside;
    Vec first;
};

// The centre of a face and its normal.
__device__ inline Vec face_centre(const Solids& s, i64 v0, i64 f, Vec& n) {
    Vec a = corner(s.vertices, v0 + s.faces[3 * f]);
    Vec b = corner(s.vertices, v0 + s.faces[3 * f + 1]);
    Vec c = corner(s.vertices, v0 + s.faces[3 * f + 2]);
    n = cross(b - a, c - a);
    double size = sqrt(dot(n, n));
    n = (size > 0.0 ? 1.0 / size : 0.0) * n;
    Vec sum = a + b + c;
    return {sum.x / 3.0, sum.y / 3.0, sum.z / 3.0};
}

// Where the connected parts of b are, relative to a (`point_in_solid.parts_inside`).
__device__ __noinline__ Sides parts_inside(
    const Solids& s, i64 b, i64 a, double t, signed char* state, int lane) {
    const i64 v0 = s.vertex_starts[b], n = s.vertex_starts[b + 1] - v0;
    const i64 f0 = s.face_starts[b], f1 = s.face_starts[b + 1], points = n + f1 - f0;
    const Box box = box_at(s.boxes, a);
    Sides found = {false, false, {0.0, 0.0, 0.0}};
    __syncwarp();  // other lanes may still read what the call before left there
    for (i64 v = lane; v < n; v += 32) state[v] = 0;
    __syncwarp();
    bool out = false;
    for (i64 v = lane; v < n; v += 32) {
        int r = s.label[v0 + v];
        if (r >= 0 && outside_box(corner(s.vertices, v0 + v), box, t)) {
            state[r] = 1;
            out = true;
        }
    }
    found.outside = __any_sync(ALL, out);
    __syncwarp();
    for (i64 start = 0; start < points; start += 32) {
        const i64 k = start + lane;
        int r = -1;
        Vec p = {0.0, 0.0, 0.0}, unused;
        if (k < n) {
            r = s.label[v0 + k];
            p = corner(s.vertices, v0 + k);
        } else if (k < points) {
            r = s.label[v0 + s.faces[3 * (f0 + k - n)]];
            p = face_centre(s, v0, f0 + k - n, unused);
        }
        unsigned undecided = __ballot_sync(ALL, r >= 0 && state[r] == 0);
        while (undecided) {
            const int from = __ffs(undecided) - 1;
            undecided &= undecided - 1;
            const int part = __shfl_sync(ALL, r, from);
            const Vec q = {__shfl_sync(ALL, p.x, from), __shfl_sync(ALL, p.y, from),
                           __shfl_sync(ALL, p.z, from)};
            if (state[part] != 0) continue;
            if (nearest(s, q, t * t * (1.0 + 1e-9), a, lane, unused) <= t * t) continue;
            const bool in = is_inside(s, q, a, lane);
            __syncwarp();
            if (lane == 0) state[part] = in ? 2 : 1;
            __syncwarp();
            if (in && !found.inside) {
                i64 f = f0 + start + from - n;
                if (start + from < n) {  // the first face of the corner
                    f = f1;
                    for (i64 g = f0 + lane; g < f1; g += 32)
                        for (int c = 0; c < 3; ++c)
                            if (s.faces[3 * g + c] == start + from) f = min(f, g);
                    for (int away = 16; away > 0; away /= 2)
                        f = min(f, __shfl_xor_sync(ALL, f, away));
                }
                Vec normal, m = face_centre(s, v0, f, normal);
                double down = 0.25 * t * s.side[b];
                found.first = m - down * normal;
            }
            found.inside = found.inside || in;
            found.outside = found.outside || !in;
        }
    }
    return found;
}

// Where a point is, relative to an element (`point_in_solid.place_of`).
enum Place { UNDECIDED, OUT, IN };

__device__ __noinline__ Place place_of(const Solids& s, Vec p, i64 e, double t, int lane) {
    Vec unused;
    if (outside_box(p, box_at(s.boxes, e), t)) return OUT;
    if (nearest(s, p, t * t * (1.0 + 1e-9), e, lane, unused) <= t * t) return UNDECIDED;
    return is_inside(s, p, e, lane) ? IN : OUT;
}

// Whether faces of b are inside and outside of a (`point_in_solid.faces_inside`).
__device__ __noinline__ Sides faces_inside(const Solids& s, i64 b, i64 a, double t, int lane) {
    const i64 v0 = s.vertex_starts[b];
    Sides found = {false, false, {0.0, 0.0, 0.0}};
    for (i64 f = s.face_starts[b]; f < s.face_starts[b + 1]; ++f) {
        Vec n, m = face_centre(s, v0, f, n);
        for (int c = 0; c < 4; ++c) {
            if (found.inside && found.outside) return found;
            Vec p = m;
            Place place = UNDECIDED;
            if (c < 3) {
                const Vec v = corner(s.vertices, v0 + s.faces[3 * f + c]);
                place = place_of(s, v, a, t, lane);
                p = 0.9 * v + 0.1 * m;
            }
            if (place == UNDECIDED) place = place_of(s, p, a, t, lane);
            if (place == OUT) {
                found.outside = true;
            } else if (place == IN && !found.inside) {
                double step = 0.5 * t * s.side[b];
                found.inside = !is_inside(s, p + step * n, b, lane);
            }
        }
    }
    return found;
}

// The radius of the largest ball round p that lies in both bodies; negative if none.
__device__ __noinline__ double ball_radius(const Solids& s, Vec p, i64 a, i64 b, int lane,
                                           Vec& away) {
    if (!is_inside(s, p, a, lane) || !is_inside(s, p, b, lane)) return -1.0;
    Vec q, r;
    double da = nearest(s, p, INFINITE, a, lane, q);
    double db = nearest(s, p, INFINITE, b, lane, r);
    if (db < da) q = r;
    double radius = sqrt(da < db ? da : db);
    double unit = radius > 0.0 ? 1.0 / radius : 0.0;
    away = unit * (p - q);
    return radius;
}

// The largest ball in both bodies, searched from p (`inscribed_ball.largest_ball`); p becomes its
// centre.
__device__ __noinline__ double largest_ball(const Solids& s, Vec& p, double t, double enough, i64 a,
                                            i64 b, int lane) {
    Vec away, there;
    double radius = ball_radius(s, p, a, b, lane, away);
    if (radius < 0.0) return radius;
    double step = radius > t ? radius : t;
    int steps = 0;
    bool moved = false;
    Vec u = away;
    while (steps < MAX_STEPS && radius < enough && step > 0.05 * radius) {
        if (!moved) u = away;  // else on in the same direction
        moved = false;
        for (int surface = 0; surface < MAX_SURFACES; ++surface) {
            double size = sqrt(dot(u, u));
            if (size < 0.0005) break;
            ++steps;
            Vec q = {p.x + step * u.x / size, p.y + step * u.y / size, p.z + step * u.z / size};
            double found = ball_radius(s, q, a, b, lane, there);
            if (found > radius + 0.0005 * step) {
                p = q;
                radius = found;
                away = there;
                moved = true;
                break;
            }
            if (found < 0.0) break;
            // between both directions the one that leads away from both surfaces alike
            Vec v = u - there;
            double whole = dot(v, v), part = dot(u, v);
            double share_of = part < whole ? part / whole : 1.0;
            if (!(share_of > 0.0)) break;
            u = u - share_of * v;
        }
        step *= moved ? 2.0 : 0.5;
    }
    return radius;
}

// ---------------------------------------------------------------- pairs of elements (narrow_phase.py)

// Whether a part of one may be inside the other though nothing crosses.
__device__ inline bool may_contain(const Solids& s, i64 a, i64 b, double t) {
    return s.parts[a] > 1 || s.parts[b] > 1 ||
           !sticks_out(box_at(s.boxes, a), box_at(s.boxes, b), t) ||
           !sticks_out(box_at(s.boxes, b), box_at(s.boxes, a), t);
}

struct Batch {
    const int *pairs_a, *pairs_b;
    double t;
    bool touches;
    PairResults results;
    i64 room;  // of the list of contacts
    u64* contact_count;
    int* contact_pair;
    u64* contact_key;
    int* contact_kind;
    const signed char* turned;  // whether the pair of the caller is (b, a)
};

// Whether a is the first of the two in an order by what their meshes are (`comes_first`).
__device__ bool comes_first(const Solids& s, i64 a, i64 b) {
    const i64 fa = s.face_starts[a], fb = s.face_starts[b];
    const i64 va = s.vertex_starts[a], vb = s.vertex_starts[b];
    const i64 faces = s.face_starts[a + 1] - fa, others = s.face_starts[b + 1] - fb;
    if (faces != others) return faces < others;
    const i64 n = s.vertex_starts[a + 1] - va, m = s.vertex_starts[b + 1] - vb;
    if (n != m) return n < m;
    for (i64 k = 0; k < 3 * n; ++k) {
        double x = s.vertices[3 * va + k], y = s.vertices[3 * vb + k];
        if (x != y) return x < y;
    }
    for (i64 k = 0; k < 3 * faces; ++k) {
        int i = s.faces[3 * fa + k], j = s.faces[3 * fb + k];
        if (i != j) return i < j;
    }
    return false;
}

// One thread per pair: the two in the order in which they are related.
extern "C" __global__ void order_pairs(
    const Solids* solids, const int* rows_a, const int* rows_b, i64 pairs, int* one, int* other,
    signed char* turned) {
    const i64 p = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (p >= pairs) return;
    const int a = rows_a[p], b = rows_b[p];
    const bool turn = comes_first(*solids, b, a);
    turned[p] = turn;
    one[p] = turn ? b : a;
    other[p] = turn ? a : b;
}

// One thread per pair: how many clusters of a are near b, or, with starts, which. A cluster of a
// and the whole of b are the work of one warp.
extern "C" __global__ void list_tasks(
    const Solids* solids, const Batch* batch, i64 pairs, const i64* starts, i64* counts,
    int* task_pair, int* task_cluster) {
    const i64 p = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (p >= pairs) return;
    const Solids s = *solids;
    const Batch x = *batch;
    const i64 a = x.pairs_a[p], b = x.pairs_b[p];
    const Box box = shared_box(box_at(s.boxes, a), box_at(s.boxes, b), x.t);
    i64 n = starts ? starts[p] : 0;
    for (i64 c = s.cluster_starts[a]; c < s.cluster_starts[a + 1]; ++c) {
        if (!meet(box_at(s.clusters, c), box)) continue;
        if (starts) {
            task_pair[n] = (int)p;
            task_cluster[n] = (int)(c - s.cluster_starts[a]);
        }
        ++n;
    }
    if (starts) return;
    counts[p] = n;
    const bool closed = s.side[a] != 0 && s.side[b] != 0;
    x.results.needs_distance[p] = x.touches || (!closed && may_contain(s, a, b, x.t)) ? NEEDED : 0;
}

// Classify one pair of triangles of the elements of pair p and record the result.
__device__ __noinline__ void compare_pair(const Solids& s, const Batch& x, int pass, i64 p, i64 a,
                                   i64 b, const Triangle& one, i64 fa, i64 fb) {
    Triangle other;
    load(s, s.vertex_starts[b], s.face_starts[b] + fb, other);
    const int sides = s.side[a] * s.side[b];
    const int kind = classify(one, other, s.side[a], s.side[b], x.t, x.touches);
    if (kind == APART) return;
    const u64 key = (u64)fa << 32 | (u64)fb;
    if (pass == CLASSIFY) {
        if (kind == CROSS) atomicMin(x.results.crossing + p, key);
        bool coplanar = kind == COPLANAR && dot(one.n, other.n) * sides >= 0.0;
        if (sides != 0 && (kind == SHALLOW || coplanar)) {
            u64 k = atomicAdd(x.contact_count, 1ull);
            if (k < (u64)x.room) {
                x.contact_pair[k] = (int)p;
                x.contact_key[k] = key;
                x.contact_kind[k] = kind;
            }
        }
    }
    if (x.results.needs_distance[p]) {
        Closest found = closest_of_triangles(one.p0, one.p1, one.p2, other.p0, other.p1, other.p2);
        u64 bits;
        memcpy(&bits, &found.d2, 8);
        if (pass != CLOSEST) atomicMin(x.results.d2 + p, bits);
        else if (bits == x.results.d2[p]) atomicMin(x.results.closest + p, key);
    }
}

// One warp per task. Pass CLASSIFY finds which triangles cross or are in contact, and distances
// where these are needed; pass DISTANCE finds the distances that `relate` deferred; pass CLOSEST
// finds which triangles have them.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) compare_triangles(
    const Solids* solids, const Batch* batch, const int* task_pair,
    const int* task_cluster, i64 tasks, i64 pass) {
    __shared__ double kept[WARPS][CLUSTER][18];
    __shared__ unsigned queue[WARPS][64];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const i64 task = blockIdx.x * (i64)WARPS + warp;
    if (task >= tasks) return;
    const Solids& s = *solids;
    const Batch& x = *batch;
    const i64 p = task_pair[task], a = x.pairs_a[p], b = x.pairs_b[p];
    const i64 va = s.vertex_starts[a], vb = s.vertex_starts[b];
    const i64 first = (i64)task_cluster[task] * CLUSTER;  // face of a, counted from its own first
    // What comes after a crossing does not matter. Other warps find crossings meanwhile, so one lane
    // reads for all.
    const u64 crossing = __shfl_sync(ALL, x.results.crossing[p], 0);
    if (crossing < (u64)first << 32) return;
    if (pass == DISTANCE && x.results.needs_distance[p] != DEFERRED) return;
    if (pass == CLOSEST) {
        double d2;
        memcpy(&d2, x.results.d2 + p, 8);
        if (crossing != NONE || !(d2 <= x.t * x.t)) return;
    }
    const Box box = shared_box(box_at(s.boxes, a), box_at(s.boxes, b), x.t);

    // The triangles of a that meet the shared box; the others get a box that meets nothing.
    Box mine = {{INFINITE, INFINITE, INFINITE}, {-INFINITE, -INFINITE, -INFINITE}};
    if (lane < CLUSTER) {
        double* row = kept[warp][lane];
        i64 f = s.face_starts[a] + first + lane;
        Triangle one = {};
        if (f < s.face_starts[a + 1]) {
            bool has_area = load(s, va, f, one);
            Box own = box_of(one.p0, one.p1, one.p2);
            if (has_area && meet(own, box)) mine = own;
        }
        const double values[18] = {
            one.p0.x, one.p0.y, one.p0.z, one.p1.x, one.p1.y, one.p1.z,
            one.p2.x, one.p2.y, one.p2.z, one.n.x, one.n.y, one.n.z,
            mine.low.x, mine.low.y, mine.low.z, mine.high.x, mine.high.y, mine.high.z};
        for (int k = 0; k < 18; ++k) row[k] = values[k];
    }
    for (int away = CLUSTER / 2; away > 0; away /= 2) {
        mine.low.x = min(mine.low.x, __shfl_xor_sync(ALL, mine.low.x, away));
        mine.low.y = min(mine.low.y, __shfl_xor_sync(ALL, mine.low.y, away));
        mine.low.z = min(mine.low.z, __shfl_xor_sync(ALL, mine.low.z, away));
        mine.high.x = max(mine.high.x, __shfl_xor_sync(ALL, mine.high.x, away));
        mine.high.y = max(mine.high.y, __shfl_xor_sync(ALL, mine.high.y, away));
        mine.high.z = max(mine.high.z, __shfl_xor_sync(ALL, mine.high.z, away));
    }
    mine.low = {__shfl_sync(ALL, mine.low.x, 0), __shfl_sync(ALL, mine.low.y, 0),
                __shfl_sync(ALL, mine.low.z, 0)};
    mine.high = {__shfl_sync(ALL, mine.high.x, 0), __shfl_sync(ALL, mine.high.y, 0),
                 __shfl_sync(ALL, mine.high.z, 0)};
    __syncwarp();
    if (mine.low.x > mine.high.x) return;

    auto entry = [&](unsigned word) {
        int i = word >> 29;
        const double* row = kept[warp][i];
        Triangle one = {{row[0], row[1], row[2]}, {row[3], row[4], row[5]},
                        {row[6], row[7], row[8]}, {row[9], row[10], row[11]}};
        compare_pair(s, x, (int)pass, p, a, b, one, first + i, word & 0x1fffffffu);
    };

    int waiting = 0;
    const i64 b0 = s.face_starts[b], b1 = s.face_starts[b + 1];
    const i64 c0 = s.cluster_starts[b], c1 = s.cluster_starts[b + 1];
    for (i64 start = c0; start < c1; start += 32) {
        bool near = false;
        if (start + lane < c1) {
            Box other = box_at(s.clusters, start + lane);
            near = meet(other, box) && within(mine, other, x.t);
        }
        unsigned hits = __ballot_sync(ALL, near);
        while (hits) {
            i64 f = face_of_lane(hits, start, c0, b0, b1, lane);
            Box own = {{INFINITE, INFINITE, INFINITE}, {-INFINITE, -INFINITE, -INFINITE}};
            if (f < b1) {
                Vec q0 = corner(s.vertices, vb + s.faces[3 * f]);
                Vec q1 = corner(s.vertices, vb + s.faces[3 * f + 1]);
                Vec q2 = corner(s.vertices, vb + s.faces[3 * f + 2]);
                Vec n = cross(q1 - q0, q2 - q0);
                Box whole = box_of(q0, q1, q2);
                if (dot(n, n) != 0.0 && meet(whole, box)) own = whole;
            }
            for (int i = 0; i < CLUSTER; ++i) {
                const double* row = kept[warp][i];
                Box one = {{row[12], row[13], row[14]}, {row[15], row[16], row[17]}};
                bool pass = within(one, own, x.t);
                unsigned passing = __ballot_sync(ALL, pass);
                if (!passing) continue;
                if (pass)
                    queue[warp][waiting + __popc(passing & ((1u << lane) - 1u))] =
                        (unsigned)i << 29 | (unsigned)(f - b0);
                waiting += __popc(passing);
                __syncwarp();
                if (waiting >= 32) {
                    entry(queue[warp][lane]);
                    __syncwarp();
                    waiting -= 32;
                    if (lane < waiting) queue[warp][lane] = queue[warp][32 + lane];
                    __syncwarp();
                }
            }
        }
    }
    if (lane < waiting) entry(queue[warp][lane]);
}

// The contacts of all pairs, those of a pair in the order of their keys.
struct Contacts {
    const i64* starts;
    const u64* key;
    const int* kind;
};

// One thread per pair: whether `relate` has to look at it. The others are disjoint, or touch and
// are not in the result.
extern "C" __global__ void select_pairs(
    const Solids* solids, const Batch* batch, const Contacts* contacts, i64 pairs,
    signed char* selected) {
    const i64 p = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (p >= pairs) return;
    const Solids s = *solids;
    const Batch x = *batch;
    const i64 a = x.pairs_a[p], b = x.pairs_b[p];
    double d2;
    memcpy(&d2, x.results.d2 + p, 8);
    selected[p] = x.results.crossing[p] != NONE || contacts->starts[p] < contacts->starts[p + 1] ||
                (x.touches && d2 <= x.t * x.t) || may_contain(s, a, b, x.t);
}

// Each warp takes one pair after the other and finds its relation and thickness.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) relate(
    const Solids* solids, const Batch* batch, const Contacts* all_events,
    const i64* selected, i64 pairs, u64* next, signed char* scratch, i64 max_vertices,
    signed char* relation, double* measures) {
    const int lane = threadIdx.x % 32;
    const i64 warp = blockIdx.x * (i64)WARPS + threadIdx.x / 32;
    const Solids& s = *solids;
    const Batch& x = *batch;
    const Contacts& contacts = *all_events;
    signed char* state = scratch + warp * max_vertices;
    const double t = x.t;
    for (;;) {
        u64 index = 0;
        if (lane == 0) index = atomicAdd(next, 1ull);
        index = __shfl_sync(ALL, index, 0);
        if (index >= (u64)pairs) return;
        const i64 p = selected[index];
        const i64 a = x.pairs_a[p], b = x.pairs_b[p];
        const bool closed = s.side[a] != 0 && s.side[b] != 0;
        const Box box_a = box_at(s.boxes, a), box_b = box_at(s.boxes, b);
        const Box box = shared_box(box_a, box_b, t);
        int code = DISJOINT;
        double radius = 0.0, d2 = INFINITE;
        Vec at = {NOTHING, NOTHING, NOTHING}, seed = at;
        Triangle one, other;
        auto triangles = [&](u64 key) {
            load(s, s.vertex_starts[a], s.face_starts[a] + (i64)(key >> 32), one);
            load(s, s.vertex_starts[b], s.face_starts[b] + (i64)(key & ALL), other);
        };
        const u64 crossing = x.results.crossing[p];
        const bool known_distance = x.results.needs_distance[p] != 0;
        __syncwarp();
        if (crossing != NONE) {
            code = OVERLAP;
            triangles(crossing);
            at = crossing_centre(one, other, s.side[a], s.side[b], t);
            if (closed) seed = point_behind(at, one, other, s.side[a], s.side[b], 0.1 * t);
        } else {
            bool interior = false;
            for (i64 k = contacts.starts[p]; k < contacts.starts[p + 1] && !interior; ++k) {
                if (contacts.kind[k] != COPLANAR) continue;
                triangles(contacts.key[k]);
                seed = point_below(one, other, s.side[a], t);
                interior = is_inside(s, seed, a, lane) && is_inside(s, seed, b, lane);
            }
            int searches = 0;
            for (i64 k = contacts.starts[p];
                 k < contacts.starts[p + 1] && !interior && searches < MAX_SHALLOW; ++k) {
                if (contacts.kind[k] != SHALLOW) continue;
                ++searches;
                triangles(contacts.key[k]);
                seed = crossing_centre(one, other, s.side[a], s.side[b], t);
                seed = point_behind(seed, one, other, s.side[a], s.side[b], 0.25 * t);
                interior = 2.0 * largest_ball(s, seed, t, t, a, b, lane) > t;
            }
            memcpy(&d2, x.results.d2 + p, 8);
            if (x.results.d2[p] == NONE) d2 = INFINITE;
            const bool touching = interior || d2 <= t * t;
            bool a_out = sticks_out(box_a, box_b, t), b_out = sticks_out(box_b, box_a, t);
            if (interior) {
                if (!(a_out && b_out)) {
                    const Sides of_b = faces_inside(s, b, a, t, lane);
                    const Sides of_a = faces_inside(s, a, b, t, lane);
                    a_out = a_out || of_a.outside || of_b.inside;
                    b_out = b_out || of_b.outside || of_a.inside;
                }
            } else if (closed || !touching) {
                Sides of_b = {false, true, at}, of_a = {false, true, at};
                if (s.parts[b] > 1 || !b_out) of_b = parts_inside(s, b, a, t, state, lane);
                if (s.parts[a] > 1 || !a_out) of_a = parts_inside(s, a, b, t, state, lane);
                seed = of_b.inside ? of_b.first : of_a.first;
                interior = of_b.inside || of_a.inside;
                a_out = of_a.outside || of_b.inside;
                b_out = of_b.outside || of_a.inside;
                if (interior && !known_distance) {
                    // whether this is contains or covers depends on the distance
                    if (lane == 0) x.results.needs_distance[p] = DEFERRED;
                    continue;
                }
            }
            if (!interior) code = touching ? TOUCH : DISJOINT;
            else if (a_out && b_out) code = OVERLAP;
            else if (a_out) code = touching ? COVERS : CONTAINS;
            else if (b_out) code = touching ? COVERED_BY : INSIDE;
            else code = EQUALS;
            if (code == TOUCH && x.touches) {
                triangles(x.results.closest[p]);
                Closest found =
                    closest_of_triangles(one.p0, one.p1, one.p2, other.p0, other.p1, other.p2);
                at = 0.5 * (found.a + found.b);
            }
            if (code >= OVERLAP && !closed) at = seed;
        }
        if (code >= OVERLAP) {
            d2 = 0.0;
            radius = NOTHING;
            if (closed) {
                double room = min3(box.high.x - box.low.x, box.high.y - box.low.y,
                                    box.high.z - box.low.z) - 2.0 * t;
                double enough = 0.49 * room;
                at = 0.5 * (box.low + box.high);
                radius = largest_ball(s, at, t, enough, a, b, lane);
                if (radius < enough) {
                    double found = largest_ball(s, seed, t, enough, a, b, lane);
                    if (found > radius) {
                        radius = found;
                        at = seed;
                    }
                }
                if (radius < 0.0 && crossing != NONE) {  // another face is in front of that point
                    at = crossing_centre(one, other, s.side[a], s.side[b], t);
                    seed = point_behind(at, one, other, s.side[a], s.side[b], CLOSE * t);
                    at = seed;
                    radius = largest_ball(s, at, t, enough, a, b, lane);
                }
                if (radius < 0.0) {  // thinner than what was tested: a point is known, but no ball
                    radius = 0.0;
                    at = seed;
                }
            }
        }
        if (x.turned[p]) {
            if (code == CONTAINS || code == COVERS) ++code;
            else if (code == INSIDE || code == COVERED_BY) --code;
        }
        if (lane == 0) {
            relation[p] = (signed char)code;
            double* out = measures + 5 * p;
            out[0] = 2.0 * radius;
            out[1] = sqrt(d2);
            out[2] = at.x;
            out[3] = at.y;
            out[4] = at.z;
        }
        __syncwarp();
    }
}

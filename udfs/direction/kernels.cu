// direction on the GPU: the operations of polygons.py and beyond.py, in the same order.

typedef long long i64;

const unsigned ALL = 0xffffffffu;
const int CLUSTER = 16;
const int COLUMNS = 13;
const int CROSSINGS = 6;
const int ROOM = 3 + 4 * (CROSSINGS - 1);

__device__ inline double min2(double a, double b) { return a < b ? a : b; }
__device__ inline double max2(double a, double b) { return a > b ? a : b; }

// Whether box b reaches beyond box a where both are, seen from above.
__device__ inline bool may_lie_over(const double* b, const double* a, double t) {
    return min2(b[3], a[3]) - max2(b[0], a[0]) > t && min2(b[4], a[4]) - max2(b[1], a[1]) > t &&
           b[5] - a[2] > t;
}

// Clip a polygon of n corners by a half-plane; returns how many corners are left.
__device__ inline int cut(const double* x, const double* y, int n, double a, double b, double c,
                          double px, double py, double* to_x, double* to_y) {
    int inside = 0, crossings = 0;
    double ux = x[n - 1], uy = y[n - 1];
    double u = a * (ux - px) + b * (uy - py) + c;
    for (int k = 0; k < n; ++k) {
        const double vx = x[k], vy = y[k];
        const double v = a * (vx - px) + b * (vy - py) + c;
        if (crossings < CROSSINGS && ((u > 0.0 && v < 0.0) || (u < 0.0 && v > 0.0))) {
            ++crossings;
            const double t = u / (u - v);
            to_x[inside] = ux + t * (vx - ux);
            to_y[inside] = uy + t * (vy - uy);
            ++inside;
        }
        if (v >= 0.0) {
            to_x[inside] = vx;
            to_y[inside] = vy;
            ++inside;
        }
        ux = vx;
        uy = vy;
        u = v;
    }
    return inside;
}

__device__ inline bool wider(const double* x, const double* y, int n, double limit) {
    bool found = false;
    for (int k = 0; k < n; ++k) {
        const int m = (k + 1) % n;
        const double ex = x[m] - x[k], ey = y[m] - y[k];
        const double bound = limit * sqrt(ex * ex + ey * ey);
        if (bound == 0.0) continue;
        found = false;
        for (int q = 0; q < n && !found; ++q)
            found = ex * (y[q] - y[k]) - ey * (x[q] - x[k]) > bound;
        if (!found) return false;
    }
    return found;
}

// Whether the facet f is over the facet g where both are, seen from above.
__device__ bool lies_over(const double* f, const double* g, double tolerance) {
    if (f[12] <= tolerance || g[12] <= tolerance || f[10] - g[9] <= tolerance) return false;
    if (max2(max2(f[0], f[2]), f[4]) - min2(min2(g[0], g[2]), g[4]) <= tolerance ||
        max2(max2(g[0], g[2]), g[4]) - min2(min2(f[0], f[2]), f[4]) <= tolerance ||
        max2(max2(f[1], f[3]), f[5]) - min2(min2(g[1], g[3]), g[5]) <= tolerance ||
        max2(max2(g[1], g[3]), g[5]) - min2(min2(f[1], f[3]), f[5]) <= tolerance)
        return false;
    double x[2][ROOM], y[2][ROOM];
    for (int k = 0; k < 3; ++k) {
        x[0][k] = f[2 * k];
        y[0][k] = f[2 * k + 1];
    }
    int n = 3, at = 0;
    for (int side = 0; side < 3; ++side, at = 1 - at) {
        const double px = g[2 * side], py = g[2 * side + 1];
        const int after = 2 * ((side + 1) % 3);
        n = cut(x[at], y[at], n, py - g[after + 1], g[after] - px, 0.0, px, py, x[1 - at],
                y[1 - at]);
        if (n < 3) return false;
    }
    const double below = g[6] + g[7] * (f[0] - g[0]) + g[8] * (f[1] - g[1]);
    n = cut(x[at], y[at], n, f[7] - g[7], f[8] - g[8], f[6] - below - tolerance, f[0], f[1],
            x[1 - at], y[1 - at]);
    return n >= 3 && wider(x[1 - at], y[1 - at], n, tolerance);
}

// direction_some_over: whether some points of one element lie over another.  (beyond.some_over)
// warp     one pair; lanes: clusters of a, then the facets of two clusters
// writes   keep[pair]: the same in whatever order facets are looked at
extern "C" __global__ void __launch_bounds__(128) direction_some_over(
    const i64* rows_a, const i64* rows_b, i64 n, const double* facets, const i64* starts,
    const double* clusters, const i64* cluster_starts, const double* boxes, double tolerance,
    signed char* keep) {
    const i64 pair = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (pair >= n) return;
    const i64 a = rows_a[pair], b = rows_b[pair];
    const i64 stop = cluster_starts[a + 1];
    bool found = false;
    for (i64 cb = cluster_starts[b]; cb < cluster_starts[b + 1] && !found; ++cb) {
        if (!may_lie_over(clusters + 6 * cb, boxes + 6 * a, tolerance)) continue;
        const i64 t0 = starts[b] + (cb - cluster_starts[b]) * CLUSTER;
        for (i64 first = cluster_starts[a]; first < stop && !found; first += 32) {
            const i64 mine = first + lane;
            const bool may =
                mine < stop && may_lie_over(clusters + 6 * cb, clusters + 6 * mine, tolerance);
            for (unsigned todo = __ballot_sync(ALL, may); todo && !found; todo &= todo - 1) {
                const i64 ca = first + __ffs(todo) - 1;
                const i64 s0 = starts[a] + (ca - cluster_starts[a]) * CLUSTER;
                for (int k = lane; k < CLUSTER * CLUSTER && !found; k += 32) {
                    const i64 t = t0 + k / CLUSTER, s = s0 + k % CLUSTER;
                    const bool over =
                        t < starts[b + 1] && s < starts[a + 1] &&
                        lies_over(facets + COLUMNS * t, facets + COLUMNS * s, tolerance);
                    found = __any_sync(ALL, over);
                }
            }
        }
    }
    if (lane == 0) keep[pair] = found;
}

// point_features on the GPU: one thread per point, the sums and features of cpu.py.
#include "geometry/eigen.cuh"
#include "geometry/elementary.cuh"
#include "geometry/neighbours.cuh"

const double FLAT = 1e-12, NO_REACH = 1e-100;  // as in cpu.py
const double PI = 3.141592653589793;
const i64 FEATURES = 14;
const int BITS = 60;  // as in cpu.py

struct Options {
    double radius;
    i64 min_k, mode;
};

// Fills in the features of the query q; visit(use) calls use(place, squared) for its neighbours.
template <typename Visit>
__device__ inline void describe(const Tree& t, i64 q, Options options, Visit visit, int* count,
                                double* features) {
    const double* p = t.points + 3 * q;
    const i64 row = t.order[q];
    i64 n = 0;
    double farthest = 0.0;
    visit([&](i64, double squared) {
        ++n;
        farthest = larger(farthest, squared);
    });
    count[row] = (int)n;
    double* of_row = features + row;
    const double NOTHING = __longlong_as_double(0x7FF8000000000000ll);
    for (i64 feature = 0; feature < FEATURES; ++feature) of_row[feature * t.n] = NOTHING;
    // coordinates whose squares are beyond double have no features either
    if (n < options.min_k || farthest > 1.7976931348623157e308) return;
    double reach = sqrt(farthest);
    int exponent;
    frexp(reach, &exponent);
    const double unit = ldexp(1.0, -exponent);
    frexp((double)n, &exponent);
    const double whole = ldexp(1.0, BITS - exponent);
    i64 first[3] = {0, 0, 0}, second[6] = {0, 0, 0, 0, 0, 0};
    visit([&](i64 at, double) {
        const double* o = t.points + 3 * at;
        double d[3], u[3];
        for (int k = 0; k < 3; ++k) {
            d[k] = (o[k] - p[k]) * unit;
            u[k] = d[k] * whole;
            first[k] += (i64)rint(u[k]);
        }
        for (int k = 0, pair = 0; k < 3; ++k)
            for (int l = k; l < 3; ++l, ++pair) second[pair] += (i64)rint(d[k] * u[l]);
    });
    const double m = (n - 1.0) * unit;
    double sums[6];
    for (int k = 0, pair = 0; k < 3; ++k)
        for (int l = k; l < 3; ++l, ++pair)
            sums[pair] = (second[pair] / whole - first[k] / whole * (first[l] / whole) / n) / m / unit;
    double values[3], v[9];
    eigen(sums, values, v);
    if (options.radius > 0.0) reach = options.radius;
    if (reach > NO_REACH) of_row[13 * t.n] = n / (4.0 / 3.0 * PI * reach * reach * reach);
    const double least = values[0], middle = values[1], most = values[2];
    if (most == 0.0) return;
    const double total = least + middle + most;
    double entropy = 0.0;
    for (int k = 0; k < 3; ++k) {
        const double share = values[k] / total;
        if (share > 0.0) entropy = entropy - share * logarithm(share);
    }
    if (middle > FLAT * most) {
        double nx = v[0], ny = v[1], nz = v[2];
        if (nz < 0.0 || (nz == 0.0 && (ny < 0.0 || (ny == 0.0 && nx < 0.0)))) {
            nx = -nx;
            ny = -ny;
            nz = -nz;
        }
        of_row[0] = nx;
        of_row[t.n] = ny;
        of_row[2 * t.n] = nz;
        of_row[7 * t.n] = 1.0 - nz;
    }
    double a = most, b = middle, c = least;  // of the mode "raw"
    if (options.mode == 0) {
        a = sqrt(most);
        b = sqrt(middle);
        c = sqrt(least);
    } else if (options.mode == 2) {
        a = most / total;
        b = middle / total;
        c = least / total;
    }
    of_row[3 * t.n] = (a - b) / a;
    of_row[4 * t.n] = (b - c) / a;
    of_row[5 * t.n] = c / a;
    const double ux = a * fabs(v[6]) + b * fabs(v[3]) + c * fabs(v[0]);
    const double uy = a * fabs(v[7]) + b * fabs(v[4]) + c * fabs(v[1]);
    const double uz = a * fabs(v[8]) + b * fabs(v[5]) + c * fabs(v[2]);
    of_row[6 * t.n] = uz / sqrt(ux * ux + uy * uy + uz * uz);
    of_row[8 * t.n] = cube_root(a * b * c);
    of_row[9 * t.n] = (a - c) / a;
    of_row[10 * t.n] = entropy;
    of_row[11 * t.n] = total;
    of_row[12 * t.n] = least / total;
}

// point_features_nearest: the features of all points, of their k nearest.
// thread   one point after the other, in strides of the grid
// writes   count and features of its point
extern "C" __global__ void point_features_nearest(const double* points, const int* order,
                                                  const double* boxes, const int* lowest, i64 n,
                                                  i64 levels, i64 k, double* squared, int* at,
                                                  i64 min_k, i64 mode, int* count,
                                                  double* features) {
    const Tree tree = {points, order, boxes, lowest, n, levels};
    const i64 threads = (i64)gridDim.x * blockDim.x;
    const i64 thread = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    Nearest found = {squared + thread, at + thread, threads, k};
    for (i64 q = thread; q < n; q += threads) {
        find_nearest(tree, points + 3 * q, found);
        describe(tree, q, {0.0, min_k, mode}, EachNearest{found}, count, features);
    }
}

// point_features_within: the features of all points, of those within a radius.
// thread   one point; it searches twice, so that no list is kept
// writes   count and features of its point
extern "C" __global__ void point_features_within(const double* points, const int* order,
                                                 const double* boxes, const int* lowest, i64 n,
                                                 i64 levels, double radius, i64 min_k, i64 mode,
                                                 int* count, double* features) {
    const Tree tree = {points, order, boxes, lowest, n, levels};
    const i64 q = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (q >= n) return;
    const EachWithin visit = {tree, points + 3 * q, radius * radius};
    describe(tree, q, {radius, min_k, mode}, visit, count, features);
}

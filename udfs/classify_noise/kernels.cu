// classify_noise on the GPU: the loops of cpu.py, one thread per point.
#include "geometry/neighbours.cuh"

const unsigned char LOW_NOISE = 7, HIGH_NOISE = 18;  // classes of ASPRS
const i64 RUN = 256;                                 // values that a thread adds up
const int LOW = 26;                                  // as in limit.py

typedef unsigned long long u64;

// The class of noise at a height, of neighbours of which the first may be the point itself.
__device__ inline unsigned char low_or_high(const Tree& t, const Nearest& found, i64 skip,
                                            double own) {
    double higher = 0.0;
    for (i64 j = skip; j < found.k; ++j)
        higher += t.points[3 * (i64)found.at[j * found.stride] + 2] - own;
    return higher > 0.0 ? LOW_NOISE : HIGH_NOISE;
}

// classify_noise_distances: mean distances of all points from their neighbours, and the class that
// they have if that is noise.
// thread   one point after the other, in strides of the grid
// writes   distance and level of its point
extern "C" __global__ void classify_noise_distances(const double* points, const int* order,
                                                    const double* boxes, const int* lowest, i64 n,
                                                    i64 levels, i64 k, double* squared, int* at,
                                                    double* distance, unsigned char* level) {
    const Tree tree = {points, order, boxes, lowest, n, levels};
    const i64 threads = (i64)gridDim.x * blockDim.x;
    const i64 thread = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    Nearest found = {squared + thread, at + thread, threads, k};
    for (i64 q = thread; q < n; q += threads) {
        find_nearest(tree, points + 3 * q, found);
        double total = 0.0;
        for (i64 j = 1; j < k; ++j) total += sqrt(found.squared[j * threads]);
        const int row = order[q];
        distance[row] = k > 1 ? total / (k - 1) : 0.0;
        level[row] = low_or_high(tree, found, 1, points[3 * q + 2]);
    }
}

// classify_noise_add: sums of how far values are from a centre, or of its squares: of whole numbers,
// which no order changes. None is below 0.
// thread   one run of values
// adds     the upper and lower bits of their mantissas to high and low of their exponent
extern "C" __global__ void classify_noise_add(const double* values, i64 n, double centre,
                                              i64 power, u64* high, u64* low) {
    const i64 run = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    i64 exponent = 0;  // of those that are still to be added
    u64 upper = 0, lower = 0;
    for (i64 i = run * RUN; i < n && i < (run + 1) * RUN; ++i) {
        const double away = values[i] - centre;
        const u64 bits = (u64)__double_as_longlong(power == 1 ? away : away * away);
        const u64 fraction = bits & ((1ull << 52) - 1);
        const i64 own = (i64)(bits >> 52);
        if (own != exponent) {
            atomicAdd(high + exponent, upper);
            atomicAdd(low + exponent, lower);
            exponent = own;
            upper = lower = 0;
        }
        const u64 mantissa = own > 0 ? fraction | 1ull << 52 : fraction;
        upper += mantissa >> LOW;
        lower += mantissa & ((1ull << LOW) - 1);
    }
    if (run * RUN < n) {
        atomicAdd(high + exponent, upper);
        atomicAdd(low + exponent, lower);
    }
}

// classify_noise_mark: points beyond the limit get the class that they have as noise.
// thread   one point
extern "C" __global__ void classify_noise_mark(const double* distance, i64 n, double limit,
                                               const unsigned char* level, unsigned char* found) {
    const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (i < n && distance[i] > limit) found[i] = level[i];
}

// classify_noise_isolated: points with few others around them get their class of noise.
// thread   one point after the other, in strides of the grid
// writes   classes of its point
extern "C" __global__ void classify_noise_isolated(const double* points, const int* order,
                                                   const double* boxes, const int* lowest, i64 n,
                                                   i64 levels, i64 k, double* squared, int* at,
                                                   double size, i64 most, unsigned char* classes) {
    const Tree tree = {points, order, boxes, lowest, n, levels};
    const i64 threads = (i64)gridDim.x * blockDim.x;
    const i64 thread = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    Nearest found = {squared + thread, at + thread, threads, k};
    for (i64 q = thread; q < n; q += threads) {
        if (!is_alone(tree, points + 3 * q, size, most)) continue;
        find_nearest(tree, points + 3 * q, found);
        classes[order[q]] = low_or_high(tree, found, 1, points[3 * q + 2]);
    }
}

// classify_noise_strays: stray points, which are not in the tree, get their class of noise.
// thread   one stray point after the other, in strides of the grid
// writes   classes of its point
extern "C" __global__ void classify_noise_strays(const double* points, const int* order,
                                                 const double* boxes, const int* lowest, i64 n,
                                                 i64 levels, i64 k, double* squared, int* at,
                                                 const double* strays, const i64* rows, i64 count,
                                                 unsigned char* classes) {
    const Tree tree = {points, order, boxes, lowest, n, levels};
    const i64 threads = (i64)gridDim.x * blockDim.x;
    const i64 thread = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    Nearest found = {squared + thread, at + thread, threads, k};
    for (i64 q = thread; q < count; q += threads) {
        find_nearest(tree, strays + 3 * q, found);
        classes[rows[q]] = low_or_high(tree, found, 0, strays[3 * q + 2]);
    }
}

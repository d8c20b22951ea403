// Formats of points in the kernels of build_lod, their place in the cube (see tree.py), and the
// loops and sums that split.cu and voxels.cu share.

#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define BITS 53  // of a place along one axis
#define ALL 0xFFFFFFFFu
#define NOWHERE 0xFFFFFFFFu

// Grid-stride loop over k in [0, n).
#define FOR_EACH(k, n)                                                                   \
    for (i64 k = blockIdx.x * (i64)blockDim.x + threadIdx.x; k < (n); k += (i64)gridDim.x * blockDim.x)

// Inclusive prefix sum over the lanes of a warp.
template <typename T>
__device__ T sum_up_to(T value) {
    const int lane = threadIdx.x % 32;
    for (int away = 1; away < 32; away *= 2) {
        const T other = __shfl_up_sync(ALL, value, away);
        if (lane >= away) value += other;
    }
    return value;
}

// Place of a point in the cube, along each axis.
struct Place {
    u64 x, y, z;

    __device__ bool operator==(const Place& other) const {
        return x == other.x && y == other.y && z == other.z;
    }
};

// Spreads the 10 bits of a number to every third bit.
__device__ inline u32 spread_few(u32 v) {
    v = (v | v << 16) & 0x030000FF;
    v = (v | v << 8) & 0x0300F00F;
    v = (v | v << 4) & 0x030C30C3;
    return (v | v << 2) & 0x09249249;
}

// The highest bits of a place, followed by zeros if it has fewer.
__device__ inline u64 digits(u64 place, int bits) {
    return bits <= BITS ? place >> (BITS - bits) : place << (bits - BITS);
}

struct Cube {
    double x0, y0, z0, size;

    __device__ u64 place(double v, double low) const {
        if (size == 0.0) return 0;
        const u64 top = (1ull << BITS) - 1;
        const u64 steps = (u64)(__ddiv_rn(v - low, size) * (double)(1ull << BITS));
        return steps < top ? steps : top;
    }
    template <typename Point>
    __device__ Place place(const Point& point) const {
        return {place(point.x, x0), place(point.y, y0), place(point.z, z0)};
    }
};

// A point of 16 bytes; red is the lowest byte, then green and blue.
struct alignas(16) Packed {
    static const int CHANNELS = 3;
    float x, y, z;
    u32 colour;

    __device__ u32 channel(int k) const { return colour >> 8 * k & 0xFF; }
};

// A point of 32 bytes; red is in the lowest bits, then green, blue and intensity.
struct alignas(16) Wide {
    static const int CHANNELS = 4;
    double x, y, z;
    u64 colour;

    __device__ u32 channel(int k) const { return (u32)(colour >> 16 * k) & 0xFFFF; }
};

// Four times the rounding error of a number below 1.
__device__ inline float roundings(float) { return 1.0f / (1 << 22); }
__device__ inline double roundings(double) { return 1.0 / (1ll << 51); }

// Computes the cell of a point at a level, as a Morton code within the cell `depth` levels above: x
// is the highest bit of each three, depth <= 10. The exact place needs a float64 division; a product
// in the type of the point gives the same cell unless it is too close to a face of a cell.
template <typename Real>
struct Cells {
    Cube cube;
    int level, depth;
    Real x0, y0, z0, scale, margin;

    __device__ Cells(Cube cube, int level, int depth)
        : cube(cube), level(level), depth(depth), x0((Real)cube.x0), y0((Real)cube.y0),
          z0((Real)cube.z0) {
        const double steps = (double)(1ull << level);
        scale = (Real)(steps / cube.size);
        const bool corner = x0 == cube.x0 && y0 == cube.y0 && z0 == cube.z0;
        const bool normal = scale > (Real)1e-30;  // has full precision
        margin = corner && normal ? (Real)steps * roundings(scale) : (Real)1;
    }

    // Along one axis. NaN counts as close to a face.
    __device__ u32 along(Real value, Real low, double corner) const {
        const Real at = (value - low) * scale;
        u32 cell = (u32)at;
        const Real rest = at - (Real)cell;
        if (!(rest > margin && rest < 1 - margin))
            cell = (u32)digits(cube.place(value, corner), level);
        return cell & ((1u << depth) - 1);
    }

    template <typename Point>
    __device__ u32 of(const Point& point) const {
        const u32 x = along(point.x, x0, cube.x0), y = along(point.y, y0, cube.y0);
        return spread_few(x) << 2 | spread_few(y) << 1 | spread_few(along(point.z, z0, cube.z0));
    }
};

// Points as the kernels of build_lod have them, and their place in the cube; see tree.py.

#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define BITS 53  // of a place along an axis

// Place of a point in the cube, along each axis.
struct Place {
    u64 x, y, z;

    __device__ bool operator==(const Place& other) const {
        return x == other.x && y == other.y && z == other.z;
    }
};

// Every third bit, from the lowest; of the 21 lowest bits.
__device__ inline u64 spread(u64 v) {
    v &= 0x1FFFFF;
    v = (v | v << 32) & 0x001F00000000FFFFull;
    v = (v | v << 16) & 0x001F0000FF0000FFull;
    v = (v | v << 8) & 0x100F00F00F00F00Full;
    v = (v | v << 4) & 0x10C30C30C30C30C3ull;
    return (v | v << 2) & 0x1249249249249249ull;
}

// Cell of a place at a level, among the 8^depth cells of one that is `depth` levels above: its
// Morton code, x the highest bit of each three. level <= BITS, depth <= 21.
__device__ inline u64 code_of(const Place& place, int level, int depth) {
    const int shift = BITS - level;
    const u64 mask = (1ull << depth) - 1;
    return spread(place.x >> shift & mask) << 2 | spread(place.y >> shift & mask) << 1 |
           spread(place.z >> shift & mask);
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

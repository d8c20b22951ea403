// Minima and maxima of coordinates, as integers that atomics compare.

#pragma once

typedef unsigned long long u64;
typedef long long i64;

__device__ u64 ordered(double value) {
    // -0 becomes 0; then sign and magnitude become an order
    const i64 bits = __double_as_longlong(value + 0.0);
    return (u64)bits ^ ((u64)(bits >> 63) | 0x8000000000000000ull);
}

// Minimum of values, and maximum as its complement.
struct Ends {
    u64 min_bits, max_bits;

    __device__ Ends() : min_bits(~0ull), max_bits(~0ull) {}

    // Whether the value is finite.
    __device__ bool take(double value) {
        const u64 bits = ordered(value);
        min_bits = bits < min_bits ? bits : min_bits;
        max_bits = ~bits < max_bits ? ~bits : max_bits;
        return value - value == 0.0;
    }

    __device__ void write(u64* ends) {
        for (int away = 16; away > 0; away /= 2) {
            u64 other = __shfl_xor_sync(0xFFFFFFFFu, min_bits, away);
            min_bits = other < min_bits ? other : min_bits;
            other = __shfl_xor_sync(0xFFFFFFFFu, max_bits, away);
            max_bits = other < max_bits ? other : max_bits;
        }
        if (threadIdx.x % 32 != 0) return;
        atomicMin(&ends[0], min_bits);
        atomicMin(&ends[1], max_bits);
    }
};

// Bounds of coordinates, as integers that atomics compare.

#pragma once

typedef unsigned long long u64;
typedef long long i64;

__device__ u64 ordered(double value) {
    // -0 becomes 0; then sign and magnitude become an order
    const i64 bits = __double_as_longlong(value + 0.0);
    return (u64)bits ^ ((u64)(bits >> 63) | 0x8000000000000000ull);
}

// Bounds of values, the greatest as its complement.
struct Ends {
    u64 least, most;

    __device__ Ends() : least(~0ull), most(~0ull) {}

    // Whether the value is finite.
    __device__ bool take(double value) {
        const u64 bits = ordered(value);
        least = bits < least ? bits : least;
        most = ~bits < most ? ~bits : most;
        return value - value == 0.0;
    }

    __device__ void write(u64* ends) {
        for (int away = 16; away > 0; away /= 2) {
            u64 other = __shfl_xor_sync(0xFFFFFFFFu, least, away);
            least = other < least ? other : least;
            other = __shfl_xor_sync(0xFFFFFFFFu, most, away);
            most = other < most ? other : most;
        }
        if (threadIdx.x % 32 != 0) return;
        atomicMin(&ends[0], least);
        atomicMin(&ends[1], most);
    }
};

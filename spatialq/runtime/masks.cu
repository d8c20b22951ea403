// Counts of the values of a mask that are set.

typedef unsigned long long u64;
typedef long long i64;

extern "C" __global__ void count_set(const unsigned char* mask, i64 n, u64* total) {
    u64 found = 0;
    const i64 step = (i64)gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) found += mask[i] != 0;
    for (int away = 16; away > 0; away /= 2) found += __shfl_xor_sync(0xFFFFFFFFu, found, away);
    if (threadIdx.x % 32 == 0) atomicAdd(total, found);
}

// count_above: how many heights are greater than one.
// thread   one height          reads   z[i], coalesced          writes   n, by atomicAdd
extern "C" __global__ void count_above(const double* z, long long size, double height,
                                       unsigned long long* n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < size && z[i] > height) atomicAdd(n, 1ull);
}

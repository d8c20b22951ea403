// One thread per chunk, beside the kernels of spatialq/io/laz.cu.
#include "io/laz.cuh"

extern "C" __global__ void laz_layers_alone(
    const i64* chunks, i64 n, i64 record, i64 n_layers, u16* work, i64 channels, int* x, int* y,
    int* z, int* errors
) {
    const i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    const Chunk chunk(chunks, k);
    const u8* layer;
    u32 sizes[2];
    u32 error = open_layers(chunk, record, n_layers, layer, sizes);
    if (error == GOOD) {
        LayerXY<ALONE> xy;
        LayerZ<ALONE> up;
        xy.work = work + k * layer_words(channels);
        up.work = xy.work + channels * XY_WORDS;
        xy.channels = (u32)channels;
        xy.start(chunk.begin, layer, sizes[0], chunk.rows);
        up.start(chunk.begin, layer + sizes[0], sizes[1], chunk.rows);
        for (u32 i = 0; i < chunk.rows; ++i) {
            if (i > 0) {
                const u32 note = xy.next(true);
                if (xy.coder.error != GOOD) break;
                up.next(true, note);
                if (up.coder.error != GOOD) break;
            }
            x[chunk.first + i] = (int)xy.x;
            y[chunk.first + i] = (int)xy.y;
            z[chunk.first + i] = (int)up.z;
        }
        error = xy.coder.error ? xy.coder.error : up.coder.error;
    }
    errors[k] = (int)error;
}

extern "C" __global__ void laz_points_alone(
    const i64* chunks, i64 n, i64 items, i64 extra, u16* work, i64 pages, int* x, int* y, int* z,
    int* errors
) {
    const i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (k < n) all_points<ALONE>(chunks, k, true, items, extra, work, pages, x, y, z, errors);
}

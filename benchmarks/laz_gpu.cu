// One thread per chunk, beside the kernels of spatialq/io/laz.cu.
#include "io/laz.cuh"

extern "C" __global__ void laz_layers_alone(
    const i64* chunks, i64 n, i64 record, i64 n_layers, u16* work, i64 channels, int* x, int* y,
    int* z, i64 wanted, u8* notes, int* errors
) {
    const i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    const Chunk chunk(chunks, k);
    const u8 *layer, *layer_z;
    u32 size, size_z;
    u32 error = open_layer(chunk, record, n_layers, 0, layer, size);
    if (error == GOOD) error = open_layer(chunk, record, n_layers, 1, layer_z, size_z);
    if (error == GOOD) {
        LayerXY<ALONE> xy;
        LayerZ<ALONE> up;
        xy.work = work + k * layer_words(channels);
        up.work = xy.work + channels * XY_WORDS;
        xy.channels = (u32)channels;
        xy.start(chunk.begin, layer, size, chunk.rows);
        up.start(chunk.begin, layer_z, size_z, chunk.rows);
        for (u32 i = 0; i < chunk.rows; ++i) {
            if (i > 0) {
                const u32 note = xy.next(true);
                if (xy.coder.error != GOOD) break;
                if (wanted) notes[chunk.first + i] = (u8)(note >> 8);
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

extern "C" __global__ void laz_attributes_alone(
    const i64* chunks, i64 n, i64 record, i64 n_layers, u16* work, i64 channels, const u8* notes,
    i64 wanted, u8* classes, u16* intensities, u16* red, u16* green, u16* blue, int* errors
) {
    const Outputs to = {wanted, classes, intensities, red, green, blue};
    const i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    for (u32 which = 0; which < ATTRIBUTES; ++which) {
        if (!to.wants(which)) continue;
        const i64 words_of = attribute_words(which, channels);
        if (errors[k] == GOOD)
            one_attribute<ALONE>(
                which, chunks, k, true, record, n_layers, work + k * words_of, notes, to, errors
            );
        work += n * words_of;
    }
}

extern "C" __global__ void laz_points_alone(
    const i64* chunks, i64 n, i64 items, i64 extra, u16* work, i64 pages, int* x, int* y, int* z,
    i64 wanted, u8* classes, u16* intensities, u16* red, u16* green, u16* blue, int* errors
) {
    const Outputs to = {wanted, classes, intensities, red, green, blue};
    const i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (k < n) all_points<ALONE>(chunks, k, true, items, extra, work, pages, x, y, z, to, errors);
}

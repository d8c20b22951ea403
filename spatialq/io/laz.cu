#include "io/laz.cuh"

// Decode chunks of point formats 6 to 10, `lanes` of them in a block of two warps that meet after
// each batch of points: one for the layers of x and y, one for those of z. Where attributes are
// wanted, each point leaves the note that they need.
extern "C" __global__ void laz_layers(
    const i64* chunks, i64 n, i64 record, i64 n_layers, u16* work, i64 channels, i64 lanes, int* x,
    int* y, int* z, i64 wanted, u8* notes, int* errors
) {
    __shared__ u16 boards[2 * BATCH * 32];
    const u32 lane = threadIdx.x % 32;
    const bool second = threadIdx.x >= 32;
    const i64 k = (i64)blockIdx.x * lanes + lane;
    const bool mine = lane < lanes && k < n;
    LayerXY<LOCKSTEP> xy;
    LayerZ<LOCKSTEP> up;
    xy.models = xy.work = work + (mine ? k : 0) * layer_words(channels);
    up.models = up.work = xy.work + channels * XY_WORDS;
    xy.channels = (u32)channels;
    u32 rows = 0, error = GOOD;
    i64 first = 0;
    if (mine) {
        const Chunk chunk(chunks, k);
        const u8* layer;
        u32 size;
        error = open_layer(chunk, record, n_layers, second, layer, size);
        if (error == GOOD) {
            rows = chunk.rows;
            first = chunk.first;
            if (second) {
                up.start(chunk.begin, layer, size, rows);
                z[first] = (int)up.z;
            } else {
                xy.start(chunk.begin, layer, size, rows);
                x[first] = (int)xy.x;
                y[first] = (int)xy.y;
            }
        }
    }
    const u32 all = most_of_warp(rows);
    // the second warp is one batch behind the first
    for (u32 from = 1, turn = 0; from < all + BATCH; from += BATCH, turn ^= 1) {
        u16* board = boards + (second ? turn ^ 1 : turn) * BATCH * 32;
        if (!second) {
            for (u32 i = from; i < from + BATCH && i < all; ++i) {
                const bool on = i < rows && xy.coder.error == GOOD;
                const u32 note = xy.next(on);
                board[(i - from) * 32 + lane] = on ? note : 0;
                if (on) {
                    x[first + i] = (int)xy.x;
                    y[first + i] = (int)xy.y;
                    if (wanted) notes[first + i] = (u8)(note >> 8);
                }
            }
        } else if (from > BATCH) {
            for (u32 i = from - BATCH; i < from && i < all; ++i) {
                const bool on = i < rows && up.coder.error == GOOD;
                up.next(on, board[(i + BATCH - from) * 32 + lane]);
                if (on) z[first + i] = (int)up.z;
            }
        }
        __syncthreads();
    }
    if (mine) {
        if (error == GOOD) error = second ? up.coder.error : xy.coder.error;
        if (error != GOOD) atomicMax(&errors[k], (int)error);
    }
}

// Decode the wanted attributes of chunks of point formats 6 to 10 without errors, after their
// coordinates: `lanes` of the chunks in a block of one warp, which row of blocks says the attribute.
extern "C" __global__ void laz_attributes(
    const i64* chunks, i64 n, i64 record, i64 n_layers, u16* work, i64 channels, i64 lanes,
    const u8* notes, i64 wanted, u8* classes, u16* intensities, u16* red, u16* green, u16* blue,
    int* errors
) {
    const Outputs to = {wanted, classes, intensities, red, green, blue};
    const u32 lane = threadIdx.x % 32;
    const i64 k = (i64)blockIdx.x * lanes + lane;
    const bool mine = lane < lanes && k < n && errors[k] == GOOD;
    u32 which = 0;
    for (u32 row = 0; !to.wants(which) || row < blockIdx.y; ++which)
        if (to.wants(which)) {
            work += n * attribute_words(which, channels);
            ++row;
        }
    work += (mine ? k : 0) * attribute_words(which, channels);
    one_attribute<LOCKSTEP>(which, chunks, k, mine, record, n_layers, work, notes, to, errors);
}

// Decode chunks of point formats 0 to 3, `lanes` of them in a block of one warp.
extern "C" __global__ void laz_points(
    const i64* chunks, i64 n, i64 items, i64 extra, u16* work, i64 pages, i64 lanes, int* x, int* y,
    int* z, i64 wanted, u8* classes, u16* intensities, u16* red, u16* green, u16* blue, int* errors
) {
    const Outputs to = {wanted, classes, intensities, red, green, blue};
    const u32 lane = threadIdx.x % 32;
    const i64 k = (i64)blockIdx.x * lanes + lane;
    const bool mine = lane < lanes && k < n;
    all_points<LOCKSTEP>(chunks, k, mine, items, extra, work, pages, x, y, z, to, errors);
}

// Coordinates of points: integers times a scale, plus an offset. Of the integers, the least and the
// greatest.
extern "C" __global__ void laz_coordinates(
    const int* integers, i64 n, double scale, double offset, double* coordinates, int* ends
) {
    int least_ = 0x7fffffff, most_ = -least_ - 1;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
        const int v = integers[i];
        coordinates[i] = v * scale + offset;
        least_ = v < least_ ? v : least_;
        most_ = v > most_ ? v : most_;
    }
    if (least_ <= most_) {
        atomicMin(ends, least_);
        atomicMax(ends + 1, most_);
    }
}

// 16-bit words of the models of a chunk of each kind, and of each attribute of one with layers.
extern "C" __global__ void laz_sizes(i64 channels, i64 extra, i64 pages, i64* sizes) {
    sizes[0] = layer_words(channels);
    sizes[1] = point_words(extra, pages);
    for (u32 which = 0; which < ATTRIBUTES; ++which)
        sizes[2 + which] = attribute_words(which, channels);
}

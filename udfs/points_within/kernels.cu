// points_within on the GPU: pairs are counted, then written in the order of the points.
#include "geometry/point_polygons.cuh"

const unsigned ALL = 0xffffffffu;

// What the lanes up to this one have together.
__device__ inline int sum_up_to(int value) {
    for (int away = 1; away < 32; away *= 2) {
        const int other = __shfl_up_sync(ALL, value, away);
        if (threadIdx.x % 32 >= away) value += other;
    }
    return value;
}

// within_count: the polygon of each point that is in one, NOTHING of one in none, and NOTHING less
// their number of one in several; the pairs of each warp.
// thread   one point; those of a warp are mostly near each other
extern "C" __global__ void within_count(const double* x, const double* y, i64 n, const double* box,
                                        const double* grid, i64 nx, i64 ny, const int* cells,
                                        const int* lists, const double* bottom,
                                        const double* scale, const i64* row_starts,
                                        const i64* begins, const Edge* listed, int* answers,
                                        i64* counts) {
    const PolygonIndex index = {box,    grid,  nx,         ny,     cells, lists,
                                bottom, scale, row_starts, begins, listed};
    const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    int first = NOTHING, count = 0;
    if (i < n) {
        count = polygons_of(index, x[i], y[i], 0, first);
        answers[i] = count < 2 ? first : NOTHING - count;
    }
    const int sum = sum_up_to(count);
    if (threadIdx.x % 32 == 31) counts[i / 32] = sum;
}

// within_write: the pairs, in the order of the points; a point in several polygons asks again.
// thread   one point
extern "C" __global__ void within_write(const double* x, const double* y, i64 n, const double* box,
                                        const double* grid, i64 nx, i64 ny, const int* cells,
                                        const int* lists, const double* bottom,
                                        const double* scale, const i64* row_starts,
                                        const i64* begins, const Edge* listed,
                                        const int* answers, const i64* starts, const i64* ids,
                                        i64 position, i64* point_id, i64* polygon_id) {
    const PolygonIndex index = {box,    grid,  nx,         ny,     cells, lists,
                                bottom, scale, row_starts, begins, listed};
    const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    int answer = i < n ? answers[i] : NOTHING;
    const int count = answer < NOTHING ? NOTHING - answer : answer > NOTHING;
    const int before = sum_up_to(count) - count;
    if (count == 0) return;
    const i64 at = starts[i / 32] + before;
    if (count == 1) polygon_id[at] = answer;
    else polygons_of(index, x[i], y[i], polygon_id + at, answer);
    for (int k = 0; k < count; ++k) point_id[at + k] = ids ? ids[i] : position + i;
}

// The order of a k-d tree on the GPU: that of neighbours.py. Three lists have all points, by x, y
// and z. From level to level, each cell's part of each list is divided into the points before the
// median and those behind it, so that the ends of a cell are the first and last of its parts (Brown
// 2015, Building a balanced k-d tree in O(kn log n) time, JCGT 4(1), section 3).
#include "geometry/bounds.cuh"
#include "geometry/neighbours.cuh"

// Which cell of a level has a place.
__device__ i64 cell_of(i64 n, i64 level, i64 place) { return (((place + 1) << level) - 1) / n; }

// neighbours_keys: integers in the order of coordinates.
// thread   one point
extern "C" __global__ void neighbours_keys(const double* values, i64 n, u64* keys) {
    const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (i < n) keys[i] = ordered(values[i]);
}

// neighbours_cells: boxes of the cells of a level, and the axes along which they are divided.
// thread   one cell
// reads    the first and last of its part of each list
extern "C" __global__ void neighbours_cells(const double* x, const double* y, const double* z,
                                            const int* lists, i64 n, i64 level, double* boxes,
                                            signed char* axes) {
    const i64 j = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (j >= 1ll << level) return;
    const double* coordinates[3] = {x, y, z};
    const i64 first = first_of(n, level, j), stop = first_of(n, level, j + 1);
    double* box = boxes + 6 * ((1ll << level) - 1 + j);
    double widest = -1.0;
    for (int k = 0; k < 3; ++k) {
        const double low = coordinates[k][lists[k * n + first]];
        const double high = coordinates[k][lists[k * n + stop - 1]];
        box[k] = low;
        box[3 + k] = high;
        if (high - low > widest) {
            axes[j] = (signed char)k;
            widest = high - low;
        }
    }
}

// neighbours_sides: whether points are behind the median of their cell, along its axis.
// thread   one place in the lists
// writes   behind[row], each by one thread
extern "C" __global__ void neighbours_sides(const int* lists, i64 n, i64 level,
                                            const signed char* axes, unsigned char* behind) {
    const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const i64 j = cell_of(n, level, i);
    behind[lists[axes[j] * n + i]] = i >= first_of(n, level + 1, 2 * j + 1);
}

// neighbours_flags: the same in the order of the lists, to be added up.
// thread   one place in one list
extern "C" __global__ void neighbours_flags(const int* lists, i64 n, const unsigned char* behind,
                                            int* flags) {
    const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (i < 3 * n) flags[i] = behind[lists[i]];
}

// neighbours_divide: divide the parts of all cells in all lists; the order of each side stays.
// thread   one place in one list
// reads    totals[i], flags up to i added up
extern "C" __global__ void neighbours_divide(const int* lists, i64 n, i64 level, const int* totals,
                                             int* divided) {
    const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (i >= 3 * n) return;
    const i64 list = i / n * n, place = i - list, j = cell_of(n, level, place);
    const i64 first = first_of(n, level, j), middle = first_of(n, level + 1, 2 * j + 1);
    const int before_cell = list + first > 0 ? totals[list + first - 1] : 0;
    const int before = i > 0 ? totals[i - 1] : 0;
    const i64 behind = before - before_cell;  // of the points before this one
    const bool is_behind = totals[i] > before;
    divided[list + (is_behind ? middle + behind : place - behind)] = lists[i];
}

// neighbours_leaves: the order within the cells that are not divided, by rows, and their lowest.
// thread   one cell
extern "C" __global__ void neighbours_leaves(const int* lists, i64 n, i64 level, int* order,
                                             int* lowest) {
    const i64 leaf = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (leaf >= 1ll << level) return;
    const i64 first = first_of(n, level, leaf), stop = first_of(n, level, leaf + 1);
    for (i64 i = first; i < stop; ++i) {
        const int row = lists[i];
        i64 j = i;
        for (; j > first && order[j - 1] > row; --j) order[j] = order[j - 1];
        order[j] = row;
    }
    lowest[(1ll << level) - 1 + leaf] = order[first];
}

// neighbours_lowest: the lowest rows of the cells of a level, from the level below it.
// thread   one cell
extern "C" __global__ void neighbours_lowest(i64 level, int* lowest) {
    const i64 j = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (j >= 1ll << level) return;
    const i64 node = (1ll << level) - 1 + j;
    const int a = lowest[2 * node + 1], b = lowest[2 * node + 2];
    lowest[node] = a < b ? a : b;
}

// neighbours_points: the points in the order of the tree.
// thread   one place
extern "C" __global__ void neighbours_points(const double* x, const double* y, const double* z,
                                             const int* order, i64 n, double* points) {
    const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int row = order[i];
    points[3 * i] = x[row];
    points[3 * i + 1] = y[row];
    points[3 * i + 2] = z[row];
}

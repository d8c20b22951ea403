// owm_ground on the GPU. The same slots, windows and rules as on the CPU (windows.py, cells.py).
//
// A cell keeps its lowest point as one 64-bit key: the leading bits of the height, in an order
// that integers share, and behind them the position of the point. Keys that differ in the bits
// of the height compare as integers; else the exact heights are fetched, and then the tie rule
// decides. Lattices of millimetres nearly always differ, so the exact rule costs next to nothing.

typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef THREADS
#define THREADS 256  // of a block that bins points
#endif
#ifndef POINTS
#define POINTS 8  // that a thread of such a block holds at once
#endif
#ifndef LOCAL
#define LOCAL 2048  // cells that such a block can count in shared memory
#endif
#define CHUNK (THREADS * POINTS)

static const u64 NONE = ~0ull;  // no point: above all keys, and what memset(0xFF) leaves
static const int WORDS = 1024;  // words of a bitmap that a block collects

// The layout of Axis, Grid, Cell, Run and Tally is repeated in gpu.py.

struct Axis {
    const double* borders;  // of windows and fill cells, ascending, then infinity
    const int* guess;       // bucket -> a border at or below all of its coordinates
    const int* columns;     // place -> column; place 2k is border k, 2k + 1 the interval above it
    const int* order;       // column of each slot, along the axis
    const int* window_start;
    const int* window_stop;  // run of slots of each window
    const int* fill_start;
    const int* fill_stop;
    double scale;   // buckets per unit
    double step;    // of the borders if these are even but for rounding, else 0
    double margin;  // share of a step next to a border where arithmetic alone cannot decide
    int n_borders;
    int n_slots;
    int n_windows;
    int n_fills;
};

struct Grid {
    Axis x, y;
    double x_low, x_high, y_low, y_high;  // extent of the cloud
    double root_x, root_y, root_half;     // of the reference's octree
    u64 least;                            // points that a window must hold
    int needed;                           // hits that make a seed
    int id_bits;                          // of a key that hold the position
    int octree;                           // whether ties go by the octree
    int padding;
};

struct Cell {
    u64 key;
    u32 n;     // points, less one
    u32 hits;  // windows won, less one
};

struct Run {  // lowest point and number of points of a run of slots in one row
    u64 key;
    u32 n;
    u32 column;
};

struct Tally {
    u64 bad;        // points that are not finite, or outside of the extent
    u64 first_bad;  // complement of the first one's position
};

struct Cloud {
    const double* x;
    const double* y;
    const double* z;
    const long long* point_id;  // null: the positions
};

__device__ int warp_min(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(0xFFFFFFFFu, value);
#else
    for (int away = 16; away > 0; away /= 2)
        value = min(value, __shfl_xor_sync(0xFFFFFFFFu, value, away));
    return value;
#endif
}

__device__ int warp_max(int value) { return ~warp_min(~value); }

// ---- heights, keys and the rule which point is the lowest

__device__ u64 ordered(double value) {
    // -0 becomes 0; then sign and magnitude become an order
    long long bits = __double_as_longlong(value + 0.0);
    return (u64)bits ^ ((u64)(bits >> 63) | 0x8000000000000000ull);
}

__device__ double from_ordered(u64 bits) {
    return __longlong_as_double((long long)(bits >> 63 ? bits ^ 0x8000000000000000ull : ~bits));
}

__device__ u32 ordered_float(double value) {
    int bits = __float_as_int((float)value + 0.0f);
    return (u32)bits ^ ((u32)(bits >> 31) | 0x80000000u);
}

__device__ u64 make_key(double z, u64 position, int id_bits) {
    return (ordered(z) >> id_bits << id_bits) | position;
}

__device__ u64 position_of(u64 key, int id_bits) { return key & ((1ull << id_bits) - 1); }

// The order in which the reference's octree visits points: three bits a level (cells.py).
__device__ long long octree_code(const Grid& grid, double x, double y, double z) {
    double cx = grid.root_x, cy = grid.root_y, cz = 0.0;
    float half = (float)grid.root_half;
    long long code = 0;
    while ((double)(half / 2.0f) > 0.10) {
        half = half / 2.0f;
        bool right = x >= cx, behind = y >= cy, up = z >= cz;
        code = 8 * code + 4 * right + 2 * behind + up;
        cx += right ? (double)half : -(double)half;
        cy += behind ? (double)half : -(double)half;
        cz += up ? (double)half : -(double)half;
    }
    return code;
}

__device__ __noinline__ bool tie_goes_to(const Grid& grid, const Cloud& cloud, u64 p, u64 q) {
    if (grid.octree) {
        long long a = octree_code(grid, cloud.x[p], cloud.y[p], cloud.z[p]);
        long long b = octree_code(grid, cloud.x[q], cloud.y[q], cloud.z[q]);
        if (a != b) return a < b;
    }
    if (cloud.point_id && cloud.point_id[p] != cloud.point_id[q])
        return cloud.point_id[p] < cloud.point_id[q];
    return p < q;
}

// Whether the point of key a is lower than that of key b.
__device__ bool is_lower(const Grid& grid, const Cloud& cloud, u64 a, u64 b) {
    if ((a ^ b) >> grid.id_bits) return a < b;
    u64 p = position_of(a, grid.id_bits), q = position_of(b, grid.id_bits);
    if (p == q) return false;
    double u = cloud.z[p], v = cloud.z[q];
    return u != v ? u < v : tie_goes_to(grid, cloud, p, q);
}

// ---- where a coordinate lies

__device__ int search_place(const Axis& axis, double value) {
    const double* borders = axis.borders;
    if (!(value >= borders[0] && value <= borders[axis.n_borders - 1])) return -1;
    int k = axis.guess[(int)((value - borders[0]) * axis.scale)];
    while (borders[k + 1] <= value) ++k;
    return 2 * k + (borders[k] < value);
}

// Place of a coordinate; -1 where no window or fill cell reaches. Even borders need no look at
// them except for coordinates that are on one, or next to one.
__device__ int place_of(const Axis& axis, double low, double per_step, double value) {
    double t = (value - low) * per_step;
    double k = floor(t);
    double part = t - k;
    bool inside = k >= 0.0 && k < (double)(axis.n_borders - 1);
    if (inside && part > axis.margin && part < 1.0 - axis.margin) return 2 * (int)k + 1;
    return search_place(axis, value);
}

__device__ u64 cell_at(const Grid& grid, int x_place, int y_place) {
    return (u64)grid.y.columns[y_place] * grid.x.n_slots + grid.x.columns[x_place];
}

__device__ u64 cell_of(const Grid& grid, double x, double y) {
    return cell_at(grid, search_place(grid.x, x), search_place(grid.y, y));
}

// ---- the extent of a cloud

// owm_extent: least and greatest x and y, and what is not finite.
// thread   points, grid-stride; a warp joins its own before it touches memory
// writes   low[0..3]: ordered x, y and the complements of their greatest
extern "C" __global__ void owm_extent(const double* x, const double* y, long long n, u64* low, Tally* tally) {
    u64 least[4] = {NONE, NONE, NONE, NONE};
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
         i += (long long)gridDim.x * blockDim.x) {
        double a = x[i], b = y[i];
        if ((a - a) + (b - b) != 0.0) {  // infinity and NaN give NaN
            atomicAdd(&tally->bad, 1ull);
            atomicMax(&tally->first_bad, ~(u64)i);
            continue;
        }
        u64 p = ordered(a), q = ordered(b);
        least[0] = p < least[0] ? p : least[0];
        least[1] = q < least[1] ? q : least[1];
        least[2] = ~p < least[2] ? ~p : least[2];
        least[3] = ~q < least[3] ? ~q : least[3];
    }
    for (int k = 0; k < 4; ++k) {
        for (int away = 16; away > 0; away /= 2) {
            u64 other = __shfl_xor_sync(0xFFFFFFFFu, least[k], away);
            least[k] = other < least[k] ? other : least[k];
        }
        if (threadIdx.x % 32 == 0 && least[k] != NONE) atomicMin(&low[k], least[k]);
    }
}

// owm_occupied: which places along either axis have points.
// thread   points, grid-stride
// races    all write the same value
extern "C" __global__ void owm_occupied(const Grid* grid, const double* x, const double* y, long long n, unsigned char* x_used,
                         unsigned char* y_used) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
         i += (long long)gridDim.x * blockDim.x) {
        int a = search_place(grid->x, x[i]), b = search_place(grid->y, y[i]);
        if (a >= 0) x_used[a] = 1;
        if (b >= 0) y_used[b] = 1;
    }
}

// ---- binning

__device__ void offer(const Grid& grid, const Cloud& cloud, Cell* cell, u64 key) {
    u64 now = __ldcg(&cell->key);
    while (is_lower(grid, cloud, key, now)) {
        u64 seen = atomicCAS(&cell->key, now, key);
        if (seen == now) return;
        now = seen;
    }
}

// owm_bin: count and lowest point of each cell.                          (section 2.1 of the source)
// block    chunks of CHUNK points, grid-stride. Where a chunk covers at most LOCAL cells, as in
//          the order of flight lines, it is counted in shared memory and only the few points that
//          may be the lowest of a cell go on; else each point goes to its cell by itself
// writes   cells[].key and .n
// races    additions, and a compare-and-swap whose winner does not depend on the order
extern "C" __global__ void __launch_bounds__(THREADS) owm_bin(const Grid* whole, const double* x, const double* y, const double* z,
    const long long* point_id, long long n,
                                               Cell* cells, Tally* tally) {
    const Cloud cloud = {x, y, z, point_id};
    __shared__ u32 count[LOCAL];
    __shared__ u32 lowest[LOCAL];
    __shared__ int left, bottom, right, top;  // columns and rows of intervals that a chunk meets
    const Grid& grid = *whole;
    const double x_first = grid.x.borders[0], y_first = grid.y.borders[0];
    const double x_per_step = grid.x.step > 0.0 ? 1.0 / grid.x.step : 0.0;
    const double y_per_step = grid.y.step > 0.0 ? 1.0 / grid.y.step : 0.0;
    const int me = threadIdx.x;
    const int n_columns = grid.x.n_slots, id_bits = grid.id_bits;
    for (long long first = blockIdx.x * (long long)CHUNK; first < n;
         first += gridDim.x * (long long)CHUNK) {
        double a[POINTS], b[POINTS], h[POINTS];
        int column[POINTS], row[POINTS];  // of a point in no interval: column -1
#pragma unroll
        for (int k = 0; k < POINTS; ++k) {
            long long i = first + k * THREADS + me;
            bool some = i < n;
            a[k] = some ? __ldcs(x + i) : 0.0;
            b[k] = some ? __ldcs(y + i) : 0.0;
            h[k] = some ? __ldcs(z + i) : 0.0;
        }
        if (me == 0) left = bottom = 0x7FFFFFFF, right = top = -1;
        __syncthreads();
        int least_column = 0x7FFFFFFF, most_column = -1, least_row = 0x7FFFFFFF, most_row = -1;
#pragma unroll
        for (int k = 0; k < POINTS; ++k) {
            long long i = first + k * THREADS + me;
            column[k] = -1;
            row[k] = 0;
            if (i >= n) continue;
            bool inside = a[k] >= grid.x_low && a[k] <= grid.x_high && b[k] >= grid.y_low &&
                          b[k] <= grid.y_high;
            if (!inside || h[k] - h[k] != 0.0) {
                atomicAdd(&tally->bad, 1ull);
                atomicMax(&tally->first_bad, ~(u64)i);
                continue;
            }
            const int across = place_of(grid.x, x_first, x_per_step, a[k]);
            const int along = place_of(grid.y, y_first, y_per_step, b[k]);
            if (across < 0 || along < 0) continue;
            if (!(across & along & 1)) {  // on a border: one point in a hundred, with columns far away
                Cell* cell = cells + cell_at(grid, across, along);
                atomicAdd(&cell->n, 1u);
                offer(grid, cloud, cell, make_key(h[k], i, id_bits));
                continue;
            }
            column[k] = x_per_step > 0.0 ? across / 2 : grid.x.columns[across];
            row[k] = y_per_step > 0.0 ? along / 2 : grid.y.columns[along];
            least_column = min(least_column, column[k]);
            most_column = max(most_column, column[k]);
            least_row = min(least_row, row[k]);
            most_row = max(most_row, row[k]);
        }
        least_column = warp_min(least_column);
        most_column = warp_max(most_column);
        least_row = warp_min(least_row);
        most_row = warp_max(most_row);
        if (me % 32 == 0) {
            atomicMin(&left, least_column);
            atomicMax(&right, most_column);
            atomicMin(&bottom, least_row);
            atomicMax(&top, most_row);
        }
        __syncthreads();
        const int c0 = left, r0 = bottom;
        const long long width = (long long)right - c0 + 1, depth = (long long)top - r0 + 1;
        if (width > 0 && width * depth <= LOCAL) {
            const int area = (int)(width * depth);
            for (int k = me; k < area; k += THREADS) count[k] = 0, lowest[k] = 0xFFFFFFFFu;
            __syncthreads();
#pragma unroll
            for (int k = 0; k < POINTS; ++k) {
                if (column[k] < 0) continue;
                int local = (row[k] - r0) * (int)width + column[k] - c0;
                atomicAdd(&count[local], 1u);
                atomicMin(&lowest[local], ordered_float(h[k]));
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < POINTS; ++k) {
                if (column[k] < 0) continue;
                int local = (row[k] - r0) * (int)width + column[k] - c0;
                if (ordered_float(h[k]) != lowest[local]) continue;
                Cell* cell = cells + (u64)row[k] * n_columns + column[k];
                offer(grid, cloud, cell, make_key(h[k], first + k * THREADS + me, id_bits));
            }
            for (int k = me; k < area; k += THREADS)
                if (count[k]) {
                    u64 cell = (u64)(r0 + k / (int)width) * n_columns + c0 + k % (int)width;
                    atomicAdd(&cells[cell].n, count[k]);
                }
        } else {
#pragma unroll
            for (int k = 0; k < POINTS; ++k) {
                if (column[k] < 0) continue;
                Cell* cell = cells + (u64)row[k] * n_columns + column[k];
                atomicAdd(&cell->n, 1u);
                offer(grid, cloud, cell, make_key(h[k], first + k * THREADS + me, id_bits));
            }
        }
        __syncthreads();  // before the next chunk writes what this one still reads
    }
}

// ---- windows

// owm_rows: lowest point and count of each window's run of slots, row by row.
// thread   one window along x in one row of slots (blockIdx.y, grid-stride)
// reads    the cells of its run; its neighbours read nearly the same    writes  runs[row][window]
extern "C" __global__ void owm_rows(const Grid* whole, const double* x, const double* y, const double* z,
    const long long* point_id, const Cell* cells, Run* runs) {
    const Cloud cloud = {x, y, z, point_id};
    const Grid& grid = *whole;
    const int window = blockIdx.x * blockDim.x + threadIdx.x;
    if (window >= grid.x.n_windows) return;
    const int start = grid.x.window_start[window], stop = grid.x.window_stop[window];
    for (int slot = blockIdx.y; slot < grid.y.n_slots; slot += gridDim.y) {
        const Cell* row = cells + (u64)grid.y.order[slot] * grid.x.n_slots;
        Run run = {NONE, 0, 0};
        for (int k = start; k < stop; ++k) {
            const u32 column = grid.x.order[k];
            const Cell cell = row[column];
            if (cell.key == NONE) continue;
            run.n += cell.n + 1;
            if (is_lower(grid, cloud, cell.key, run.key)) run.key = cell.key, run.column = column;
        }
        runs[(u64)slot * grid.x.n_windows + window] = run;
    }
}

// owm_columns: the lowest point of each window that holds enough points gets a hit.
// thread   one window along x; blockIdx.y its place along y, grid-stride
// reads    runs[slots of the window][window]      writes  cells[].hits, the bitmap of seeds
// races    additions; the hit that makes a seed sets its bit
extern "C" __global__ void owm_columns(const Grid* whole, const double* x, const double* y, const double* z,
    const long long* point_id, const Run* runs, Cell* cells, u32* seeds) {
    const Cloud cloud = {x, y, z, point_id};
    const Grid& grid = *whole;
    const int window = blockIdx.x * blockDim.x + threadIdx.x;
    if (window >= grid.x.n_windows) return;
    for (int j = blockIdx.y; j < grid.y.n_windows; j += gridDim.y) {
        u64 key = NONE, n = 0, winner = 0;
        for (int slot = grid.y.window_start[j]; slot < grid.y.window_stop[j]; ++slot) {
            const Run run = runs[(u64)slot * grid.x.n_windows + window];
            n += run.n;
            if (run.key == NONE || !is_lower(grid, cloud, run.key, key)) continue;
            key = run.key;
            winner = (u64)grid.y.order[slot] * grid.x.n_slots + run.column;
        }
        if (key == NONE || n < grid.least) continue;
        const u32 hits = atomicAdd(&cells[winner].hits, 1u) + 2u;  // it began at less one
        if (hits != (u32)grid.needed) continue;
        const u64 p = position_of(key, grid.id_bits);
        atomicOr(&seeds[p / 32], 1u << (p % 32));
    }
}

// owm_fill: the lowest point of each fill cell that has points but no seed.
// warp     one fill cell; its lanes share the cells of it
// writes   the bitmap of filled points; fill cells are disjoint, so no bit is set twice
extern "C" __global__ void owm_fill(const Grid* whole, const double* x, const double* y, const double* z,
    const long long* point_id, const Cell* cells, u32* filled) {
    const Cloud cloud = {x, y, z, point_id};
    const Grid& grid = *whole;
    const int lane = threadIdx.x % 32;
    const long long n_fills = (long long)grid.x.n_fills * grid.y.n_fills;
    const long long n_warps = (long long)gridDim.x * (blockDim.x / 32);
    for (long long f = blockIdx.x * (long long)(blockDim.x / 32) + threadIdx.x / 32; f < n_fills;
         f += n_warps) {
        const int i = (int)(f % grid.x.n_fills), j = (int)(f / grid.x.n_fills);
        const int x0 = grid.x.fill_start[i], y0 = grid.y.fill_start[j];
        const long long width = grid.x.fill_stop[i] - x0;
        const long long area = width * (grid.y.fill_stop[j] - y0);
        u64 key = NONE;
        int seeded = 0;
        for (long long k = lane; k < area; k += 32) {
            const u64 row = grid.y.order[y0 + k / width];
            const Cell cell = cells[row * grid.x.n_slots + grid.x.order[x0 + k % width]];
            if (cell.key == NONE) continue;
            seeded |= (int)(cell.hits + 1u) >= grid.needed;
            if (is_lower(grid, cloud, cell.key, key)) key = cell.key;
        }
        if (__any_sync(0xFFFFFFFFu, seeded)) continue;
        for (int away = 16; away > 0; away /= 2) {
            const u64 other = __shfl_xor_sync(0xFFFFFFFFu, key, away);
            if (is_lower(grid, cloud, other, key)) key = other;
        }
        if (lane != 0 || key == NONE) continue;
        const u64 p = position_of(key, grid.id_bits);
        atomicOr(&filled[p / 32], 1u << (p % 32));
    }
}

// ---- the points found, in the order of their positions

__device__ u32 sum_of_block(u32 value, u32* shared) {
    for (int away = 16; away > 0; away /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, away);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    u32 sum = 0;
    for (int k = 0; k < (int)(blockDim.x / 32); ++k) sum += shared[k];
    return sum;
}

// owm_count: bits of each part of WORDS words.
// block    one part
extern "C" __global__ void owm_count(const u32* words, u32* counts) {
    __shared__ u32 shared[32];
    u32 n = 0;
    for (int k = threadIdx.x; k < WORDS; k += blockDim.x)
        n += __popc(words[blockIdx.x * (u64)WORDS + k]);
    n = sum_of_block(n, shared);
    if (threadIdx.x == 0) counts[blockIdx.x] = n;
}

// owm_collect: positions and hits of the bits set, ascending within either bitmap.
// block    one part; what the parts before it hold is added up by all of its threads
// writes   positions[], hits[]; totals[0]: bits of the first bitmap, totals[1]: of both
extern "C" __global__ void owm_collect(const Grid* whole, const double* x, const double* y, const double* z,
    const long long* point_id, const Cell* cells, const u32* words,
                        const u32* counts, int parts_of_one, u64* totals, long long* positions,
                        int* hits) {
    const Cloud cloud = {x, y, z, point_id};
    __shared__ u32 shared[32];
    __shared__ u32 ends[WORDS];
    const Grid& grid = *whole;
    const int part = blockIdx.x, me = threadIdx.x;
    u32 before = 0;
    for (int k = me; k < part; k += blockDim.x) before += counts[k];
    before = sum_of_block(before, shared);
    if (me == 0 && part == parts_of_one) totals[0] = before;
    if (me == 0 && part == (int)gridDim.x - 1) totals[1] = before + counts[part];
    if (counts[part] == 0) return;
    for (int k = me; k < WORDS; k += blockDim.x) ends[k] = __popc(words[part * (u64)WORDS + k]);
    for (int away = 1; away < WORDS; away *= 2) {  // running sums, in steps of doubling distance
        u32 sums[WORDS / 128];
        __syncthreads();
        for (int k = me, s = 0; k < WORDS; k += blockDim.x, ++s)
            sums[s] = ends[k] + (k >= away ? ends[k - away] : 0);
        __syncthreads();
        for (int k = me, s = 0; k < WORDS; k += blockDim.x, ++s) ends[k] = sums[s];
    }
    __syncthreads();
    const u64 first_word = (part < parts_of_one ? part : part - parts_of_one) * (u64)WORDS;
    for (int k = me; k < WORDS; k += blockDim.x) {
        u32 bits = words[part * (u64)WORDS + k];
        u64 at = before + ends[k] - __popc(bits);
        for (; bits; bits &= bits - 1, ++at) {
            const u64 p = (first_word + k) * 32 + __ffs((int)bits) - 1;
            positions[at] = (long long)p;
            hits[at] = (int)(cells[cell_of(grid, cloud.x[p], cloud.y[p])].hits + 1u);
        }
    }
}

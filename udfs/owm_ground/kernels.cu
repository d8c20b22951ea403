// owm_ground on the GPU, with the same slots, windows and rules as on the CPU (windows.py, cells.py).
//
// A cell stores its lowest point as one 64-bit key: the leading bits of the height, encoded so that
// integers compare like the heights, followed by the position of the point. Keys that differ in the
// bits of the height are compared as integers; otherwise the exact heights are read, and for equal
// ones the tie rule decides. Heights in whole millimetres nearly always differ in these bits, so
// that the exact comparison is rare.

typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef THREADS
#define THREADS 128  // threads per block of owm_bin
#endif
#ifndef RESIDENT
#define RESIDENT 4  // such blocks resident on a multiprocessor
#endif
#ifndef POINTS
#define POINTS 8  // points of a chunk per lane, a multiple of BATCH
#endif
#ifndef BATCH
#define BATCH 4  // points per lane that are read at once
#endif
#ifndef LOCAL
#define LOCAL 512  // cells that a warp counts in shared memory
#endif
#ifndef CHUNKS
#define CHUNKS 8  // consecutive chunks per warp
#endif
#define CHUNK (32 * POINTS)  // points of a chunk
#define PATIENCE 16          // chunks without an attempt after an unordered one
#define FULL 0xFFFFFFFFu     // all lanes of a warp

static const u64 NONE = ~0ull;  // no point: greater than all keys; what memset(0xFF) writes
#define PART 256  // threads per part of a bitmap, four words each

// Axis and Grid are repeated in layout.py; the sizes of Cell and Run, and Tally, in gpu.py.

struct Axis {
    const double* borders;  // of windows and fill cells, ascending, then infinity
    const int* guess;       // bucket -> a border at or below all of its coordinates
    const int* columns;     // place -> column; place 2k is border k, 2k + 1 the interval above it
    const int* order;       // column of each slot, along the axis
    const int* window_start;
    const int* window_stop;  // run of slots of each window
    const int* fill_start;
    const int* fill_stop;
    double scale;     // buckets per unit
    double per_step;  // inverse step of the lattice of borders; 0 where they are on none
    double margin;    // share of a step next to a border where arithmetic alone cannot decide
    int low;          // step of the lattice where the cloud begins; the column of each is its number
    int n_steps;      // from there to where it ends
    int n_borders;
    int n_slots;
    int n_windows;
    int n_fills;
};

struct Grid {
    Axis x, y;
    double x_low, x_high, y_low, y_high;  // extent of the cloud
    double root_x, root_y, root_half;     // of the reference's octree
    u64 min_points;                       // points that a window must hold
    int needed;                           // hits that make a seed
    int id_bits;                          // of a key that hold the position
    int octree;                           // whether ties go by the octree
    int padding;
};

struct Cell {
    u64 key;
    u32 n;     // points minus one
    u32 hits;  // windows won minus one
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
    const long long* point_id;  // null: the positions, counted from `first`
    long long first;            // position of the first point
};

__device__ int warp_min(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(FULL, value);
#else
    for (int away = 16; away > 0; away /= 2)
        value = min(value, __shfl_xor_sync(FULL, value, away));
    return value;
#endif
}

__device__ int warp_max(int value) { return ~warp_min(~value); }

// ---- heights, keys, and the comparison of points

__device__ u64 ordered(double value) {
    // -0 becomes 0; then the bits are mapped so that they compare like the values
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

__device__ long long id_of(const Cloud& cloud, u64 p) {
    return cloud.point_id ? cloud.point_id[p] : cloud.first + (long long)p;
}

// Whether point p of a cloud goes before point q, of the same height, of the same or another cloud.
__device__ bool tie_goes_to(const Grid& grid, const Cloud& these, u64 p, const Cloud& those, u64 q) {
    if (grid.octree) {
        const long long a = octree_code(grid, these.x[p], these.y[p], these.z[p]);
        const long long b = octree_code(grid, those.x[q], those.y[q], those.z[q]);
        if (a != b) return a < b;
    }
    const long long a = id_of(these, p), b = id_of(those, q);
    return a != b ? a < b : p < q;
}

// Rarely called; not inlined, to save registers.
__device__ __noinline__ bool is_exactly_lower(const Grid& grid, const Cloud& these, u64 p,
                                              const Cloud& those, u64 q) {
    const double u = these.z[p], v = those.z[q];
    return u != v ? u < v : tie_goes_to(grid, these, p, those, q);
}

// Whether the point of key a is lower than that of key b.
__device__ bool is_lower(const Grid& grid, const Cloud& cloud, u64 a, u64 b) {
    if ((a ^ b) >> grid.id_bits) return a < b;
    if (a == b) return false;
    const u64 p = position_of(a, grid.id_bits), q = position_of(b, grid.id_bits);
    return is_exactly_lower(grid, cloud, p, cloud, q);
}

// ---- slots of coordinates

// Place of a coordinate; -1 outside all windows and fill cells.
__device__ int place_of(const Axis& axis, double value) {
    const double* borders = axis.borders;
    if (!(value >= borders[0] && value <= borders[axis.n_borders - 1])) return -1;
    int k = axis.guess[(int)((value - borders[0]) * axis.scale)];
    while (borders[k + 1] <= value) ++k;
    return 2 * k + (borders[k] < value);
}

// The numbers of an axis that a binning warp keeps in registers.
struct Ruler {
    double first, per_step, margin;
    int low, n_steps;
};

__device__ Ruler ruler_of(const Axis& axis) {
    return {axis.borders[0], axis.per_step, axis.margin, axis.low, axis.n_steps};
}

// Column of a coordinate between two places of the lattice; -1 if arithmetic does not suffice: on or
// close to a border, outside the extent of the cloud, not finite, no lattice. Adding MAGIC rounds to
// an integer that is then in the low bits, which saves conversions.
__device__ int even_column(const Ruler& ruler, double value) {
    const double MAGIC = 6755399441055744.0;  // 1.5 * 2^52
    const double t = (value - ruler.first) * ruler.per_step;
    const double sum = t + MAGIC;
    const double off = t - (sum - MAGIC);
    const int k = (int)__double_as_longlong(sum) - (off < 0.0);
    return fabs(off) > ruler.margin && (u32)(k - ruler.low) < (u32)ruler.n_steps ? k : -1;
}

__device__ u64 cell_at(const Grid& grid, int x_place, int y_place) {
    return (u64)grid.y.columns[y_place] * grid.x.n_slots + grid.x.columns[x_place];
}

__device__ u64 cell_of(const Grid& grid, double x, double y) {
    return cell_at(grid, place_of(grid.x, x), place_of(grid.y, y));
}

// ---- the extent of a cloud

// owm_extent: minimum and maximum of x and y, and the number of points that are not finite.
// thread   points, grid-stride; a warp reduces its values before it accesses memory
// writes   low[0..3]: ordered x, y and the complements of the maxima
extern "C" __global__ void owm_extent(const double* x, const double* y, long long n, u64* low, Tally* tally) {
    u64 lowest[4] = {NONE, NONE, NONE, NONE};
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
         i += (long long)gridDim.x * blockDim.x) {
        double a = x[i], b = y[i];
        if ((a - a) + (b - b) != 0.0) {  // infinity and NaN give NaN
            atomicAdd(&tally->bad, 1ull);
            atomicMax(&tally->first_bad, ~(u64)i);
            continue;
        }
        u64 p = ordered(a), q = ordered(b);
        lowest[0] = p < lowest[0] ? p : lowest[0];
        lowest[1] = q < lowest[1] ? q : lowest[1];
        lowest[2] = ~p < lowest[2] ? ~p : lowest[2];
        lowest[3] = ~q < lowest[3] ? ~q : lowest[3];
    }
    for (int k = 0; k < 4; ++k) {
        for (int away = 16; away > 0; away /= 2) {
            u64 other = __shfl_xor_sync(FULL, lowest[k], away);
            lowest[k] = other < lowest[k] ? other : lowest[k];
        }
        if (threadIdx.x % 32 == 0 && lowest[k] != NONE) atomicMin(&low[k], lowest[k]);
    }
}

// owm_occupied: which places along either axis have points.
// thread   points, grid-stride
// races    all write the same value
extern "C" __global__ void owm_occupied(const Grid* grid, const double* x, const double* y, long long n, unsigned char* x_used,
                         unsigned char* y_used) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
         i += (long long)gridDim.x * blockDim.x) {
        int a = place_of(grid->x, x[i]), b = place_of(grid->y, y[i]);
        if (a >= 0) x_used[a] = 1;
        if (b >= 0) y_used[b] = 1;
    }
}

// ---- binning

// Stores a key in a cell unless the cell has a lower one; `now` is an earlier value of the cell.
__device__ void offer(const Grid& grid, const Cloud& cloud, Cell* cell, u64 key, u64 now) {
    while (is_lower(grid, cloud, key, now)) {
        const u64 seen = atomicCAS(&cell->key, now, key);
        if (seen == now) return;
        now = seen;
    }
}

// Bins a point by the exact rules, or rejects it.
__device__ __noinline__ void bin_alone(const Grid& grid, const Cloud& cloud, Cell* cells,
                                       Tally* tally, u64 i) {
    const double x = cloud.x[i], y = cloud.y[i], z = cloud.z[i];
    const bool inside =
        x >= grid.x_low && x <= grid.x_high && y >= grid.y_low && y <= grid.y_high;
    if (!inside || z - z != 0.0) {
        atomicAdd(&tally->bad, 1ull);
        atomicMax(&tally->first_bad, ~i);
        return;
    }
    const int a = place_of(grid.x, x), b = place_of(grid.y, y);
    if (a < 0 || b < 0) return;
    Cell* cell = cells + cell_at(grid, a, b);
    const u64 now = __ldcg(&cell->key);
    atomicAdd(&cell->n, 1u);
    offer(grid, cloud, cell, make_key(z, i, grid.id_bits), now);
}

// Shared memory of a binning warp.
struct Warp {
    u32 count[LOCAL];
    u32 lowest[LOCAL];     // height in single precision
    u32 winner[LOCAL];     // position of the point that has it
    u32 late[CHUNK + 32];  // positions of points for `bin_alone`
};

// A piece of the table that a warp counts in shared memory.
struct Piece {
    int left, bottom, width, depth;
};

// Adds a piece to the table: one addition and one candidate per cell that has points.
__device__ __noinline__ void flush(const Grid& grid, const Cloud& cloud, Cell* cells, Warp& warp,
                                   const Piece& piece) {
    const int area = piece.width * piece.depth;
    for (int part = threadIdx.x % 32; part < area; part += 32 * 4) {
        Cell* cell[4];
        u64 now[4], key[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int local = part + 32 * k;
            cell[k] = nullptr;
            if (local >= area || warp.count[local] == 0) continue;
            const u64 row = piece.bottom + local / piece.width;
            const u64 i = warp.winner[local];
            cell[k] = cells + row * grid.x.n_slots + piece.left + local % piece.width;
            now[k] = __ldcg(&cell[k]->key);
            key[k] = make_key(cloud.z[i], i, grid.id_bits);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (!cell[k]) continue;
            const int local = part + 32 * k;
            atomicAdd(&cell[k]->n, warp.count[local]);
            offer(grid, cloud, cell[k], key[k], now[k]);
            warp.count[local] = 0, warp.lowest[local] = ~0u;
        }
    }
    __syncwarp();
}

// Adds each point of a chunk to its cell; returns a bit for each point of the lane to be deferred.
__device__ __noinline__ u32 bin_each(const Grid& grid, const Cloud& cloud, Cell* cells,
                                     const Ruler& across_here, const Ruler& along_here,
                                     long long first, long long n) {
    const Ruler across = across_here, along = along_here;
    const double *x = cloud.x, *y = cloud.y, *z = cloud.z;
    const int lane = threadIdx.x % 32, n_columns = grid.x.n_slots, id_bits = grid.id_bits;
    u32 aside = 0;
    double a[POINTS], b[POINTS], h[POINTS];
    Cell* cell[POINTS];
    u64 now[POINTS];
#pragma unroll
    for (int k = 0; k < POINTS; ++k) {
        const long long i = min(first + k * 32 + lane, n - 1);
        a[k] = __ldcs(x + i), b[k] = __ldcs(y + i), h[k] = __ldcs(z + i);
    }
#pragma unroll
    for (int k = 0; k < POINTS; ++k) {
        const bool real = first + k * 32 + lane < n;
        const int column = even_column(across, a[k]), row = even_column(along, b[k]);
        const bool clear = (column | row) >= 0 && real && h[k] - h[k] == 0.0;
        if (real && !clear) aside |= 1u << k;
        cell[k] = clear ? cells + (u64)row * n_columns + column : nullptr;
        now[k] = clear ? __ldcg(&cell[k]->key) : 0;
    }
#pragma unroll
    for (int k = 0; k < POINTS; ++k) {
        if (!cell[k]) continue;
        atomicAdd(&cell[k]->n, 1u);
        offer(grid, cloud, cell[k], make_key(h[k], first + k * 32 + lane, id_bits), now[k]);
    }
    return aside;
}

// owm_bin: count and lowest point of each cell.                          (section 2.1 of the source)
// warp     CHUNKS chunks of CHUNK points, grid-stride. While chunks stay within a piece of LOCAL
//          cells, as is usual in the order of flight lines, they are counted in shared memory.
//          If a single chunk covers more, its points are added to the table one by one, and so
//          are those of the next PATIENCE chunks
// writes   cells[].key and .n
// races    additions, and a compare-and-swap whose winner does not depend on the order
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    owm_bin(const Grid* whole, const double* x, const double* y, const double* z,
            const long long* point_id, long long n, Cell* cells, Tally* tally) {
    __shared__ Warp warps[THREADS / 32];
    const Cloud cloud = {x, y, z, point_id};
    const Grid& grid = *whole;
    const int lane = threadIdx.x % 32;
    Warp& warp = warps[threadIdx.x / 32];
    for (int k = lane; k < LOCAL; k += 32) warp.count[k] = 0, warp.lowest[k] = ~0u;
    __syncwarp();
    const Ruler across = ruler_of(grid.x);
    const Ruler along = ruler_of(grid.y);
    const int n_columns = grid.x.n_slots;
    Piece piece = {0, 0, 0, 0};
    int n_late = 0, patience = 0;
    const long long stride = (long long)(THREADS / 32) * CHUNK * CHUNKS;
    for (long long start = blockIdx.x * stride + threadIdx.x / 32 * CHUNK * CHUNKS; start < n;
         start += gridDim.x * stride)
        for (long long first = start; first < min(start + CHUNK * CHUNKS, n); first += CHUNK) {
            u32 aside = 0;  // bit k: point k is deferred
            if (patience > 0) {
                --patience;
                aside = bin_each(grid, cloud, cells, across, along, first, n);
            } else {
                u32 height[POINTS];
                int column[POINTS], row[POINTS];  // column -1: deferred
                int left = 0x7FFFFFFF, right = -1, bottom = 0x7FFFFFFF, top = -1;
#pragma unroll
                for (int part = 0; part < POINTS; part += BATCH) {
                    double a[BATCH], b[BATCH], h[BATCH];
#pragma unroll
                    for (int k = 0; k < BATCH; ++k) {
                        const long long i = min(first + (part + k) * 32 + lane, n - 1);
                        a[k] = __ldcs(x + i), b[k] = __ldcs(y + i), h[k] = __ldcs(z + i);
                    }
#pragma unroll
                    for (int k = 0; k < BATCH; ++k) {
                        const int m = part + k;
                        const bool real = first + m * 32 + lane < n;
                        height[m] = ordered_float(h[k]);
                        column[m] = even_column(across, a[k]);
                        row[m] = even_column(along, b[k]);
                        const bool clear = (column[m] | row[m]) >= 0 && real && h[k] - h[k] == 0.0;
                        if (real && !clear) aside |= 1u << m;
                        left = clear ? min(left, column[m]) : left;
                        right = clear ? max(right, column[m]) : right;
                        bottom = clear ? min(bottom, row[m]) : bottom;
                        top = clear ? max(top, row[m]) : top;
                        column[m] = clear ? column[m] : -1;
                    }
                }
                left = warp_min(left), right = warp_max(right);
                bottom = warp_min(bottom), top = warp_max(top);
                if (right >= 0 && (left < piece.left || right >= piece.left + piece.width ||
                                   bottom < piece.bottom || top >= piece.bottom + piece.depth)) {
                    flush(grid, cloud, cells, warp, piece);
                    piece.width = piece.depth = 0;
                    if ((long long)(right - left + 1) * (top - bottom + 1) > LOCAL) {
                        patience = PATIENCE;
                        first -= CHUNK;  // process this chunk again, point by point
                        continue;
                    }
                    // one more column on either side, and as many more rows as there is room for
                    const int width = right - left + 3, depth = top - bottom + 1;
                    const bool room = width * depth <= LOCAL;
                    piece.left = max(left - room, 0);
                    piece.width = room ? min(width, n_columns - piece.left) : right - left + 1;
                    const int spare = LOCAL / piece.width - depth;
                    piece.bottom = max(bottom - spare / 2, 0);
                    piece.depth = depth + spare;
                }
                u32 lowered = 0;  // bit k: point k was the lowest so far when it was added
#pragma unroll
                for (int k = 0; k < POINTS; ++k) {
                    if (column[k] < 0) continue;
                    column[k] = (row[k] - piece.bottom) * piece.width + column[k] - piece.left;
                    if (height[k] < atomicMin(&warp.lowest[column[k]], height[k])) lowered |= 1u << k;
                }
                __syncwarp();
#pragma unroll
                for (int k = 0; k < POINTS; ++k) {
                    if (column[k] < 0) continue;
                    if (height[k] == warp.lowest[column[k]]) {
                        if (!(lowered >> k & 1)) {  // a tie in single precision
                            aside |= 1u << k;
                            continue;
                        }
                        warp.winner[column[k]] = (u32)(first + k * 32 + lane);
                    }
                    atomicAdd(&warp.count[column[k]], 1u);
                }
                __syncwarp();
            }
            if (!__any_sync(FULL, (int)aside)) continue;
            // deferred points are collected until they fill a warp: a single one would make the whole
            // warp wait for a chain of reads
#pragma unroll
            for (int k = 0; k < POINTS; ++k) {
                const u32 lanes = __ballot_sync(FULL, (int)(aside >> k & 1));
                if (aside >> k & 1)
                    warp.late[n_late + __popc(lanes & ((1u << lane) - 1))] =
                        (u32)(first + k * 32 + lane);
                n_late += __popc(lanes);
            }
            __syncwarp();
            for (; n_late >= 32; n_late -= 32)
                bin_alone(grid, cloud, cells, tally, warp.late[n_late - 32 + lane]);
            __syncwarp();
        }
    flush(grid, cloud, cells, warp, piece);
    if (lane < n_late) bin_alone(grid, cloud, cells, tally, warp.late[lane]);
}

// ---- runs of points

// owm_merge: the lowest points of the cells of a run, and of the runs before it.
// thread   cells, grid-stride
// reads    x, y, z, point_id of the run, whose first point has the position `first`; its cells
// writes   cells[].key and .n; of each cell's lowest point so far the coordinates and the id. Keys of
//          `cells` hold the number of the cell as position, so that these arrays are their cloud
extern "C" __global__ void __launch_bounds__(256)
    owm_merge(const Grid* whole, const double* x, const double* y, const double* z,
              const long long* point_id, long long first, const Cell* run, long long n_cells,
              Cell* cells, double* low_x, double* low_y, double* low_z, long long* low_id) {
    const Cloud these = {x, y, z, point_id, first}, lowest = {low_x, low_y, low_z, low_id};
    const Grid& grid = *whole;
    for (long long c = blockIdx.x * (long long)blockDim.x + threadIdx.x; c < n_cells;
         c += (long long)gridDim.x * blockDim.x) {
        if (run[c].key == NONE) continue;
        const u64 p = position_of(run[c].key, grid.id_bits);
        cells[c].n += run[c].n + 1u;  // the counts are stored minus one
        if (cells[c].key != NONE && !is_exactly_lower(grid, these, p, lowest, (u64)c)) continue;
        cells[c].key = make_key(z[p], (u64)c, grid.id_bits);
        low_x[c] = x[p], low_y[c] = y[p], low_z[c] = z[p], low_id[c] = id_of(these, p);
    }
}

// ---- windows

// owm_rows: lowest point and count of each window's run of slots, row by row.
// thread   one window along x in one row of slots (blockIdx.y, grid-stride)
// reads    the cells of its run, four at a time; its neighbours read nearly the same
// writes   runs[row][window]
extern "C" __global__ void __launch_bounds__(128)
    owm_rows(const Grid* whole, const double* x, const double* y, const double* z,
             const long long* point_id, const Cell* cells, Run* runs) {
    const Cloud cloud = {x, y, z, point_id};
    const Grid& grid = *whole;
    const int window = blockIdx.x * blockDim.x + threadIdx.x;
    if (window >= grid.x.n_windows) return;
    const int start = grid.x.window_start[window], stop = grid.x.window_stop[window];
    for (int slot = blockIdx.y; slot < grid.y.n_slots; slot += gridDim.y) {
        const Cell* row = cells + (u64)grid.y.order[slot] * grid.x.n_slots;
        Run run = {NONE, 0, 0};
        for (int k = start; k < stop; k += 4) {
            Cell cell[4];
            u32 column[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) column[j] = grid.x.order[min(k + j, stop - 1)];
#pragma unroll
            for (int j = 0; j < 4; ++j) cell[j] = row[column[j]];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                if (k + j >= stop) break;
                run.n += cell[j].n + 1;
                if (!is_lower(grid, cloud, cell[j].key, run.key)) continue;
                run.key = cell[j].key;
                run.column = column[j];
            }
        }
        runs[(u64)slot * grid.x.n_windows + window] = run;
    }
}

// owm_columns: the lowest point of each window that holds enough points gets a hit.
// thread   one window along x; blockIdx.y its place along y, grid-stride
// reads    runs[slots of the window][window], four at a time
// writes   cells[].hits, the bitmap of seeds
// races    additions; the hit that makes a seed sets its bit
extern "C" __global__ void __launch_bounds__(128)
    owm_columns(const Grid* whole, const double* x, const double* y, const double* z,
                const long long* point_id, const Run* runs, Cell* cells, u32* seeds) {
    const Cloud cloud = {x, y, z, point_id};
    const Grid& grid = *whole;
    const int window = blockIdx.x * blockDim.x + threadIdx.x;
    if (window >= grid.x.n_windows) return;
    for (int j = blockIdx.y; j < grid.y.n_windows; j += gridDim.y) {
        const int start = grid.y.window_start[j], stop = grid.y.window_stop[j];
        u64 key = NONE, n = 0;
        u32 column = 0;
        int slot = start;
        for (int k = start; k < stop; k += 4) {
            Run run[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                run[j] = runs[(u64)min(k + j, stop - 1) * grid.x.n_windows + window];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                if (k + j >= stop) break;
                n += run[j].n;
                if (!is_lower(grid, cloud, run[j].key, key)) continue;
                key = run[j].key;
                column = run[j].column;
                slot = k + j;
            }
        }
        if (key == NONE || n < grid.min_points) continue;
        Cell* winner = cells + (u64)grid.y.order[slot] * grid.x.n_slots + column;
        const u32 hits = atomicAdd(&winner->hits, 1u) + 2u;  // the count is stored minus one
        if (hits != (u32)grid.needed) continue;
        const u64 p = position_of(key, grid.id_bits);
        atomicOr(&seeds[p / 32], 1u << (p % 32));
    }
}

// owm_fill: the lowest point of each fill cell that has points but no seed.
// warp     one fill cell; its lanes share the slots of each row
// writes   the bitmap of filled points; fill cells are disjoint, so no bit is set twice
extern "C" __global__ void __launch_bounds__(128)
    owm_fill(const Grid* whole, const double* x, const double* y, const double* z,
             const long long* point_id, const Cell* cells, u32* filled) {
    const Cloud cloud = {x, y, z, point_id};
    const Grid& grid = *whole;
    const int lane = threadIdx.x % 32;
    const long long n_fills = (long long)grid.x.n_fills * grid.y.n_fills;
    const long long n_warps = (long long)gridDim.x * (blockDim.x / 32);
    for (long long f = blockIdx.x * (long long)(blockDim.x / 32) + threadIdx.x / 32; f < n_fills;
         f += n_warps) {
        const int i = (int)(f % grid.x.n_fills), j = (int)(f / grid.x.n_fills);
        const int bottom = grid.y.fill_start[j], top = grid.y.fill_stop[j];
        u64 key = NONE;
        int seeded = 0;
        for (int a = grid.x.fill_start[i] + lane; a < grid.x.fill_stop[i]; a += 32) {
            const Cell* column = cells + grid.x.order[a];
            for (int b = bottom; b < top; b += 4) {
                Cell cell[4];
#pragma unroll
                for (int k = 0; k < 4; ++k)
                    cell[k] = column[(u64)grid.y.order[min(b + k, top - 1)] * grid.x.n_slots];
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    seeded |= (int)(cell[k].hits + 1u) >= grid.needed;
                    if (is_lower(grid, cloud, cell[k].key, key)) key = cell[k].key;
                }
            }
        }
        if (__any_sync(FULL, seeded)) continue;
        for (int away = 16; away > 0; away /= 2) {
            const u64 other = __shfl_xor_sync(FULL, key, away);
            if (is_lower(grid, cloud, other, key)) key = other;
        }
        if (lane != 0 || key == NONE) continue;
        const u64 p = position_of(key, grid.id_bits);
        atomicOr(&filled[p / 32], 1u << (p % 32));
    }
}

// ---- results in the order of their positions

struct Words {  // the words of one thread of `owm_count` and `owm_collect`
    u32 word[4];
};

__device__ int bits_of(const Words& words) {
    return __popc(words.word[0]) + __popc(words.word[1]) + __popc(words.word[2]) +
           __popc(words.word[3]);
}

__device__ u32 sum_of_warp(u32 value) {
    for (int away = 16; away > 0; away /= 2) value += __shfl_xor_sync(FULL, value, away);
    return value;
}

// owm_count: bits of each part of the bitmaps.
// block    one part, four words per thread
extern "C" __global__ void __launch_bounds__(PART)
    owm_count(const Words* words, u32* counts) {
    const Words mine = words[blockIdx.x * (u64)PART + threadIdx.x];
    const u32 n = sum_of_warp(bits_of(mine));
    if (threadIdx.x % 32 == 0 && n) atomicAdd(&counts[blockIdx.x], n);
}

// owm_collect: positions and hits of the set bits, ascending within each bitmap.
// block    one part; its threads together sum the counts of all preceding parts
// writes   positions[], hits[]; totals[0]: bits of the first bitmap, totals[1]: of both
extern "C" __global__ void __launch_bounds__(PART)
    owm_collect(const Grid* whole, const double* x, const double* y, const Cell* cells,
                const Words* words, const u32* counts, int parts_of_one, u64* totals,
                long long* positions, int* hits) {
    __shared__ u32 before, ends[PART / 32];
    const Grid& grid = *whole;
    const int part = blockIdx.x, me = threadIdx.x;
    const bool tells = part == parts_of_one || part == (int)gridDim.x - 1;
    if (counts[part] == 0 && !tells) return;
    if (me == 0) before = 0;
    __syncthreads();
    u32 n = 0;
    for (int k = me; k < part; k += PART) n += counts[k];
    n = sum_of_warp(n);
    if (me % 32 == 0 && n) atomicAdd(&before, n);
    const Words mine = words[part * (u64)PART + me];
    const u32 bits = bits_of(mine);
    u32 end = bits;  // end of this thread's bits within its warp
    for (int away = 1; away < 32; away *= 2) {
        const u32 lower = __shfl_up_sync(FULL, end, away);
        if (me % 32 >= away) end += lower;
    }
    if (me % 32 == 31) ends[me / 32] = end;
    __syncthreads();
    if (me == 0 && part == parts_of_one) totals[0] = before;
    if (me == 0 && part == (int)gridDim.x - 1) totals[1] = before + counts[part];
    u64 at = before + end - bits;
    for (int k = 0; k < me / 32; ++k) at += ends[k];
    const u64 first = (part < parts_of_one ? part : part - parts_of_one) * (u64)(128 * PART);
    for (int k = 0; k < 4; ++k)
        for (u32 word = mine.word[k]; word; word &= word - 1, ++at) {
            const u64 p = first + 32 * (4 * me + k) + __ffs((int)word) - 1;
            positions[at] = (long long)p;
            hits[at] = (int)(cells[cell_of(grid, x[p], y[p])].hits + 1u);
        }
}

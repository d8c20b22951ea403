// detect_planes on the GPU: the loops of cells.py, nodes.py, votes.py and assign.py. Sums are
// integers, whose order does not matter; all other values are computed with the same sums, products
// and square roots in the same order as in Python.
//
// In loops over points a warp processes TILE consecutive points, 32 at a time, with coalesced reads.
// Additions to tables are collected first, see `Gathered`.

#include "geometry/bounds.cuh"
#include "geometry/eigen.cuh"

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef unsigned char flag_t;

#define ALL 0xFFFFFFFFu
#define INFINITE __longlong_as_double(0x7FF0000000000000ll)
#define NOT_A_NUMBER __longlong_as_double(0x7FF8000000000000ll)
#define PI 3.141592653589793

// cells.py
#define BITS 21
#define TOP ((1 << BITS) - 1)
#define GRID 5
#define FINER 1
#define MOMENTS 10
#define NONE -1
#define OPEN -2

// nodes.py
#define SIDE_SHARE 10.0
#define MIN_POINTS 3.0
#define PART_POINTS 6.0
#define ROUNDING 4.0
#define SPLIT 4.0
#define LAYER_NODES 4.0
#define LAYERS 9
#define THICKER 4.0

// votes.py, accumulator.py
#define BEYOND 4
#define CUT 4.0
#define ONE 1073741824.0
#define PAPER_ONE 4096.0
#define NOISE 1e-5
#define TINY 1e-5
#define MAX_VOTE 1099511627776.0

// assign.py
#define SIDES 32
#define PLACES 20
#define NEAR 32768.0
#define PART 256.0
#define SUMS 6
#define EDGE (1 << 30)

#define WARPS 8   // warps per block in loops over points
#define TILE 256  // consecutive points per warp
#define BATCH 128  // points that a warp buffers in order to write them at once
#define QUEUE (BATCH + 32)
#define ROWS 384  // rows of a table that a block keeps in shared memory

// Grid-stride loop over k in [0, n).
#define FOR_EACH(k, n)                                                                   \
    for (i64 k = blockIdx.x * (i64)blockDim.x + threadIdx.x; k < (n); k += (i64)gridDim.x * blockDim.x)

// The same, but warps stay converged, so that k may be n or more in the last iteration.
#define FOR_POINTS(k, n)                                                                 \
    for (i64 tile = ((i64)blockIdx.x * WARPS + threadIdx.x / 32) * TILE; tile < (n);     \
         tile += (i64)gridDim.x * WARPS * TILE)                                          \
        for (i64 k = tile + threadIdx.x % 32;                                            \
             k - threadIdx.x % 32 < (tile + TILE < (n) ? tile + TILE : (n)); k += 32)

__device__ double lesser(double a, double b) { return a < b ? a : b; }
__device__ double greater(double a, double b) { return a > b ? a : b; }
__device__ double magnitude(double a) { return a < 0.0 ? -a : a; }
__device__ void add(i64* at, i64 value) { atomicAdd((u64*)at, (u64)value); }

// ---- points of a warp

// Sums over points by row of a table. Each sum is over products of two words of a point. A lane
// computes one of the sums for a part of the points, and keeps it in a register while consecutive
// points belong to the same row, as neighbours in a scan do. Lanes write to adjacent addresses.
template <int N_SUMS, int WORDS>
struct Gathered {
    static const int SHARES = 32 / N_SUMS, SHARE = (31 + SHARES) / SHARES;
    int sum, share, first, second, row;
    i64 total;

    // firsts, seconds: the words that are multiplied, four bits per sum, the last sum first
    __device__ Gathered(u64 firsts, u64 seconds) {
        sum = threadIdx.x % 32 % N_SUMS;
        share = threadIdx.x % 32 / N_SUMS;
        first = (int)(firsts >> 4 * sum & 15);
        second = (int)(seconds >> 4 * sum & 15);
        row = -1;
        total = 0;
    }

    // rows[32]: -1 for no point; words[32 * WORDS]
    template <typename Write>
    __device__ void take(const int* rows, const int* words, Write write) {
        if (share >= SHARES) return;
        for (int i = share * SHARE; i < share * SHARE + SHARE && i < 32; ++i) {
            const int next = rows[i];
            if (next < 0) continue;
            if (next != row) {
                finish(write);
                row = next;
                total = 0;
            }
            total += (i64)words[i * WORDS + first] * words[i * WORDS + second];
        }
    }

    template <typename Write>
    __device__ void finish(Write write) {
        if (share < SHARES && row >= 0) write(row, sum, total);
    }
};

// Products of 1, x, y, z: n x y z xx xy xz yy yz zz.
typedef Gathered<MOMENTS, 4> Moments;
#define MOMENT_FIRSTS 0x3221110000ull
#define MOMENT_SECONDS 0x3323213210ull

// Points that a warp keeps; they are written to a list BATCH at a time, in no defined order.
struct Kept {
    i64 value[QUEUE];
    int tag[QUEUE];
};
struct Queue {
    Kept* kept;
    u64* size;  // size of the list
    int head, count;

    __device__ Queue(Kept* kept, u64* size) : kept(kept), size(size), head(0), count(0) {}

    template <typename Write>
    __device__ void push(bool wanted, i64 value, int tag, Write write) {
        const u32 all = __ballot_sync(ALL, wanted);
        if (wanted) {
            const u32 before = all & ((1u << threadIdx.x % 32) - 1);
            const int at = (head + count + __popc(before)) % QUEUE;
            kept->value[at] = value;
            kept->tag[at] = tag;
        }
        count += __popc(all);
        if (count >= BATCH) flush(BATCH, write);
    }

    template <typename Write>
    __device__ void flush(int n, Write write) {
        __syncwarp();
        const int lane = threadIdx.x % 32;
        u64 first = lane == 0 && n > 0 ? atomicAdd(size, (u64)n) : 0;
        first = __shfl_sync(ALL, first, 0);
        for (int i = lane; i < n; i += 32) {
            const int at = (head + i) % QUEUE;
            write(first + i, kept->value[at], kept->tag[at]);
        }
        head = (head + n) % QUEUE;
        count -= n;
        __syncwarp();
    }
};

// 64-bit sums in shared memory, which has 32-bit atomic additions only.
__device__ void add_halves(u32* halves, i64 value) {
    const u32 low = (u32)value, before = atomicAdd(&halves[0], low);
    const u32 high = (u32)((u64)value >> 32) + (before + low < before);
    if (high != 0) atomicAdd(&halves[1], high);
}

// ---- bounds and cells                                                              (cells.py)

// planes_bounds: bounds of x, y and z.
// writes   ends[7], all ones before: ordered minimum and complement of the ordered maximum of each;
//          the last is set to 0 if a value is not finite
extern "C" __global__ void planes_bounds(const double* x, const double* y, const double* z, i64 n,
                                         u64* ends) {
    Ends of_x, of_y, of_z;
    bool finite = true;
    FOR_EACH(k, n) {
        const double a = x[k], b = y[k], c = z[k];  // all three loads are in flight at once
        finite = of_x.take(a) && finite;
        finite = of_y.take(b) && finite;
        finite = of_z.take(c) && finite;
    }
    of_x.write(ends);
    of_y.write(ends + 2);
    of_z.write(ends + 4);
    if (!finite) ends[6] = 0;
}

__device__ int step_of(double value, double low, double scale) {
    const int step = (int)((value - low) * scale);
    return step < 0 ? 0 : (step < TOP ? step : TOP);
}

__device__ int spread(int v) {
    v = (v | v << 8) & 0x100F;
    v = (v | v << 4) & 0x10C3;
    return (v | v << 2) & 0x1249;
}

__device__ int first_cell(int a, int b, int c) {
    const int shift = BITS - GRID;
    return spread(a >> shift) << 2 | spread(b >> shift) << 1 | spread(c >> shift);
}

__device__ i64 packed(int a, int b, int c) {
    return (i64)a << 2 * BITS | (i64)b << BITS | (i64)c;
}

// Coordinates of a point in steps, and its cell among the parts of open cells.
struct Steps {
    int a, b, c;
    __device__ Steps(i64 point) {
        a = (int)(point >> 2 * BITS);
        b = (int)(point >> BITS & TOP);
        c = (int)(point & TOP);
    }
    // Which part of a cell; `shift`: bits of an offset in a part.
    __device__ int part(int shift) const {
        int code = 0;
        for (int bit = 0; bit < FINER; ++bit) {
            const int at = shift + bit;
            code |= ((a >> at & 1) << 2 | (b >> at & 1) << 1 | (c >> at & 1)) << 3 * bit;
        }
        return code;
    }
    // Offsets from the corner of a node, for Moments: words[1] to words[3].
    __device__ void into(int* words, const i64* corner) const {
        words[1] = (int)((a - corner[0]) >> corner[3]);
        words[2] = (int)((b - corner[1]) >> corner[3]);
        words[3] = (int)((c - corner[2]) >> corner[3]);
    }
    // slots: null in the first grid
    __device__ int cell(const int* slots, i64 k, int shift) const {
        return slots == nullptr ? first_cell(a, b, c) : slots[k] << 3 * FINER | part(shift);
    }
};

// Lanes with the same number as this one.
struct Peers {
    u32 all;
    __device__ Peers(int number) : all(__match_any_sync(ALL, number)) {}
    __device__ int first() const { return __ffs(all) - 1; }
    __device__ int size() const { return __popc(all); }
    __device__ int before() const { return __popc(all & ((1u << threadIdx.x % 32) - 1)); }
};

// planes_count: points per cell of the first grid.
extern "C" __global__ void planes_count(const double* x, const double* y, const double* z, i64 n,
                                        double low_x, double low_y, double low_z, double scale,
                                        u64* counts) {
    FOR_POINTS(k, n) {
        int cell = NONE;
        if (k < n)
            cell = first_cell(step_of(x[k], low_x, scale), step_of(y[k], low_y, scale),
                              step_of(z[k], low_z, scale));
        const Peers same(cell);
        if (k < n && same.before() == 0) atomicAdd(&counts[cell], (u64)same.size());
    }
}

// planes_offsets: position of each cell's first point, from the numbers of points.
// block    1024 threads for all cells; n is a multiple of that
extern "C" __global__ void planes_offsets(u64* counts, i64 n) {
    __shared__ u64 sums[1024];
    const i64 share = n / blockDim.x, first = share * threadIdx.x;
    u64 own = 0;
    for (i64 k = first; k < first + share; ++k) own += counts[k];
    sums[threadIdx.x] = own;
    __syncthreads();
    for (int by = 1; by < blockDim.x; by *= 2) {
        const u64 other = threadIdx.x >= by ? sums[threadIdx.x - by] : 0;
        __syncthreads();
        sums[threadIdx.x] += other;
        __syncthreads();
    }
    u64 at = sums[threadIdx.x] - own;
    for (i64 k = first; k < first + share; ++k) {
        const u64 count = counts[k];
        counts[k] = at;
        at += count;
    }
}

// planes_sort: packs the points, those of a cell of the first grid together, in any order.
// changes  at[cells]: from the position of each cell's first point to its end
extern "C" __global__ void planes_sort(const double* x, const double* y, const double* z, i64 n,
                                       double low_x, double low_y, double low_z, double scale,
                                       u64* at, i64* points) {
    FOR_POINTS(k, n) {
        int a = 0, b = 0, c = 0, cell = NONE;
        if (k < n) {
            a = step_of(__ldcs(x + k), low_x, scale);
            b = step_of(__ldcs(y + k), low_y, scale);
            c = step_of(__ldcs(z + k), low_z, scale);
            cell = first_cell(a, b, c);
        }
        const Peers same(cell);
        u64 first = 0;
        if (k < n && same.before() == 0) first = atomicAdd(&at[cell], (u64)same.size());
        first = __shfl_sync(ALL, first, same.first());
        if (k < n) points[first + same.before()] = packed(a, b, c);
    }
}

// planes_add: moments of the cells of a grid's last level.
extern "C" __global__ void planes_add(const i64* points, const int* slots, const u64* size,
                                      i64 level, i64* table) {
    __shared__ int all_rows[WARPS][32], all_words[WARPS][32 * 4];
    const i64 n = (i64)*size;
    const int lane = threadIdx.x % 32, shift = (int)(BITS - level), mask = (1 << shift) - 1;
    int *rows = all_rows[threadIdx.x / 32], *words = all_words[threadIdx.x / 32];
    const auto write = [=](int row, int sum, i64 total) {
        add(table + (i64)row * MOMENTS + sum, total);
    };
    Moments moments(MOMENT_FIRSTS, MOMENT_SECONDS);
    words[4 * lane] = 1;
    FOR_POINTS(k, n) {
        const Steps point(k < n ? points[k] : 0);
        const int row = k < n ? point.cell(slots, k, shift) : -1;
        // in the first grid points are in order; points of one open cell are ordered by part here
        int at = lane;
        if (slots != nullptr) {
            at = 0;
            for (int part = 0; part < 8; ++part) {
                const u32 all = __ballot_sync(ALL, (row & 7) == part);
                if (part < (row & 7)) at += __popc(all);
                if (part == (row & 7)) at += __popc(all & ((1u << lane) - 1));
            }
        }
        rows[at] = row;
        words[4 * at + 1] = point.a & mask;
        words[4 * at + 2] = point.b & mask;
        words[4 * at + 3] = point.c & mask;
        __syncwarp();
        moments.take(rows, words, write);
        __syncwarp();
    }
    moments.finish(write);
}

// Adds a point to the moments of a node in a row of a table.
__device__ double off_plane(int a, int b, int c, const double* p) {
    return p[0] * a + p[1] * b + p[2] * c - p[3];
}

// planes_sift: moments of the outliers of nodes; lists the points of open cells.
extern "C" __global__ void planes_sift(const i64* points, const int* slots, const u64* size,
                                       i64 level, const int* state, const double* planes,
                                       const i64* corners, i64* outliers, const int* ranks,
                                       i64* points_left, int* slots_left, u64* size_left) {
    __shared__ Kept kept[WARPS];
    __shared__ int all_rows[WARPS][32], all_words[WARPS][32 * 4];
    Queue queue(&kept[threadIdx.x / 32], size_left);
    const auto write = [=](u64 at, i64 point, int slot) {
        points_left[at] = point;
        slots_left[at] = slot;
    };
    const i64 n = (i64)*size;
    const int lane = threadIdx.x % 32, shift = (int)(BITS - level);
    int *rows = all_rows[threadIdx.x / 32], *words = all_words[threadIdx.x / 32];
    const auto sum_up = [=](int row, int sum, i64 total) {
        add(outliers + (i64)row * MOMENTS + sum, total);
    };
    Moments moments(MOMENT_FIRSTS, MOMENT_SECONDS);
    words[4 * lane] = 1;
    FOR_POINTS(k, n) {
        int node = NONE, cell = 0;
        const i64 point = k < n ? points[k] : 0;
        const Steps at(point);
        if (k < n) {
            cell = at.cell(slots, k, shift);
            node = state[cell];
        }
        bool outside = false;
        if (node >= 0) {
            const double* p = planes + 5 * (i64)node;
            outside = magnitude(off_plane(at.a, at.b, at.c, p)) > p[4];
        }
        if (__any_sync(ALL, outside)) {
            rows[lane] = outside ? node : -1;
            if (outside) at.into(words + 4 * lane, corners + 4 * (i64)node);
            __syncwarp();
            moments.take(rows, words, sum_up);
            __syncwarp();
        }
        const bool open = node == OPEN;
        queue.push(open, point, open ? ranks[cell] : 0, write);
    }
    moments.finish(sum_up);
    queue.flush(queue.count, write);
}

__device__ int near_cell(int a, int b, int c, int grid) {
    const int shift = BITS - grid;
    return ((a >> shift) << grid | b >> shift) << grid | c >> shift;
}

// planes_add_sides: moments of the points on either side of nodes, without outliers.
extern "C" __global__ void planes_add_sides(const i64* points, const u64* size, i64 grid,
                                            const int* node_of, const double* planes,
                                            const i64* corners, i64* table) {
    __shared__ int all_rows[WARPS][32], all_words[WARPS][32 * 4];
    const i64 n = (i64)*size;
    const int lane = threadIdx.x % 32;
    int *rows = all_rows[threadIdx.x / 32], *words = all_words[threadIdx.x / 32];
    const auto write = [=](int row, int sum, i64 total) {
        add(table + (i64)row * MOMENTS + sum, total);
    };
    Moments moments(MOMENT_FIRSTS, MOMENT_SECONDS);
    words[4 * lane] = 1;
    FOR_POINTS(k, n) {
        rows[lane] = -1;
        const Steps at(k < n ? points[k] : 0);
        const i64 node = k < n ? node_of[near_cell(at.a, at.b, at.c, (int)grid)] : NONE;
        if (node >= 0) {
            const double *p = planes + 5 * node, d = off_plane(at.a, at.b, at.c, p);
            if (magnitude(d) <= p[4]) rows[lane] = (int)(2 * node + (d > 0.0));
            at.into(words + 4 * lane, corners + 4 * node);
        }
        __syncwarp();
        moments.take(rows, words, write);
        __syncwarp();
    }
    moments.finish(write);
}

// ---- cells and nodes                                                               (nodes.py)

__device__ void centre(const i64* t, i64 side, double* m) {
    const double h = 0.5 - 0.5 * side, n = (double)t[0];
    m[0] = n;
    if (n == 0.0) {
        for (int i = 1; i < MOMENTS; ++i) m[i] = 0.0;
        return;
    }
    const double x = (double)t[1], y = (double)t[2], z = (double)t[3], hh = h * h * n;
    m[1] = x + h * n;
    m[2] = y + h * n;
    m[3] = z + h * n;
    m[4] = ((double)t[4] + (h + h) * x) + hh;
    m[5] = (((double)t[5] + h * x) + h * y) + hh;
    m[6] = (((double)t[6] + h * x) + h * z) + hh;
    m[7] = ((double)t[7] + (h + h) * y) + hh;
    m[8] = (((double)t[8] + h * y) + h * z) + hh;
    m[9] = ((double)t[9] + (h + h) * z) + hh;
}

extern "C" __global__ void planes_centre_moments(const i64* table, i64 side, double* moments,
                                                 i64 n) {
    FOR_EACH(k, n) centre(table + MOMENTS * k, side, moments + MOMENTS * k);
}

extern "C" __global__ void planes_halve(double* moments, i64 fine, i64 coarse, i64 side,
                                        i64 n_cells) {
    const double d = 0.5 * side;
    FOR_EACH(k, n_cells) {
        double total[MOMENTS] = {};
        for (int part = 0; part < 8; ++part) {
            const double* m = moments + MOMENTS * (fine + 8 * k + part);
            const double n = m[0];
            if (!(n > 0.0)) continue;
            const double dx = part & 4 ? d : -d, dy = part & 2 ? d : -d, dz = part & 1 ? d : -d;
            total[0] += n;
            total[1] += m[1] + dx * n;
            total[2] += m[2] + dy * n;
            total[3] += m[3] + dz * n;
            total[4] += (m[4] + (dx + dx) * m[1]) + dx * dx * n;
            total[5] += ((m[5] + dx * m[2]) + dy * m[1]) + dx * dy * n;
            total[6] += ((m[6] + dx * m[3]) + dz * m[1]) + dx * dz * n;
            total[7] += (m[7] + (dy + dy) * m[2]) + dy * dy * n;
            total[8] += ((m[8] + dy * m[3]) + dz * m[2]) + dy * dz * n;
            total[9] += (m[9] + (dz + dz) * m[3]) + dz * dz * n;
        }
        for (int i = 0; i < MOMENTS; ++i) moments[MOMENTS * (coarse + k) + i] = total[i];
    }
}

__device__ void covariance_of(const double* m, double* mean, double* covariance) {
    const double n = m[0], x = m[1] / n, y = m[2] / n, z = m[3] / n;
    mean[0] = x;
    mean[1] = y;
    mean[2] = z;
    covariance[0] = m[4] / n - x * x;
    covariance[1] = m[5] / n - x * y;
    covariance[2] = m[6] / n - x * z;
    covariance[3] = m[7] / n - y * y;
    covariance[4] = m[8] / n - y * z;
    covariance[5] = m[9] / n - z * z;
}

extern "C" __global__ void planes_spectra(const double* moments, double fewest, double* values,
                                          i64 n) {
    const double half = (double)(1 << (BITS - 1)), unit = half * half;
    FOR_EACH(k, n) {
        double mean[3], covariance[6], lengths[3] = {}, axes[9];
        if (moments[MOMENTS * k] >= fewest) {
            covariance_of(moments + MOMENTS * k, mean, covariance);
            eigen(covariance, lengths, axes);
        }
        for (int i = 0; i < 3; ++i) values[3 * k + i] = lengths[i] / unit;
    }
}

// Number of the parts of a planar cell, 0 if they are much thinner, 1 if nothing is known of them.
__device__ int same_parts(const double* moments, const double* values, i64 n_first, i64 n_cells,
                          i64 cell) {
    i64 first = 0, size = n_first;
    while (cell >= first + size) first += size, size <<= 3;
    const i64 begin = first + size + 8 * (cell - first);
    if (begin >= n_cells) return 1;
    int n = 0;
    double total = 0.0, across = 0.0;
    for (i64 part = begin; part < begin + 8; ++part) {
        const double count = moments[MOMENTS * part];
        if (!(count >= PART_POINTS)) continue;
        ++n;
        total += count;
        across += count * (values[3 * part] * (count / (count - 3.0)));
    }
    if (total < 0.5 * moments[MOMENTS * cell]) return 1;
    const double half = (double)(1 << (BITS - 1)), unit = half * half;
    return values[3 * cell] * total <= SPLIT * greater(across, ROUNDING / unit * total) ? n : 0;
}

extern "C" __global__ void planes_judge(const double* moments, const double* values, i64 n_first,
                                        double max_thickness, double min_isotropy, flag_t* planar,
                                        i64 n) {
    FOR_EACH(k, n) {
        const double *l = values + 3 * k, thickness = l[0] / max_thickness;
        int parts = 0;
        if (l[1] > min_isotropy * l[2] && thickness < THICKER * l[1]) {
            if (thickness < l[1]) parts = same_parts(moments, values, n_first, n, k);
            if (parts == 0) parts = LAYERS;
        }
        planar[k] = (flag_t)parts;
    }
}

__device__ double from_ordered(u64 bits) {  // inverts ordered()
    return __longlong_as_double((i64)(bits >> 63 ? bits ^ 1ull << 63 : ~bits));
}

// planes_list_cells: what GpuCloud.summarize needs of each cell, as pairs of a value and its weight.
// writes   pairs[2][cells], those of each level from its first cell on, in any order: points of all
//          cells; ratios of the lesser variances of planar cells; sizes[levels][2]
extern "C" __global__ void planes_list_cells(const double* moments, const double* values,
                                             const flag_t* planar, i64 n_first, double s_ms,
                                             double thinnest, u64* pairs, u64* sizes, i64 n) {
    FOR_EACH(k, n) {
        const double points = moments[MOMENTS * k], *l = values + 3 * k;
        if (!(points > 0.0)) continue;
        int level = 0;
        i64 first = 0;
        for (i64 size = n_first; k >= first + size; size *= 8, ++level) first += size;
        const bool is_planar = points >= s_ms && planar[k] > 0 && planar[k] < LAYERS;
        const double found[2] = {points, l[0] / greater(l[1], thinnest)};
        for (int what = 0; what < (is_planar ? 2 : 1); ++what) {
            const u64 at = what * n + first + atomicAdd(&sizes[2 * level + what], 1ull);
            pairs[2 * at] = ordered(found[what]);
            pairs[2 * at + 1] = (u64)points;
        }
    }
}

// planes_medians: the smallest value up to which half of the weights lie, of each list above.
// block    one list; the digits of the value are found one after the other
// writes   medians[levels][2]: 0 for an empty list; weights[levels][2]: sums of all weights
extern "C" __global__ void planes_medians(const u64* pairs, const u64* sizes, i64 n_first, i64 n,
                                          double* medians, u64* weights) {
    __shared__ u32 sums[16][32][2];  // per digit, and lane of a warp, so that lanes add at once
    __shared__ u64 totals[16];
    u32* all = &sums[0][0][0];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    i64 first = blockIdx.x % 2 * n;
    for (int level = 0; level < blockIdx.x / 2; ++level) first += n_first << 3 * level;
    const u64* own = pairs + 2 * first;
    const i64 size = (i64)sizes[blockIdx.x];
    u64 total = 0, below = 0, prefix = 0;
    for (int shift = 60; shift >= 0; shift -= 4) {
        for (int k = threadIdx.x; k < 16 * 32 * 2; k += blockDim.x) all[k] = 0;
        __syncthreads();
        for (i64 k = threadIdx.x; k < size; k += blockDim.x) {
            const u64 value = own[2 * k];
            if (shift == 60 || (value ^ prefix) >> (shift + 4) == 0)
                add_halves(sums[value >> shift & 15][lane], (i64)own[2 * k + 1]);
        }
        __syncthreads();
        for (int digit = warp; digit < 16; digit += blockDim.x / 32) {
            u64 sum = (u64)sums[digit][lane][1] << 32 | sums[digit][lane][0];
            for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(ALL, sum, by);
            if (lane == 0) totals[digit] = sum;
        }
        __syncthreads();
        if (shift == 60)
            for (int digit = 0; digit < 16; ++digit) total += totals[digit];
        int digit = 0;
        while (digit < 15 && 2 * (below + totals[digit]) < total) below += totals[digit++];
        prefix |= (u64)digit << shift;
    }
    if (threadIdx.x != 0) return;
    medians[blockIdx.x] = total == 0 ? 0.0 : from_ordered(prefix);
    weights[blockIdx.x] = total;
}

// planes_walk: the coarsest planar cell around each of the finest cells.
// writes   state: that cell, NONE, or OPEN; counts[2]: nodes, open cells; at, numbers: cells of nodes
//          and back; inner, ranks: Morton codes of open cells and numbers of these, both in any order
extern "C" __global__ void planes_walk(const double* moments, const flag_t* planar, i64 n_first,
                                       i64 first, i64 last, i64 s_level, i64 deepest, double s_ms,
                                       i64 base, const i64* open_cells, int* state, i64* at,
                                       int* numbers, i64* inner, int* ranks, u64* counts, i64 n) {
    FOR_EACH(k, n) {
        int own = last < deepest ? OPEN : NONE;
        i64 before = 0;
        for (int level = (int)first; level <= last; ++level) {
            const int down = 3 * ((int)last - level);
            const i64 cell = before + (k >> down);
            if (moments[MOMENTS * cell] < s_ms) {
                own = NONE;
                break;
            }
            if (s_level <= level && level <= deepest && planar[cell]) {
                const bool may_have_layers = planar[cell] == LAYERS;
                const bool is_node = !may_have_layers || moments[MOMENTS * cell] >= LAYER_NODES * s_ms;
                if (is_node && (k & ((1ll << down) - 1)) == 0) {
                    const u64 number = atomicAdd(&counts[0], 1ull);
                    at[number] = cell;
                    numbers[cell] = (int)number;
                }
                if (!may_have_layers) {
                    own = (int)cell;
                    break;
                }
            }
            before += n_first << 3 * (level - (int)first);
        }
        state[k] = own;
        if (own == OPEN) {
            const int finer = 3 * (int)(last - base);
            const u64 rank = atomicAdd(&counts[1], 1ull);
            inner[rank] = open_cells[k >> finer] << finer | (k & ((1ll << finer) - 1));
            ranks[k] = (int)rank;
        }
    }
}

// planes_number: replaces the planar cells in states by the numbers of nodes.
extern "C" __global__ void planes_number(const int* numbers, int* state, i64 n) {
    FOR_EACH(k, n) {
        if (state[k] >= 0) state[k] = numbers[state[k]];
    }
}

// Where a cell of a grid is; lengths are in steps.
struct Located {
    int level;
    i64 code, corner[3];
    double side;

    __device__ Located(i64 cell, i64 n_first, i64 first, i64 base, const i64* open_cells) {
        i64 size = n_first;
        for (level = (int)first; cell >= size; ++level) {
            cell -= size;
            size <<= 3;
        }
        const int finer = 3 * (level - (int)base);
        code = open_cells[cell >> finer] << finer | (cell & ((1ll << finer) - 1));
        find_corner();
    }
    __device__ Located(i64 level, i64 code) : level((int)level), code(code) { find_corner(); }

    __device__ void find_corner() {
        const int down = BITS - level;
        for (int axis = 0; axis < 3; ++axis) {
            corner[axis] = 0;
            for (int bit = 0; bit < level; ++bit)
                corner[axis] |= (code >> (3 * bit + 2 - axis) & 1) << bit;
            corner[axis] <<= down;
        }
        side = (double)(1ll << down);
    }

    __device__ int shift() const { return level < GRID ? GRID - level : 0; }
    __device__ double centre(int axis) const { return (double)corner[axis] + 0.5 * side; }
};

// planes_place: planes that determine the outliers of nodes.
extern "C" __global__ void planes_place(const i64* at, i64 n_first, i64 first, i64 base,
                                        const i64* open_cells, const double* moments,
                                        double* planes, i64* corners, i64 n) {
    FOR_EACH(k, n) {
        const Located cell(at[k], n_first, first, base, open_cells);
        for (int axis = 0; axis < 3; ++axis) corners[4 * k + axis] = cell.corner[axis];
        corners[4 * k + 3] = cell.shift();
        double mean[3], covariance[6], values[3], vectors[9];
        covariance_of(moments + MOMENTS * at[k], mean, covariance);
        eigen(covariance, values, vectors);
        const double x = mean[0] + cell.centre(0) - 0.5, y = mean[1] + cell.centre(1) - 0.5;
        const double z = mean[2] + cell.centre(2) - 0.5;
        for (int axis = 0; axis < 3; ++axis) planes[5 * k + axis] = vectors[axis];
        planes[5 * k + 3] = vectors[0] * x + vectors[1] * y + vectors[2] * z;
        planes[5 * k + 4] = cell.side / SIDE_SHARE;
    }
}

// Moments about the centre of a node of the sums of points, which are offsets from its corner.
__device__ void about_centre(const Located& cell, const i64* sums, double* m) {
    centre(sums, 1ll << (BITS - cell.level - cell.shift()), m);
    const double step = (double)(1ll << cell.shift());
    for (int i = 1; i < 4; ++i) m[i] *= step;
    for (int i = 4; i < MOMENTS; ++i) m[i] *= step * step;
}

__device__ void describe_moments(const Located& cell, int parts, const double* m, double* row) {
    const double half = (double)(1 << (BITS - 1)), unit = half * half;
    double mean[3], covariance[6];
    covariance_of(m, mean, covariance);
    row[0] = (double)cell.level;
    row[1] = (double)cell.code;
    row[2] = (double)parts;
    row[3] = m[0];
    for (int axis = 0; axis < 3; ++axis)
        row[4 + axis] = ((mean[axis] + cell.centre(axis)) - half) / half;
    for (int i = 0; i < 6; ++i) row[7 + i] = covariance[i] = covariance[i] / unit;
    eigen(covariance, row + 13, row + 16);
}

// planes_describe: nodes without their outliers.
extern "C" __global__ void planes_describe(const i64* at, i64 n_first, i64 first, i64 base,
                                           const i64* open_cells, const double* moments,
                                           const flag_t* planar, const i64* outliers, double* rows,
                                           i64 n) {
    FOR_EACH(k, n) {
        const Located cell(at[k], n_first, first, base, open_cells);
        const i64* outside = outliers + MOMENTS * k;
        double m[MOMENTS], apart[MOMENTS];
        for (int i = 0; i < MOMENTS; ++i) m[i] = moments[MOMENTS * at[k] + i];
        if (outside[0] > 0 && m[0] - outside[0] >= MIN_POINTS) {
            about_centre(cell, outside, apart);
            for (int i = 0; i < MOMENTS; ++i) m[i] -= apart[i];
        }
        describe_moments(cell, planar[at[k]], m, rows + 25 * k);
    }
}

// planes_fill_cells: the finest node of each cell; finer nodes have higher numbers.
extern "C" __global__ void planes_fill_cells(const i64* levels, const i64* corners, i64 grid,
                                             int* node_of, i64 n) {
    const int shift = (int)(BITS - grid);
    FOR_EACH(k, n) {
        const int wide = 1 << (grid - levels[k]);
        const i64* corner = corners + 4 * k;
        const int a = (int)(corner[0] >> shift), b = (int)(corner[1] >> shift);
        const int c = (int)(corner[2] >> shift);
        for (int i = a; i < a + wide; ++i)
            for (int j = b; j < b + wide; ++j)
                for (int h = c; h < c + wide; ++h)
                    atomicMax(&node_of[(i << grid | j) << grid | h], (int)k);
    }
}

// planes_describe_sums: parts of nodes, by the sums of their points.
extern "C" __global__ void planes_describe_sums(const i64* levels, const i64* codes,
                                                const i64* sums, double* rows, i64 n) {
    FOR_EACH(k, n) {
        double m[MOMENTS], *row = rows + 25 * k;
        if (sums[MOMENTS * k] < MIN_POINTS) {
            row[3] = (double)sums[MOMENTS * k];
            continue;
        }
        const Located cell(levels[k / 2], codes[k / 2]);
        about_centre(cell, sums + MOMENTS * k, m);
        describe_moments(cell, 1, m, row);
    }
}

// ---- votes and peaks                                                               (votes.py)

__device__ double gauss(double m2) {
    const double x = m2 * (-1.0 / 64.0);
    double e =
        1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0)))));
    e *= e;
    e *= e;
    e *= e;
    e *= e;
    return e * e;
}

__device__ i64 first_rho(double rho) {
    const i64 k = (i64)ceil(rho) + BEYOND;
    return k > 0 ? k : 0;
}

__device__ i64 last_rho(double rho, i64 n_rho) {
    const i64 k = (i64)floor(rho) + BEYOND;
    return k < n_rho - 1 ? k : n_rho - 1;
}

// planes_vote: a Gaussian around each node's plane.
// thread   one direction of a row; a warp processes one side of a node's plane at a time
extern "C" __global__ void planes_vote(const double* means, const double* values,
                                       const double* vectors, const double* weights,
                                       const double* directions, const int* rows, i64 n_rows,
                                       double step, double rho_step, i64 n_rho, i64* votes,
                                       i64 n_nodes) {
    const int lane = threadIdx.x % 32;
    for (i64 item = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32; item < 2 * n_nodes;
         item += (i64)gridDim.x * blockDim.x / 32) {
        const i64 node = item / 2;
        const double *mean = means + 3 * node, *l = values + 3 * node, *axes = vectors + 9 * node;
        double nx = axes[0], ny = axes[1], nz = axes[2];
        double rho = (nx * mean[0] + ny * mean[1]) + nz * mean[2];
        if ((rho < 0.0) != (item % 2 == 1)) nx = -nx, ny = -ny, nz = -nz, rho = -rho;
        double half = 0.5 * step;
        const double s2 = l[0] / l[1] + half * half, s3 = l[0] / l[2] + half * half;
        half = 0.5 * rho_step;
        const double s_rho = l[0] + half * half;
        if (rho + sqrt(CUT * s_rho) < -BEYOND * rho_step) continue;
        const double widest = CUT * (s2 > s3 ? s2 : s3);
        for (i64 row = 0; row < n_rows; ++row) {
            const double z = directions[3 * rows[row] + 2];
            const double most = z * nz + sqrt(greater(0.0, (1.0 - z * z) * (1.0 - nz * nz)));
            if (most < 0.0 || 1.0 - most * most > widest) continue;
            for (i64 k = rows[row] + lane; k < rows[row + 1]; k += 32) {
                const double mx = directions[3 * k], my = directions[3 * k + 1];
                const double mz = directions[3 * k + 2];
                if (mx * nx + my * ny + mz * nz <= 0.0) continue;
                const double a = (mx * axes[3] + my * axes[4]) + mz * axes[5];
                const double b = (mx * axes[6] + my * axes[7]) + mz * axes[8];
                const double m2 = a * a / s2 + b * b / s3;
                if (m2 > CUT) continue;
                const double reach = sqrt((CUT - m2) * s_rho);
                const i64 last = last_rho((rho + reach) / rho_step, n_rho);
                for (i64 r = first_rho((rho - reach) / rho_step); r <= last; ++r) {
                    const double off = (r - BEYOND) * rho_step - rho;
                    const double own = weights[node] * gauss(m2 + off * off / s_rho);
                    add(votes + k * n_rho + r, (i64)(own * ONE + 0.5));
                }
            }
        }
    }
}

// Angle of a direction in [-pi, pi].
__device__ double angle_of(double y, double x) {
    if (x == 0.0 && y == 0.0) return 0.0;
    const double a = magnitude(x), b = magnitude(y);
    double t = lesser(a, b) / greater(a, b);
    for (int step = 0; step < 3; ++step) t = t / (1.0 + sqrt(1.0 + t * t));
    const double s = t * t;
    double angle =
        8.0 * t *
        (1.0 -
         s * (1.0 / 3.0 -
              s * (0.2 - s * (1.0 / 7.0 -
                              s * (1.0 / 9.0 -
                                   s * (1.0 / 11.0 - s * (1.0 / 13.0 - s * (1.0 / 15.0))))))));
    if (b > a) angle = 0.5 * PI - angle;
    if (x < 0.0) angle = PI - angle;
    return y < 0.0 ? -angle : angle;
}

// planes_vote_as_paper: the covariance of a node, transformed to rho, phi and theta.
// thread   one direction of a row; one warp per node
extern "C" __global__ void planes_vote_as_paper(const double* means, const double* covariances,
                                                const double* vectors, const double* weights,
                                                const double* phis, const double* thetas,
                                                const int* rows, i64 n_rows, double step,
                                                double rho_step, double unit, i64 n_rho, i64* votes,
                                                i64 n_nodes) {
    const int lane = threadIdx.x % 32;
    const double wide = rho_step * unit;
    for (i64 node = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32; node < n_nodes;
         node += (i64)gridDim.x * blockDim.x / 32) {
        const double *mean = means + 3 * node, *s = covariances + 6 * node;
        double nx = vectors[9 * node], ny = vectors[9 * node + 1], nz = vectors[9 * node + 2];
        double rho = (nx * mean[0] + ny * mean[1]) + nz * mean[2];
        if (rho < 0.0) nx = -nx, ny = -ny, nz = -nz, rho = -rho;
        rho *= unit;
        const double level = sqrt(nx * nx + ny * ny);
        const double phi = angle_of(level, nz), theta = angle_of(ny, nx), pz = rho * nz;
        const double p2 = greater(rho * rho, TINY), lever = greater(rho * level, TINY);
        // at a pole theta is arbitrary
        const double ux = level > 0.0 ? nx / level : 1.0, uy = level > 0.0 ? ny / level : 0.0;
        const double j00 = nx, j01 = ny, j02 = nz;
        const double j10 = ux * pz / p2, j11 = uy * pz / p2, j12 = -rho * level / p2;
        const double j20 = -uy / lever, j21 = ux / lever, j22 = 0.0;
        const double u = unit * unit;
        const double sxx = s[0] * u, sxy = s[1] * u, sxz = s[2] * u;
        const double syy = s[3] * u, syz = s[4] * u, szz = s[5] * u;
        const double ax = j00 * sxx + j01 * sxy + j02 * sxz;
        const double ay = j00 * sxy + j01 * syy + j02 * syz;
        const double az = j00 * sxz + j01 * syz + j02 * szz;
        const double bx = j10 * sxx + j11 * sxy + j12 * sxz;
        const double by = j10 * sxy + j11 * syy + j12 * syz;
        const double bz = j10 * sxz + j11 * syz + j12 * szz;
        const double cx = j20 * sxx + j21 * sxy + j22 * sxz;
        const double cy = j20 * sxy + j21 * syy + j22 * syz;
        const double cz = j20 * sxz + j21 * syz + j22 * szz;
        const double c00 = ax * j00 + ay * j01 + az * j02 + NOISE;
        const double c01 = ax * j10 + ay * j11 + az * j12;
        const double c02 = ax * j20 + ay * j21 + az * j22;
        const double c11 = bx * j10 + by * j11 + bz * j12;
        const double c12 = bx * j20 + by * j21 + bz * j22;
        const double c22 = cx * j20 + cy * j21 + cz * j22;
        const double m00 = c11 * c22 - c12 * c12, m01 = c02 * c12 - c01 * c22;
        const double m02 = c01 * c12 - c02 * c11, m11 = c00 * c22 - c02 * c02;
        const double m12 = c01 * c02 - c00 * c12, m22 = c00 * c11 - c01 * c01;
        const double det = c00 * m00 + c01 * m01 + c02 * m02;
        if (!(det > 0.0)) continue;
        // 2 sqrt(2) pi^1.5
        const double height = lesser(weights[node] / (15.74960994572242 * sqrt(det)), MAX_VOTE);
        const double i00 = m00 / det, i01 = m01 / det, i02 = m02 / det;
        const double i11 = m11 / det, i12 = m12 / det, i22 = m22 / det;
        const double reach_rho = sqrt(CUT * c00), reach_phi = sqrt(CUT * c11);
        const i64 first = first_rho((rho - reach_rho) / wide);
        const i64 last = last_rho((rho + reach_rho) / wide, n_rho);
        for (i64 row = 0; row < n_rows; ++row) {
            if (magnitude(row * step - phi) > reach_phi) continue;
            for (i64 k = rows[row] + lane; k < rows[row + 1]; k += 32) {
                const double df = phis[k] - phi;
                double dt = thetas[k] - theta;
                if (dt > PI) dt -= 2.0 * PI;
                if (dt < -PI) dt += 2.0 * PI;
                const double angles = i11 * df * df + 2.0 * i12 * df * dt + i22 * dt * dt;
                for (i64 r = first; r <= last; ++r) {
                    const double dr = (r - BEYOND) * wide - rho;
                    const double m2 = angles + 2.0 * dr * (i01 * df + i02 * dt) + i00 * dr * dr;
                    if (0.0 <= m2 && m2 <= CUT)
                        add(votes + k * n_rho + r, (i64)(height * gauss(m2) * PAPER_ONE + 0.5));
                }
            }
        }
    }
}

extern "C" __global__ void planes_smooth(const i64* votes, const int* beside, i64 n_directions,
                                         i64 n_rho, i64* smoothed) {
    FOR_EACH(at, n_directions * n_rho) {
        const i64 k = at / n_rho, r = at % n_rho;
        i64 total = 0;
        for (int i = 0; i < 4; ++i) total += votes[beside[4 * k + i] * n_rho + r];
        if (r > 0) total += votes[at - 1];
        if (r < n_rho - 1) total += votes[at + 1];
        smoothed[at] = 3 * votes[at] + 2 * total;
    }
}

__device__ bool is_peak(const i64* smoothed, const int* near, const int* near_starts, i64 radius,
                        i64 n_rho, i64 k, i64 r) {
    const i64 own = smoothed[k * n_rho + r];
    if (r < BEYOND || own == 0) return false;
    const i64 first = r > radius ? r - radius : 0;
    const i64 last = r + radius < n_rho - 1 ? r + radius : n_rho - 1;
    for (i64 q = first; q <= last; ++q) {  // most cells are rejected here
        const i64 v = smoothed[k * n_rho + q];
        if (v > own || (v == own && q < r)) return false;
    }
    for (int i = near_starts[k]; i < near_starts[k + 1]; ++i) {
        const i64 other = near[i];
        if (other == k) continue;
        for (i64 q = first; q <= last; ++q) {
            const i64 v = smoothed[other * n_rho + q];
            if (v > own || (v == own && other < k)) return false;
        }
    }
    return true;
}

// planes_peaks: lists the cells that are the maximum of their surroundings, in any order.
// writes   found: their number, in a pair; then pairs of position in the accumulator and votes
extern "C" __global__ void planes_peaks(const i64* smoothed, const int* near,
                                        const int* near_starts, i64 radius, i64 n_directions,
                                        i64 n_rho, i64* found) {
    FOR_EACH(at, n_directions * n_rho) {
        if (!is_peak(smoothed, near, near_starts, radius, n_rho, at / n_rho, at % n_rho)) continue;
        const u64 place = 1 + atomicAdd((u64*)found, 1ull);
        found[2 * place] = at;
        found[2 * place + 1] = smoothed[at];
    }
}

// ---- planes of points                                                             (assign.py)

// planes_rest: lists the points that no plane explains, in any order.
extern "C" __global__ void planes_rest(const i64* points, const u64* size, i64 grid,
                                       const int* cell_starts, const int* items,
                                       const flag_t* plain, const double* planes, i64* points_left,
                                       u64* size_left) {
    __shared__ Kept kept[WARPS];
    Queue queue(&kept[threadIdx.x / 32], size_left);
    const auto write = [=](u64 at, i64 point, int) { points_left[at] = point; };
    const i64 n = (i64)*size;
    FOR_POINTS(k, n) {
        const i64 point = k < n ? points[k] : 0;
        const Steps at(point);
        const int cell = near_cell(at.a, at.b, at.c, (int)grid);
        bool left = k < n && plain[cell] == 0;
        for (int i = cell_starts[cell]; left && i < cell_starts[cell + 1]; ++i) {
            const double* p = planes + 5 * items[i];
            const double d = ((p[0] * at.a + p[1] * at.b) + p[2] * at.c) - p[3];
            left = !(magnitude(d) <= p[4]);
        }
        queue.push(left, point, 0, write);
    }
    queue.flush(queue.count, write);
}

// Position of a point: in steps, and in the raster of the nearest plane with a surface there.
struct Place {
    double x, y, z, distance, u, v;
    int plane, first;  // the nearest plane, and the first one in the list within its maximum distance
    i64 pixel;

    // labels: 0 if there is no surface; without labels every pixel is on a surface
    __device__ void find(int begin, int end, const int* items, const double* planes,
                         const double* rasters, const i64* starts, const int* labels) {
        double best = INFINITE;
        plane = first = -1;
        for (int i = begin; i < end; ++i) {
            const int other = items[i];
            const double* p = planes + 5 * other;
            const double d = ((p[0] * x + p[1] * y) + p[2] * z) - p[3], off = magnitude(d);
            if (!(off <= p[4])) continue;
            if (first < 0) first = other;
            if (!(off < best)) continue;
            const double* r = rasters + 9 * other;
            const double across = (((r[0] * x + r[1] * y) + r[2] * z) - r[6]) * r[8];
            const double up = (((r[3] * x + r[4] * y) + r[5] * z) - r[7]) * r[8];
            const i64 at = starts[3 * other] + (i64)up * starts[3 * other + 1] + (i64)across;
            if (labels != nullptr && labels[at] == 0) continue;
            best = off;
            plane = other;
            pixel = at;
            distance = d;
            u = across;
            v = up;
        }
    }

    // Distance in units of the maximum distance / NEAR.
    __device__ int parts(const double* planes) const {
        return (int)floor(distance / planes[5 * plane + 4] * NEAR + 0.5);
    }
};

__device__ Place place_of(double x, double y, double z, double low_x, double low_y, double low_z,
                          double scale, int grid, const int* cell_starts, const int* items,
                          const double* planes, const double* rasters, const i64* starts,
                          const int* labels) {
    Place place;
    place.x = (x - low_x) * scale;
    place.y = (y - low_y) * scale;
    place.z = (z - low_z) * scale;
    const int a = step_of(x, low_x, scale), b = step_of(y, low_y, scale);
    const int cell = near_cell(a, b, step_of(z, low_z, scale), grid);
    place.find(cell_starts[cell], cell_starts[cell + 1], items, planes, rasters, starts, labels);
    return place;
}

// planes_cover: marks the pixels that have points, and sums up the points, their distances and the
// points of which a plane is the first within its maximum distance.
// races    all threads write the same value to a pixel
extern "C" __global__ void planes_cover(const double* x, const double* y, const double* z, i64 n,
                                        double low_x, double low_y, double low_z, double scale,
                                        i64 grid, const int* cell_starts, const int* items,
                                        const double* planes, const double* rasters,
                                        const i64* starts, flag_t* covered, i64* sums, i64 n_rows) {
    __shared__ int all_rows[WARPS][32], all_words[WARPS][32 * 2];
    __shared__ u32 table[ROWS * 4 * 2];  // points, first ones, distances, squares
    const int lane = threadIdx.x % 32, here = n_rows < ROWS ? (int)n_rows : ROWS;
    int *rows = all_rows[threadIdx.x / 32], *words = all_words[threadIdx.x / 32];
    for (int k = threadIdx.x; k < here * 8; k += blockDim.x) table[k] = 0;
    __syncthreads();
    u32* own = table;
    const auto put = [=](int row, int column, i64 total) {
        if (row < ROWS) add_halves(own + 2 * (4 * row + column), total);
        else add(sums + SUMS * (i64)row + column + (column & 2), total);
    };
    const auto write = [=](int row, int sum, i64 total) { put(row, sum + (sum > 0), total); };
    Gathered<3, 2> gathered(0x110, 0x100);  // points, distances, squares
    words[2 * lane] = 1;
    FOR_POINTS(k, n) {
        int first = -1;
        rows[lane] = -1;
        if (k < n) {
            const Place place = place_of(__ldcs(x + k), __ldcs(y + k), __ldcs(z + k), low_x, low_y,
                                         low_z, scale, (int)grid, cell_starts, items, planes,
                                         rasters, starts, nullptr);
            if (place.plane >= 0) {
                if (!covered[place.pixel]) covered[place.pixel] = 1;
                rows[lane] = place.plane;
                first = place.first;
                words[2 * lane + 1] = place.parts(planes);
            }
        }
        const Peers same(first);
        if (first >= 0 && same.before() == 0) put(first, 1, same.size());
        __syncwarp();
        gathered.take(rows, words, write);
        __syncwarp();
    }
    gathered.finish(write);
    __syncthreads();
    for (int k = threadIdx.x; k < here * 4; k += blockDim.x) {
        const u64 total = (u64)table[2 * k + 1] << 32 | table[2 * k];
        const int column = k % 4;
        if (total != 0) add(sums + SUMS * (k / 4) + column + (column & 2), (i64)total);
    }
}

// ---- surfaces of planes                                                           (pixels.py)

// Position of a pixel in its raster; rasters[n]: first pixel, rows, columns.
struct Pixel {
    int row, column, rows, columns;
    __device__ Pixel(int k, const int* rasters, int n) {
        int low = 0;
        for (int high = n; high - low > 1;) {
            const int mid = (low + high) / 2;
            if (rasters[3 * mid] <= k) low = mid;
            else high = mid;
        }
        rows = rasters[3 * low + 1];
        columns = rasters[3 * low + 2];
        row = (k - rasters[3 * low]) / columns;
        column = (k - rasters[3 * low]) % columns;
    }
};

__device__ int root_of(const int* parent, int k) {
    for (int next = __ldcg(parent + k); next != k; next = __ldcg(parent + k)) k = next;
    return k;
}

// Merges two trees; the root is the first pixel of both.
__device__ void unite(int* parent, int a, int b) {
    for (;;) {
        a = root_of(parent, a);
        b = root_of(parent, b);
        if (a == b) return;
        const int first = a < b ? a : b, other = a < b ? b : a;
        const int before = atomicMin(&parent[other], first);
        if (before == other) return;
        a = before;  // another thread has linked it meanwhile
        b = first;
    }
}

// planes_connect: unites pixels that have points with their neighbours.
// thread   one pixel; of its four preceding neighbours only those that do not touch each other
extern "C" __global__ void planes_connect(const flag_t* covered, const int* rasters, i64 n_rasters,
                                          int* parent, i64 n) {
    FOR_EACH(at, n) {
        const int k = (int)at;
        if (!covered[k]) continue;
        const Pixel pixel(k, rasters, (int)n_rasters);
        const int up = k - pixel.columns;
        const bool above = pixel.row > 0, before = pixel.column > 0;
        const bool after = pixel.column < pixel.columns - 1;
        if (above && covered[up]) {
            unite(parent, k, up);
            continue;
        }
        if (before && covered[k - 1]) unite(parent, k, k - 1);
        else if (above && before && covered[up - 1]) unite(parent, k, up - 1);
        if (above && after && covered[up + 1]) unite(parent, k, up + 1);
    }
}

// Adds 1 to the row of each lane, nothing if it is -1; most lanes have the same row.
__device__ void add_pixels(i64* table, int row) {
    const u32 any = __ballot_sync(ALL, row >= 0);
    if (any == 0) return;
    const int first = __ffs(any) - 1, most = __shfl_sync(ALL, row, first);
    const u32 same = __ballot_sync(ALL, row == most);
    if (threadIdx.x % 32 == first) add(table + row, __popc(same));
    else if (row >= 0 && row != most) add(table + row, 1);
}

// planes_measure: the first pixel of each pixel's part; at first pixels also the size of the part.
extern "C" __global__ void planes_measure(const flag_t* covered, int* parent, i64* sizes, i64 n) {
    FOR_POINTS(k, n) {
        int root = -1;
        if (k < n && covered[k]) {
            root = root_of(parent, (int)k);
            if (root != k) parent[k] = root;
        }
        add_pixels(sizes, root);
    }
}

// planes_list_parts: lists the first pixels of parts, and their sizes, in any order, see planes_peaks.
extern "C" __global__ void planes_list_parts(const flag_t* covered, const int* parent,
                                             const i64* sizes, i64* firsts, i64 n) {
    FOR_EACH(k, n) {
        if (!covered[k] || parent[k] != k) continue;
        const u64 at = 1 + atomicAdd((u64*)firsts, 1ull);
        firsts[2 * at] = k;
        firsts[2 * at + 1] = sizes[k];
    }
}

// planes_name_parts: surfaces of parts, at their first pixels.
extern "C" __global__ void planes_name_parts(const i64* firsts, const int* numbers, int* surfaces,
                                             i64 n) {
    FOR_EACH(k, n) surfaces[firsts[k]] = numbers[k];
}

// planes_paint: surface of each pixel, from that of the first pixel of its part.
extern "C" __global__ void planes_paint(const flag_t* covered, const int* parts,
                                        const int* surfaces, int* labels, i64 n) {
    FOR_EACH(k, n) labels[k] = covered[k] ? surfaces[parts[k]] : 0;
}

// planes_edges: flags edge pixels.
extern "C" __global__ void planes_edges(int* labels, const int* rasters, i64 n_rasters, i64 n) {
    FOR_EACH(at, n) {
        const int k = (int)at, own = labels[k];
        if (own == 0) continue;
        const Pixel pixel(k, rasters, (int)n_rasters);
        bool edge = pixel.row == 0 || pixel.row == pixel.rows - 1 || pixel.column == 0 ||
                    pixel.column == pixel.columns - 1;
        for (int i = -1; i <= 1 && !edge; ++i)
            for (int j = -1; j <= 1; ++j)
                edge = edge || (__ldcg(labels + k + i * pixel.columns + j) & (EDGE - 1)) != own;
        if (edge) labels[k] = own | EDGE;
    }
}

// planes_settle: assigns each point to a surface, sums up the points of surfaces, and keeps the
// farthest point in each direction; `wants_owner`: whether owner and distance are written.
extern "C" __global__ void planes_settle(const double* x, const double* y, const double* z, i64 n,
                                         double low_x, double low_y, double low_z, double scale,
                                         i64 grid, const int* cell_starts, const int* items,
                                         const double* planes, const double* rasters,
                                         const i64* starts, const double* sides, const int* labels,
                                         i64* sums, i64* farthest, i64 n_rows, i64 wants_owner, int* owner,
                                         double* distance) {
    __shared__ int all_rows[WARPS][32], all_words[WARPS][32 * 5];
    __shared__ u32 table[ROWS * SUMS * 2];
    const int lane = threadIdx.x % 32, here = n_rows < ROWS ? (int)n_rows : ROWS;
    const double side_u = sides[2 * lane], side_v = sides[2 * lane + 1];
    int *rows = all_rows[threadIdx.x / 32], *words = all_words[threadIdx.x / 32];
    for (int k = threadIdx.x; k < here * SUMS * 2; k += blockDim.x) table[k] = 0;
    __syncthreads();
    u32* own = table;
    const auto write = [=](int row, int sum, i64 total) {
        if (row < ROWS) add_halves(own + 2 * (SUMS * row + sum), total);
        else add(sums + SUMS * (i64)row + sum, total);
    };
    Gathered<SUMS, 5> gathered(0x400000, 0x443210);  // n x y z d dd, of 1 x y z d
    words[5 * lane] = 1;
    FOR_POINTS(k, n) {
        int row = -1;
        bool edge = false;
        double u = 0.0, v = 0.0, unit = 0.0;
        if (k < n) {
            const Place place = place_of(__ldcs(x + k), __ldcs(y + k), __ldcs(z + k), low_x, low_y,
                                         low_z, scale, (int)grid, cell_starts, items, planes,
                                         rasters, starts, labels);
            if (place.plane >= 0) {
                const int label = labels[place.pixel];
                row = (label & (EDGE - 1)) - 1;
                edge = (label & EDGE) != 0;
                u = place.u;
                v = place.v;
                unit = (double)((1 << PLACES) - 1) / (double)starts[3 * place.plane + 2];
                words[5 * lane + 1] = (int)(place.x * PART);
                words[5 * lane + 2] = (int)(place.y * PART);
                words[5 * lane + 3] = (int)(place.z * PART);
                words[5 * lane + 4] = place.parts(planes);
            }
            if (wants_owner) {
                owner[k] = row + 1;
                distance[k] = place.plane >= 0 ? place.distance : NOT_A_NUMBER;
            }
        }
        rows[lane] = row;
        __syncwarp();
        gathered.take(rows, words, write);
        __syncwarp();
        for (u32 left = __ballot_sync(ALL, edge); left != 0; left &= left - 1) {
            const int from = __ffs(left) - 1;  // one point after the other, one direction per lane
            const double pu = __shfl_sync(ALL, u, from), pv = __shfl_sync(ALL, v, from);
            const double scale_up = __shfl_sync(ALL, unit, from);
            i64* far_row = farthest + SIDES * (i64)__shfl_sync(ALL, row, from) + lane;
            const i64 far = (i64)((side_u * pu + side_v * pv) * scale_up) + (1 << (PLACES + 1));
            const i64 key =
                (far << PLACES | (i64)(pu * scale_up)) << PLACES | (i64)(pv * scale_up);
            if (key > __ldcg(far_row)) atomicMax(far_row, key);
        }
    }
    gathered.finish(write);
    __syncthreads();
    for (int k = threadIdx.x; k < here * SUMS; k += blockDim.x) {
        const u64 total = (u64)table[2 * k + 1] << 32 | table[2 * k];
        if (total != 0) add(sums + k, (i64)total);
    }
}

extern "C" __global__ void planes_name(const int* owner, double* distance, const i64* ids,
                                       double step, i64* named, i64 n) {
    FOR_EACH(k, n) {
        const i64 id = ids[owner[k]];
        named[k] = id;
        distance[k] = id > 0 ? distance[k] * step : NOT_A_NUMBER;
    }
}

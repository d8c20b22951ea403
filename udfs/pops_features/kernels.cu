// pops_features on the GPU: the operations of moments.py, holes.py, features.py, order.py and
// aggregation.py in the same order, distributed over threads.
//
// A block of the patch kernels processes a superpatch: the patches that start in a part of an
// example, usually the whole example. Its cells are in shared memory if they fit, for all scales.

#include "geometry/eigen.cuh"

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define ALL 0xFFFFFFFFu
#define NOT_A_NUMBER __longlong_as_double(0x7FF8000000000000ll)
#define INFINITE __int_as_float(0x7F800000)
#define HEIGHT 0.8660254037844386  // sqrt(0.75)
#define FIVE 5                     // minimum, quartiles, maximum

#define SIDE 33                                // side of a superpatch in shared memory; odd to avoid bank conflicts
#define SCALES 16                              // maximum number of scales per launch
#define ROOM 4800                              // numbers of columns in shared memory
#define SORTED_FLOAT32 64                      // maximum number of values that a thread sorts
#define SORTED_FLOAT64 49
#define SORTER_BYTES 512
#define SORTERS(T) (SORTER_BYTES / sizeof(T))  // threads per block of sorting kernels

// ---- division                                                                   (division.py)

// The patches of one scale that start in a superpatch.
struct Part {
    double a, c;                 // sums of squares of x and y about their means, over a patch
    double per_column, per_row;  // 1 / number of columns and rows of a patch
    i64 at;                      // number of the first patch in its example
    int wide, deep;              // cells of a patch
    int across, up;              // number of patches
    int step_x, step_y;          // cells from one to the next
    int left, low;               // position of the first patch in the superpatch
    int width, columns;          // columns of one row of patches, of all rows
    u32 inverse;                 // 2^32 / width, rounded up
    int slot;                    // of the first column among those kept; -1: not kept
    int min_cells;               // minimum number of cells of a patch that have a value
    int along;                   // patches per column of patches of the example

    __device__ int patches() const { return across * up; }
    __device__ int cells() const { return wide * deep; }
};

// A superpatch: its cells in the example.
struct Place {
    int west, south, wide, deep;
};

// The work of a launch; it is followed by the superpatches, then by the parts of each.
struct Sweep {
    int pitch;           // columns of the grid
    int step_x, step_y;  // cells from an example to the next
    int places, parts;   // superpatches of an example; scales
    int patches;         // patches of an example
    int rounds;          // number of rounds in which columns are kept
    int ends[SCALES];    // end of the scales of each round
    int unused;

    __device__ const Place* place() const { return (const Place*)(this + 1); }
    __device__ const Part* part() const { return (const Part*)(place() + places + places % 2); }
};

// Cells of a superpatch, in shared or in global memory.
template <typename T>
struct Cells {
    const T* corner;
    int pitch;

    __device__ T operator()(int row, int column) const {
        return corner[(i64)row * pitch + column];
    }
};

// The k-th patch of a part; y varies fastest, as in the results.
struct Patch {
    int px, py;
    int column, row;
    i64 at;

    __device__ Patch(const Part& part, u32 k) {
        px = k / (u32)part.up;
        py = k % (u32)part.up;
        column = part.left + px * part.step_x;
        row = part.low + py * part.step_y;
        at = part.at + px * part.along + py;
    }
};

__device__ bool fits(const Place& place) { return place.wide <= SIDE && place.deep <= SIDE; }

// Loads the superpatch of this block: its parts, and its cells into the tile if they fit.
// Returns the cells in the grid.
template <typename T, typename S>
__device__ Cells<T> lay_out(const T* z, const Sweep& sweep, int rows, S* tile, Part* parts) {
    const u32 examples = gridDim.x / sweep.places;
    const u32 example = blockIdx.x % examples, here = blockIdx.x / examples;
    const u32 column = example / rows, row = example % rows;
    const Place place = sweep.place()[here];
    const Cells<T> cells = {z + ((i64)row * sweep.step_y + place.south) * sweep.pitch +
                                (i64)column * sweep.step_x + place.west,
                            sweep.pitch};
    const int words = sweep.parts * (int)(sizeof(Part) / sizeof(i64));
    const i64* from = (const i64*)(sweep.part() + here * sweep.parts);
    for (int k = threadIdx.x; k < words; k += blockDim.x) ((i64*)parts)[k] = from[k];
    if (fits(place))
        for (int r = threadIdx.x / 32; r < place.deep; r += blockDim.x / 32)
            for (int c = threadIdx.x % 32; c < place.wide; c += 32) tile[r * SIDE + c] = cells(r, c);
    __syncthreads();
    return cells;
}

// Distributes the tasks of several parts cyclically over threads or warps. Each part continues where
// the previous one ended, so that no thread is idle while there is work of any scale. The threads of
// a warp work on one part, whose numbers they share; mixed warps were slower, although fewer.
struct Dealer {
    int next, by, together;
    int part, before;  // part of the next task, and number of tasks of the parts before it

    __device__ static Dealer of_threads(int part) {
        return {(int)threadIdx.x, (int)blockDim.x, 32, part, 0};
    }
    __device__ static Dealer of_warps(int part) {
        return {(int)threadIdx.x / 32, (int)blockDim.x / 32, 1, part, 0};
    }
    // Calls task(part, k) for each task k of this thread in the parts up to `end`.
    template <typename Count, typename Task>
    __device__ void deal(int end, Count count, Task task) {
        for (; part < end; ++part) {
            const int n = count(part), all = (n + together - 1) / together * together;
            for (; next - before < all; next += by)
                if (next - before < n) task(part, next - before);
            before += all;
        }
    }
};

// Raw features: one array over all patches of all examples per feature.
struct Raw {
    double* values;
    i64 patches;

    __device__ Raw(double* values, const Sweep& sweep)
        : values(values), patches((i64)(gridDim.x / sweep.places) * sweep.patches) {}
    __device__ double& operator()(int series, i64 at) const { return values[series * patches + at]; }
};

// ---- moments                                                                    (moments.py)

struct Column {
    double first, mean, squares, cubes, fourths, tilt;
};

// Moments of a patch, and the sums of squares and products of x and y.
struct Moments {
    double base, mean;  // one of its heights, the mean relative to it
    double m2, m3, m4, mx, my;
    double xx, xy, yy;  // in cells; only if a cell is missing
    int n;              // cells that have a value
    bool whole;         // whether all cells have a value
};

template <typename T>
__device__ Column sum_column(const Cells<T>& z, const Part& part, int row, int column) {
    const int size = part.deep;
    const T* at = &z.corner[(i64)row * z.pitch + column];
    const double first = *at;
    double total = 0.0, squares = 0.0, cubes = 0.0, fourths = 0.0, tilt = 0.0;
    for (int r = 0; r < size; ++r) {
        const double off = at[(i64)r * z.pitch] - first, square = off * off;
        total += off;
        tilt += total;  // each row is in the totals of all later rows
        squares += square;
        cubes += square * off;
        fourths += square * square;
    }
    const double mean = total * part.per_row;
    fourths -= mean * (4.0 * cubes - mean * (6.0 * squares - 3.0 * mean * total));
    cubes -= mean * (3.0 * squares - 2.0 * mean * total);
    squares -= mean * total;
    tilt = 0.5 * (size + 1) * total - tilt;
    return {first, mean, squares, cubes, fourths, tilt};
}

// Merges the columns of a patch without missing cells; the mean is NaN if one is missing.
template <typename ColumnAt>
__device__ Moments merge_columns(const Part& part, ColumnAt column_at) {
    const int columns = part.wide;
    const double rows = part.deep;
    const Column west = column_at(0);
    double a1 = 0.0, a2 = 0.0, a3 = 0.0, a4 = 0.0;  // sums of powers about the mean of the first column
    double tilt = 0.0, own = 0.0;
    Moments sums = {west.first, west.mean};
    for (int c = 0; c < columns; ++c) {
        const Column column = column_at(c);
        const double e = (column.first - west.first) + (column.mean - west.mean);
        const double square = e * e, ee = rows * square;
        a1 += e;
        tilt += a1;  // each column is in the totals of all later ones
        sums.my += column.tilt;
        own += column.squares;
        a2 += square;
        a3 += column.cubes + e * (3.0 * column.squares + ee);
        a4 += column.fourths + e * (4.0 * column.cubes + e * (6.0 * column.squares + ee));
    }
    a2 = own + rows * a2;
    sums.mx = 0.5 * (columns + 1) * a1 - tilt;
    const double shift = a1 * part.per_column;
    a1 *= rows;
    sums.mean += shift;
    sums.m2 = a2 - shift * a1;
    sums.m3 = a3 - shift * (3.0 * a2 - 2.0 * shift * a1);
    sums.m4 = a4 - shift * (4.0 * a3 - shift * (6.0 * a2 - 3.0 * shift * a1));
    sums.mx = rows * sums.mx;
    sums.n = part.cells();
    sums.whole = true;
    return sums;
}

// Sums up a patch with missing cells.                                               (holes.py)
template <typename T>
__device__ __noinline__ Moments sum_cells(Cells<T> z, int row, int left, int rows, int columns) {
    int n = 0;
    double sx = 0.0, sy = 0.0, sz = 0.0, base = 0.0;
    for (int c = 0; c < columns; ++c)
        for (int r = 0; r < rows; ++r) {
            const double height = z(row + r, left + c);
            if (height != height) continue;
            if (n == 0) base = height;
            ++n;
            sx += c;
            sy += r;
            sz += height - base;
        }
    const double mean_x = sx / n, mean_y = sy / n, mean_z = sz / n;
    Moments sums = {base, mean_z};
    sums.n = n;
    for (int c = 0; c < columns; ++c)
        for (int r = 0; r < rows; ++r) {
            const double height = z(row + r, left + c);
            if (height != height) continue;
            const double x = c - mean_x, y = r - mean_y, e = (height - base) - mean_z, ee = e * e;
            sums.xx += x * x;
            sums.xy += x * y;
            sums.yy += y * y;
            sums.mx += x * e;
            sums.my += y * e;
            sums.m2 += ee;
            sums.m3 += ee * e;
            sums.m4 += ee * ee;
        }
    return sums;
}

// Numbers per column in shared memory: mean, squares; cubes and fourth powers, or the tilt.
template <bool HIGHER>
struct Columns {
    static const int WORDS = HIGHER ? 4 : 3, CAPACITY = ROOM / WORDS;
    double* words;

    __device__ void put(int k, const Column& column) const {
        words[k] = column.mean;
        words[CAPACITY + k] = column.squares;
        words[2 * CAPACITY + k] = HIGHER ? column.cubes : column.tilt;
        if (HIGHER) words[3 * CAPACITY + k] = column.fourths;
    }
    __device__ Column get(int k, double first) const {
        const double third = words[2 * CAPACITY + k];
        if (!HIGHER) return {first, words[k], words[CAPACITY + k], 0.0, 0.0, third};
        return {first, words[k], words[CAPACITY + k], third, words[3 * CAPACITY + k], 0.0};
    }
};

// Calls finish(part, moments, at) for each patch of the block; `at` is its number in its example.
// Columns are summed once for all adjacent patches of a scale, for as many scales at a time as there
// is room for; columns of patches that are too wide for that are summed when they are needed.
template <bool HIGHER, typename T, typename Finish>
__device__ void each_moments(const Cells<T>& cells, const Sweep& sweep, const Part* parts,
                             const Columns<HIGHER>& columns, Finish finish) {
    for (int round = 0, start = 0; round < sweep.rounds; start = sweep.ends[round++]) {
        const int end = sweep.ends[round];
        auto kept = [&](int s) { return parts[s].slot < 0 ? 0 : parts[s].columns; };
        Dealer::of_threads(start).deal(end, kept, [&](int s, int k) {
            const Part& part = parts[s];
            const int py = (u64)k * part.inverse >> 32;
            const int row = part.low + py * part.step_y;
            const int column = part.left + k - py * part.width;
            columns.put(part.slot + k, sum_column(cells, part, row, column));
        });
        __syncthreads();
        auto started = [&](int s) { return parts[s].patches(); };
        Dealer::of_threads(start).deal(end, started, [&](int s, int k) {
            const Part& part = parts[s];
            const Patch patch(part, k);
            Moments sums;
            if (part.slot >= 0) {
                const int slot = part.slot + patch.py * part.width + patch.px * part.step_x;
                sums = merge_columns(part, [&](int c) {
                    return columns.get(slot + c, cells(patch.row, patch.column + c));
                });
            } else {
                sums = merge_columns(part, [&](int c) {
                    return sum_column(cells, part, patch.row, patch.column + c);
                });
            }
            if (sums.mean != sums.mean)  // a cell is missing
                sums = sum_cells(cells, patch.row, patch.column, part.deep, part.wide);
            finish(part, sums, patch.at);
        });
        __syncthreads();
    }
}

// The same for the cells of this block; `at` is an index into the raw features.
template <bool HIGHER, typename T, typename Finish>
__device__ void with_moments(const T* z, const Sweep& sweep, int rows, Finish finish) {
    __shared__ double tile[SIDE * SIDE];
    __shared__ Part parts[SCALES];
    __shared__ double words[ROOM];
    const Columns<HIGHER> columns = {words};
    const Cells<T> there = lay_out(z, sweep, rows, tile, parts);
    const u32 examples = gridDim.x / sweep.places;
    const i64 first = (i64)(blockIdx.x % examples) * sweep.patches;
    auto use = [&](const Part& part, const Moments& sums, i64 at) { finish(part, sums, first + at); };
    // two calls, so that the compiler knows the memory space
    if (fits(sweep.place()[blockIdx.x / examples]))
        each_moments(Cells<double>{tile, SIDE}, sweep, parts, columns, use);
    else
        each_moments(there, sweep, parts, columns, use);
}

// ---- features                                                                  (features.py)

__device__ __noinline__ void eigenvalues(double xx, double xy, double xz, double yy, double yz,
                                         double zz, double* values) {
    const double matrix[6] = {xx, xy, xz, yy, yz, zz};
    double vectors[9];
    eigen(matrix, values, vectors);
}

// Explained variance ratios, or their position in the published triangle.
__device__ void write_pca(const Part& part, const Moments& sums, double dx, double dy,
                          const Raw& raw, i64 at, int pca, int ternary) {
    const double p = dx * sums.mx, q = dy * sums.my, m = sums.m2;
    double low, median, high, total, beyond;
    if (sums.whole && part.a == part.c) {
        const double a = part.a, g = p * p + q * q, h = 0.5 * (a - m), d = sqrt(h * h + g);
        total = a + a + m;
        high = 0.5 * (a + m) + d;
        median = a;
        if (ternary >= 0) {
            low = (a * m - g) / high;
            beyond = h > 0.0 ? g / (d + h) : d - h;
        }
    } else {
        const double a = sums.whole ? part.a : dx * dx * sums.xx;
        const double b = sums.whole ? 0.0 : dx * dy * sums.xy;
        const double c = sums.whole ? part.c : dy * dy * sums.yy;
        double values[3];
        eigenvalues(a, b, p, c, q, m, values);
        low = values[0];
        median = values[1];
        high = values[2];
        total = low + median + high;
        beyond = high - median;
    }
    if (pca >= 0) {
        const double share = 1.0 / total;
        raw(pca, at) = high * share;
        raw(pca + 1, at) = median * share;
    }
    if (ternary >= 0) {
        const double third = 3.0 * low / total, line = (1.0 - third) * (beyond / total);
        const double x = (1.0 - third - line) + 0.5 * third, y = HEIGHT * third;
        raw(ternary, at) = x < 0.0 ? 0.0 : x;
        raw(ternary + 1, at) = y < 0.0 ? 0.0 : y;
    }
}

struct Shape {
    double variance, skewness, kurtosis;

    __device__ Shape(double m2, double m3, double m4, double n)
        : variance(m2 / n), skewness(0.0), kurtosis(-3.0) {
        if (m2 == 0.0) return;
        skewness = (m3 / n) / (variance * sqrt(variance));
        kurtosis = (m4 / n) / (variance * variance) - 3.0;
    }
};

__device__ void forget(const Raw& raw, i64 at, int first, int n) {
    for (int k = 0; first >= 0 && k < n; ++k) raw(first + k, at) = NOT_A_NUMBER;
}

template <typename T>
__device__ void pca_of(const T* z, const Sweep& sweep, int rows, double dx, double dy, const Raw& raw, int pca,
                       int ternary) {
    with_moments<false>(z, sweep, rows, [&](const Part& part, const Moments& sums, i64 at) {
        if (sums.n >= part.min_cells) {
            write_pca(part, sums, dx, dy, raw, at, pca, ternary);
        } else {
            forget(raw, at, pca, 2);
            forget(raw, at, ternary, 2);
        }
    });
}

// Where heights minus the mean are wanted, the order statistics have been written as heights before.
template <typename T>
__device__ void stat_of(const T* z, const Sweep& sweep, int rows, const Raw& raw, int stat, int centred) {
    with_moments<true>(z, sweep, rows, [&](const Part& part, const Moments& sums, i64 at) {
        if (sums.n < part.min_cells) {
            forget(raw, at, stat, 4);
            forget(raw, at, centred, 3);
            return;
        }
        const Shape shape(sums.m2, sums.m3, sums.m4, sums.n);
        if (stat >= 0) {
            raw(stat, at) = sums.base + sums.mean;
            raw(stat + 1, at) = shape.variance;
            raw(stat + 2, at) = shape.skewness;
            raw(stat + 3, at) = shape.kurtosis;
        }
        if (centred >= 0) {
            raw(centred, at) = sqrt(shape.variance);
            raw(centred + 1, at) = shape.skewness;
            raw(centred + 2, at) = shape.kurtosis;
            for (int k = 3; k < 3 + FIVE; ++k)
                raw(centred + k, at) = (raw(centred + k, at) - sums.base) - sums.mean;
        }
    });
}

// pops_pca: eigenvalue ratios of the patches.                          (section 4.2)
// block    one superpatch; thread: one column, then one patch
// writes   raw[pca + 0, 1], raw[ternary + 0, 1]; nothing for -1
extern "C" __global__ void __launch_bounds__(256, 4)
    pops_pca_float32(const float* __restrict__ z, const Sweep* __restrict__ sweep, int rows, double dx, double dy, double* __restrict__ raw, int pca,
                     int ternary) {
    pca_of(z, *sweep, rows, dx, dy, Raw(raw, *sweep), pca, ternary);
}
extern "C" __global__ void __launch_bounds__(256, 4)
    pops_pca_float64(const double* __restrict__ z, const Sweep* __restrict__ sweep, int rows, double dx, double dy, double* __restrict__ raw, int pca,
                     int ternary) {
    pca_of(z, *sweep, rows, dx, dy, Raw(raw, *sweep), pca, ternary);
}

// pops_stat: mean, variance, skewness and kurtosis of the patches.     (section 4.2)
// block    as for pops_pca
// writes   raw[stat + 0 ... 3], raw[centred + 0 ... 2]; subtracts the mean from raw[centred + 3 ... 7]
extern "C" __global__ void __launch_bounds__(256, 4)
    pops_stat_float32(const float* __restrict__ z, const Sweep* __restrict__ sweep, int rows, double* __restrict__ raw, int stat, int centred) {
    stat_of(z, *sweep, rows, Raw(raw, *sweep), stat, centred);
}
extern "C" __global__ void __launch_bounds__(256, 4)
    pops_stat_float64(const double* __restrict__ z, const Sweep* __restrict__ sweep, int rows, double* __restrict__ raw, int stat, int centred) {
    stat_of(z, *sweep, rows, Raw(raw, *sweep), stat, centred);
}

// ---- order statistics                                                             (order.py)

// Values of a patch or a series, from `first` on in steps of `by`.
template <typename T>
struct Cursor {
    const T* at;
    int column, columns, pitch, skip, jump;

    __device__ Cursor(const Cells<T>& cells, int columns, int first, int by)
        : column(first % columns),
          columns(columns),
          pitch(cells.pitch),
          skip(by % columns),
          jump(by / columns) {
        at = cells.corner + (i64)(first / columns) * pitch + column;
    }
    __device__ T take() {
        const T value = *at;
        column += skip;
        at += (i64)jump * pitch + skip;
        if (column >= columns) {
            column -= columns;
            at += pitch - columns;
        }
        return value;
    }
};

// Position of a quartile among n sorted values: between `place` and the next one, by a share.
struct Quartile {
    i64 place;
    double share;

    __device__ Quartile(int j, i64 n, bool linear) {
        const u32 denominator = linear ? 4 : 12;
        const u64 numerator = linear ? 4 + (u64)(n - 1) * j : (u64)j * (3 * n + 1) + 4;
        const u64 position = linear ? numerator / 4 : numerator / 12;
        const bool inside = position >= 1 && position < (u64)n;
        place = inside ? position - 1 : position < 1 ? 0 : n - 1;
        share = inside ? (double)(u32)(numerator - position * denominator) / denominator : 0.0;
    }
    __device__ double between(double low, double high) const {
        return share > 0.0 ? low + share * (high - low) : low;
    }
};

__device__ void exchange(float& a, float& b) {
    const float low = fminf(a, b);
    b = fmaxf(a, b);
    a = low;
}
__device__ void exchange(double& a, double& b) {
    const double low = fmin(a, b);
    b = fmax(a, b);
    a = low;
}

// Batcher's merge exchange (lanes.py) of values in registers; all loops must be unrolled.
template <int TOP, int P, int Q, int R, int D, typename T, int N>
__device__ void merge_exchange(T (&x)[N]) {
#pragma unroll
    for (int i = 0; i < N - D; ++i)
        if ((i & P) == R) exchange(x[i], x[i + D]);
    if constexpr (Q != P) merge_exchange<TOP, P, Q / 2, P, Q - P>(x);
    else if constexpr (P > 1) merge_exchange<TOP, P / 2, TOP, 0, P / 2>(x);
}

__device__ constexpr int top_of(int n) {
    int top = 1;
    while (2 * top < n) top *= 2;
    return top;
}

// Sorts up to N values, and counts those that are not missing; sorted[k * SORTERS] is the k-th.
template <int N, typename T>
__device__ int sort_values(Cursor<T> cursor, int n, T* sorted) {
    const int top = top_of(N);
    T x[N];
    int m = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const T value = k < n ? cursor.take() : (T)NOT_A_NUMBER;
        m += value == value;
        x[k] = value == value ? value : (T)INFINITE;
    }
    merge_exchange<top, top, top, 0, top>(x);
#pragma unroll
    for (int k = 0; k < N; ++k) sorted[k * SORTERS(T)] = x[k];
    return m;
}

// Minimum, quartiles and maximum of a set; NaN if it has fewer than `min_values` values.
struct Five {
    double of[FIVE];
};

// The smallest sufficient network; there is one for each square number.
__device__ int sort_any(const Cursor<float>& cursor, int n, float* sorted) {
    return n <= 9    ? sort_values<9>(cursor, n, sorted)
           : n <= 16 ? sort_values<16>(cursor, n, sorted)
           : n <= 25 ? sort_values<25>(cursor, n, sorted)
           : n <= 36 ? sort_values<36>(cursor, n, sorted)
           : n <= 49 ? sort_values<49>(cursor, n, sorted)
                     : sort_values<SORTED_FLOAT32>(cursor, n, sorted);
}
__device__ int sort_any(const Cursor<double>& cursor, int n, double* sorted) {
    return n <= 9    ? sort_values<9>(cursor, n, sorted)
           : n <= 16 ? sort_values<16>(cursor, n, sorted)
           : n <= 25 ? sort_values<25>(cursor, n, sorted)
                     : sort_values<SORTED_FLOAT64>(cursor, n, sorted);
}

// Minimum, quartiles and maximum of few values, by one thread.
template <typename T>
__device__ Five five_by_thread(const Cells<T>& cells, int columns, int n, int min_values, bool linear) {
    __shared__ T all[64 * SORTERS(T)];
    T* sorted = all + threadIdx.x;
    const int m = sort_any(Cursor<T>(cells, columns, 0, 1), n, sorted);
    if (m < min_values) return {NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER};
    Five five = {(double)sorted[0]};
    for (int j = 1; j < 4; ++j) {
        const Quartile quartile(j, m, linear);
        const int place = (int)quartile.place, next = place + 1 < m ? place + 1 : place;
        five.of[j] = quartile.between(sorted[place * SORTERS(T)], sorted[next * SORTERS(T)]);
    }
    five.of[4] = sorted[(m - 1) * SORTERS(T)];
    return five;
}

// Maps numbers to integers in the same order, and back.
__device__ u32 ordered(float value) {
    const u32 bits = __float_as_uint(value);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}
__device__ u64 ordered(double value) {
    const u64 bits = (u64)__double_as_longlong(value);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}
__device__ float from_ordered(u32 key) {
    return __uint_as_float(key >> 31 ? key ^ 1u << 31 : ~key);
}
__device__ double from_ordered(u64 key) {
    return __longlong_as_double((i64)(key >> 63 ? key ^ 1ull << 63 : ~key));
}

template <typename T>
__device__ T warp_min(T value) {
    for (int away = 16; away > 0; away /= 2) {
        const T other = __shfl_xor_sync(ALL, value, away);
        value = other < value ? other : value;
    }
    return value;
}
__device__ int warp_sum(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(ALL, value);
#else
    for (int away = 16; away > 0; away /= 2) value += __shfl_xor_sync(ALL, value, away);
    return value;
#endif
}

// Values of a lane, kept in registers or read again from memory; NaN after the last.
template <typename T, int N>
struct Kept {
    T values[N];

    __device__ Kept(Cursor<T> cursor, int n) {
#pragma unroll
        for (int k = 0; k < N; ++k)
            values[k] = (int)(threadIdx.x % 32) + 32 * k < n ? cursor.take() : (T)NOT_A_NUMBER;
    }
    template <typename Use>
    __device__ void each(Use use) const {
#pragma unroll
        for (int k = 0; k < N; ++k) use(values[k]);
    }
};
template <typename T>
struct Taken {
    const Cursor<T> start;
    const int n;

    template <typename Use>
    __device__ void each(Use use) const {
        Cursor<T> cursor = start;
        for (int k = threadIdx.x % 32; k < n; k += 32) use(cursor.take());
    }
};

// Minimum, quartiles and maximum of the values of a warp: bisection for the three quartiles at once,
// each until one value is left between its bounds, or the bounds meet at equal values. Comparisons
// with NaN are false.
template <typename T, typename Values>
__device__ Five select(const Values& values, int min_values, bool linear) {
    T low = (T)INFINITE, high = -(T)INFINITE;
    int n = 0;
    values.each([&](T value) {
        n += value == value;
        low = value < low ? value : low;
        high = value > high ? value : high;
    });
    n = warp_sum(n);
    if (n < min_values) return {NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER};
    low = warp_min(low);
    high = -warp_min(-high);
    const Quartile quartiles[3] = {{1, n, linear}, {2, n, linear}, {3, n, linear}};
    typedef decltype(ordered(low)) Key;
    const Key first = ordered(low), last = ordered(high);
    Key from[3] = {first, first, first}, to[3] = {last, last, last};
    int below[3] = {0, 0, 0}, upto[3] = {n, n, n};  // number of values below `from`; not above `to`
    auto found = [&](int j) { return from[j] == to[j] || upto[j] == below[j] + 1; };
    while (!(found(0) && found(1) && found(2))) {
        Key key[3];
        T mid[3];
        float count[3] = {0.0f, 0.0f, 0.0f};  // one instruction per value less than with int
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            key[j] = from[j] + (to[j] - from[j]) / 2;
            mid[j] = from_ordered(key[j]);
        }
        values.each([&](T value) {
#pragma unroll
            for (int j = 0; j < 3; ++j) count[j] += value <= mid[j] ? 1.0f : 0.0f;
        });
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            const int all = warp_sum((int)count[j]);
            if (found(j)) continue;
            if (all > quartiles[j].place) {
                to[j] = key[j];
                upto[j] = all;
            } else {
                from[j] = key[j] + 1;
                below[j] = all;
            }
        }
    }
    Five five = {low};
    five.of[4] = high;
#pragma unroll
    for (int j = 0; j < 3; ++j) {
        const T bound = from_ordered(from[j]);
        T here = (T)INFINITE, next = (T)INFINITE;
        values.each([&](T value) { here = value >= bound && value < here ? value : here; });
        here = warp_min(here);
        values.each([&](T value) { next = value > here && value < next ? value : next; });
        next = warp_min(next);
        const bool tie = upto[j] > quartiles[j].place + 1;
        five.of[1 + j] = quartiles[j].between(here, tie ? here : next);
    }
    return five;
}

// Minimum, quartiles and maximum of any number of values, by a warp; all lanes get the result.
template <typename T>
__device__ Five five_by_warp(const Cells<T>& cells, int columns, int n, int min_values, bool linear) {
    const Cursor<T> cursor(cells, columns, threadIdx.x % 32, 32);
    if (n <= 4 * 32) return select<T>(Kept<T, 4>(cursor, n), min_values, linear);
    if (n <= 8 * 32) return select<T>(Kept<T, 8>(cursor, n), min_values, linear);
    if constexpr (sizeof(T) == 4) {
        if (n <= 12 * 32) return select<T>(Kept<T, 12>(cursor, n), min_values, linear);
        if (n <= 16 * 32) return select<T>(Kept<T, 16>(cursor, n), min_values, linear);
    }
    return select<T>(Taken<T>{cursor, n}, min_values, linear);
}

__device__ void write_five(const Five& five, const Raw& raw, i64 at, int stat, int centred) {
    for (int k = 0; k < FIVE; ++k) {
        if (stat >= 0) raw(stat + 4 + k, at) = five.of[k];
        if (centred >= 0) raw(centred + 3 + k, at) = five.of[k];
    }
}

// Calls use(cells, part, at) for each patch of the block that belongs to this thread or warp.
template <typename T, typename Use>
__device__ void each_patch(const T* z, const Sweep& sweep, int rows, Dealer dealer, Use use) {
    __shared__ T tile[SIDE * SIDE];
    __shared__ Part parts[SCALES];
    const Cells<T> there = lay_out(z, sweep, rows, tile, parts);
    const u32 examples = gridDim.x / sweep.places;
    const i64 first = (i64)(blockIdx.x % examples) * sweep.patches;
    const bool here = fits(sweep.place()[blockIdx.x / examples]);
    const Cells<T> cells = here ? Cells<T>{tile, SIDE} : there;
    auto started = [&](int s) { return parts[s].patches(); };
    dealer.deal(sweep.parts, started, [&](int s, int k) {
        const Patch patch(parts[s], k);
        const T* corner = &cells.corner[(i64)patch.row * cells.pitch + patch.column];
        use(Cells<T>{corner, cells.pitch}, parts[s], first + patch.at);
    });
}

template <typename T>
__device__ void sort_of(const T* z, const Sweep& sweep, int rows, bool linear, const Raw& raw,
                        int stat, int centred) {
    each_patch(z, sweep, rows, Dealer::of_threads(0), [&](const Cells<T>& cells, const Part& part, i64 at) {
        const Five five = five_by_thread(cells, part.wide, part.cells(), part.min_cells, linear);
        write_five(five, raw, at, stat, centred);
    });
}

template <typename T>
__device__ void select_of(const T* z, const Sweep& sweep, int rows, bool linear, const Raw& raw,
                          int stat, int centred) {
    each_patch(z, sweep, rows, Dealer::of_warps(0), [&](const Cells<T>& cells, const Part& part, i64 at) {
        const Five five = five_by_warp(cells, part.wide, part.cells(), part.min_cells, linear);
        if (threadIdx.x % 32 == 0) write_five(five, raw, at, stat, centred);
    });
}

// pops_sort: minimum, quartiles and maximum of patches of few cells.
// block    one superpatch; SORTERS threads, one patch each
// writes   raw[stat + 4 ... 8], raw[centred + 3 ... 7]; nothing for -1
extern "C" __global__ void __launch_bounds__(128, 5)
    pops_sort_float32(const float* __restrict__ z, const Sweep* __restrict__ sweep, int rows, int linear, double* __restrict__ raw, int stat,
                      int centred) {
    sort_of(z, *sweep, rows, linear, Raw(raw, *sweep), stat, centred);
}
extern "C" __global__ void __launch_bounds__(64, 5)
    pops_sort_float64(const double* __restrict__ z, const Sweep* __restrict__ sweep, int rows, int linear, double* __restrict__ raw, int stat,
                      int centred) {
    sort_of(z, *sweep, rows, linear, Raw(raw, *sweep), stat, centred);
}

// pops_select: the same for larger patches.
// block    one superpatch; warp: one patch
extern "C" __global__ void __launch_bounds__(384, 2)
    pops_select_float32(const float* __restrict__ z, const Sweep* __restrict__ sweep, int rows, int linear, double* __restrict__ raw, int stat,
                        int centred) {
    select_of(z, *sweep, rows, linear, Raw(raw, *sweep), stat, centred);
}
extern "C" __global__ void __launch_bounds__(384, 2)
    pops_select_float64(const double* __restrict__ z, const Sweep* __restrict__ sweep, int rows, int linear, double* __restrict__ raw, int stat,
                        int centred) {
    select_of(z, *sweep, rows, linear, Raw(raw, *sweep), stat, centred);
}

// ---- aggregation                                                            (aggregation.py)

// The features of one kind and scale of an example.
struct Series {
    int feature;   // among the raw features
    int first, n;  // patches of the scale
    int place;     // position among the series of an example in the results
};

// Statistics of all series of all examples.
struct Results {
    double* values;
    i64 size;  // examples * series

    __device__ double& operator()(int statistic, i64 at) const {
        return values[statistic * size + at];
    }
};

__device__ const double* values_of(const double* raw, const Series& series, i64 example,
                                   i64 examples, i64 patches) {
    return raw + (series.feature * examples + example) * patches + series.first;
}

__device__ void write_five(const Five& five, const Results& results, i64 at) {
    for (int k = 0; k < FIVE; ++k) results(4 + k, at) = five.of[k];
}

// pops_sum_up: mean, variance, skewness and kurtosis of series.                (section 5)
// block    examples along x, one series along y; thread: one series of one example
// writes   results[0 ... 3]; patches: number of values
extern "C" __global__ void pops_sum_up(const double* raw, const Series* list, i64 examples,
                                       i64 n_patches, i64 n_series, i64 min_values, double* results,
                                       i64* patches) {
    const i64 example = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (example >= examples) return;
    const Series series = list[blockIdx.y];
    const double* values = values_of(raw, series, example, examples, n_patches);
    const Results out = {results, examples * n_series};
    const i64 at = example * n_series + series.place;
    int m = 0;
    double base = 0.0, total = 0.0;
    for (int k = 0; k < series.n; ++k) {
        const double value = values[k];
        if (value != value) continue;
        if (m == 0) base = value;
        ++m;
        total += value - base;
    }
    patches[at] = m;
    if (m < min_values) {
        for (int k = 0; k < 4; ++k) out(k, at) = NOT_A_NUMBER;
        return;
    }
    const double mean = total / m;
    double m2 = 0.0, m3 = 0.0, m4 = 0.0;
    for (int k = 0; k < series.n; ++k) {
        const double value = values[k];
        if (value != value) continue;
        const double e = (value - base) - mean, ee = e * e;
        m2 += ee;
        m3 += ee * e;
        m4 += ee * ee;
    }
    const Shape shape(m2, m3, m4, m);
    out(0, at) = base + mean;
    out(1, at) = shape.variance;
    out(2, at) = shape.skewness;
    out(3, at) = shape.kurtosis;
}

// pops_sort_series: minimum, quartiles and maximum of short series.
// block    as for pops_sum_up, with SORTERS threads
// writes   results[4 ... 8]
extern "C" __global__ void __launch_bounds__(64, 5)
    pops_sort_series(const double* raw, const Series* list, i64 examples, i64 n_patches,
                     i64 n_series, int min_values, int linear, double* results) {
    const i64 example = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (example >= examples) return;
    const Series series = list[blockIdx.y];
    const Cells<double> cells = {values_of(raw, series, example, examples, n_patches), series.n};
    const Results out = {results, examples * n_series};
    const Five five = five_by_thread(cells, series.n, series.n, min_values, linear);
    write_five(five, out, example * n_series + series.place);
}

// pops_select_series: the same for longer series.
// warp     one series of one example
extern "C" __global__ void __launch_bounds__(256, 3)
    pops_select_series(const double* raw, const Series* list, i64 examples, i64 n_patches,
                       i64 n_series, int min_values, int linear, double* results) {
    const i64 example = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32;
    if (example >= examples) return;
    const Series series = list[blockIdx.y];
    const Cells<double> cells = {values_of(raw, series, example, examples, n_patches), series.n};
    const Results out = {results, examples * n_series};
    const Five five = five_by_warp(cells, series.n, series.n, min_values, linear);
    if (threadIdx.x % 32 == 0) write_five(five, out, example * n_series + series.place);
}

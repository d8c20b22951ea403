// classify_ground on the GPU: the loops of points.py, fill.py, discs.py and terrain.py, one thread
// per point or cell, with the same sums in the same order. Grids are stored row by row; row 0 is the
// southernmost.
//
// Every kernel over a grid processes tiles of 32 x 8 cells with 256 threads. Rows are a grid-stride
// loop, so that any number of blocks along y is allowed.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned char flag_t;

#define INFINITE __int_as_float(0x7F800000)
#define LEVELS 10  // levels of the tables for discs: runs of up to 2^9 cells
#define STRIP 256  // starts of runs per block

// Loop over the cells (i, j) of a thread.
#define FOR_CELLS(i, j, n_rows, n_columns)                          \
    const int j = blockIdx.x * 32 + threadIdx.x % 32;               \
    if (j < (n_columns))                                            \
        for (int i = blockIdx.y * 8 + threadIdx.x / 32; i < (n_rows); i += gridDim.y * 8)

#define FOR_POINTS(i, n)                                                            \
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < (n);   \
         i += (long long)gridDim.x * blockDim.x)

__device__ int at_least(int value, int low) { return value < low ? low : value; }
__device__ int at_most(int value, int high) { return value > high ? high : value; }
__device__ float lesser(float a, float b) { return a < b ? a : b; }

__device__ u64 ordered(double value) {
    // -0 becomes 0; then the bits are mapped so that they compare like the values
    const long long bits = __double_as_longlong(value + 0.0);
    return (u64)bits ^ ((u64)(bits >> 63) | 0x8000000000000000ull);
}

__device__ double from_ordered(u64 bits) {
    return __longlong_as_double((long long)(bits >> 63 ? bits ^ 0x8000000000000000ull : ~bits));
}

// ---- points and grid                                                        (points.py; steps 1, 2)

// classify_extent: minimum and maximum of the values, and the number that are not finite.
// thread   values, grid-stride; a warp reduces its values before it accesses memory
// writes   ends[0]: minimum, ordered; ends[1]: complement of the maximum; bad[0]
extern "C" __global__ void classify_extent(const double* values, long long n, u64* ends, u64* bad) {
    u64 low = ~0ull, high = ~0ull;
    FOR_POINTS(i, n) {
        const double value = values[i];
        if (value - value != 0.0) {
            atomicAdd(bad, 1ull);
            continue;
        }
        const u64 bits = ordered(value);
        low = bits < low ? bits : low;
        high = ~bits < high ? ~bits : high;
    }
    for (int away = 16; away > 0; away /= 2) {
        u64 other = __shfl_xor_sync(0xFFFFFFFFu, low, away);
        low = other < low ? other : low;
        other = __shfl_xor_sync(0xFFFFFFFFu, high, away);
        high = other < high ? other : high;
    }
    if (threadIdx.x % 32 == 0) {
        atomicMin(&ends[0], low);
        atomicMin(&ends[1], high);
    }
}

__device__ long long square_of(double x, double y, double west, double south, double side, int rows,
                               int columns) {
    const long long c = (long long)((x - west) / side), r = (long long)((y - south) / side);
    return (r < rows ? r : rows - 1) * columns + (c < columns ? c : columns - 1);
}

// classify_mark: marks the squares that contain a point.
// races    all write the same value
extern "C" __global__ void classify_mark(const double* x, const double* y, long long n, double west,
                                         double south, double side, int rows, int columns,
                                         flag_t* occupied) {
    FOR_POINTS(i, n) {
        const long long k = square_of(x[i], y[i], west, south, side, rows, columns);
        if (!occupied[k]) occupied[k] = 1;
    }
}

// classify_lowest: lowest z of each cell, ordered.
// races    minima; most points are above the current value of the cell and skip the atomic
extern "C" __global__ void classify_lowest(const double* x, const double* y, const double* z,
                                           long long n, double west, double south, double cell,
                                           int rows, int columns, u64* lowest) {
    FOR_POINTS(i, n) {
        u64* at = lowest + square_of(x[i], y[i], west, south, cell, rows, columns);
        const u64 bits = ordered(z[i]);
        if (bits < __ldcg(at)) atomicMin(at, bits);
    }
}

// classify_heights: heights relative to the median, and the cells that have one.
extern "C" __global__ void classify_heights(const u64* lowest, double level, double farthest,
                                            long long n, float* heights, flag_t* known) {
    FOR_POINTS(i, n) {
        known[i] = lowest[i] != ~0ull;
        double height = known[i] ? from_ordered(lowest[i]) - level : 0.0;
        height = height < -farthest ? -farthest : height > farthest ? farthest : height;
        heights[i] = (float)height;
    }
}

// classify_points: height above the terrain, whether the point is ground, and by how much.  (step 11)
extern "C" __global__ void classify_points(const double* x, const double* y, const double* z,
                                           long long n, double west, double south, double level,
                                           double cell, const float* terrain, const float* slope,
                                           int rows, int columns, double distance,
                                           double per_slope, double unit, double* height,
                                           flag_t* is_ground, float* margin) {
    FOR_POINTS(i, n) {
        double u = (__ldcs(x + i) - west) / cell - 0.5, v = (__ldcs(y + i) - south) / cell - 0.5;
        u = u < 0.0 ? 0.0 : u > columns - 1.0 ? columns - 1.0 : u;
        v = v < 0.0 ? 0.0 : v > rows - 1.0 ? rows - 1.0 : v;
        const int c = (int)u, r = (int)v;
        const int e = at_most(c + 1, columns - 1), s = at_most(r + 1, rows - 1);
        const double a = u - c, b = v - r;
        const u64 here = (u64)r * columns, there = (u64)s * columns;
        double low = terrain[here + c] + a * (terrain[here + e] - terrain[here + c]);
        double up = terrain[there + c] + a * (terrain[there + e] - terrain[there + c]);
        const double above = (__ldcs(z + i) - level) - (low + b * (up - low));
        low = slope[here + c] + a * (slope[here + e] - slope[here + c]);
        up = slope[there + c] + a * (slope[there + e] - slope[there + c]);
        const double most = distance + per_slope * (low + b * (up - low));
        const double below = above + (most + most), over = most - above;
        height[i] = above / unit;
        is_ground[i] = above <= most && below >= 0.0;
        margin[i] = (float)((below < over ? below : over) / unit);
    }
}

// ---- fills                                                                           (fill.py)

// classify_halve: means of the known cells of each 2 x 2.       thread: one coarse cell
//   row, column    0 or 1: place of the first cell in its 2 x 2
extern "C" __global__ void classify_halve(const float* z, const flag_t* known, int rows, int columns,
                                          int row, int column, int coarse_rows, int coarse_columns,
                                          float* coarse, flag_t* coarse_known) {
    FOR_CELLS(i, j, coarse_rows, coarse_columns) {
        const int upper = at_least(2 * i - row, 0), lower = at_most(2 * i + 1 - row, rows - 1);
        const int left = at_least(2 * j - column, 0);
        const int right = at_most(2 * j + 1 - column, columns - 1);
        const bool two_rows = lower > upper, two_columns = right > left;
        const u64 p = (u64)upper * columns, q = (u64)lower * columns;
        const bool a = known[p + left], b = known[p + right] && two_columns;
        const bool c = known[q + left] && two_rows;
        const bool d = known[q + right] && two_rows && two_columns;
        float total = a ? z[p + left] : 0.0f;
        total += b ? z[p + right] : 0.0f;
        total += c ? z[q + left] : 0.0f;
        total += d ? z[q + right] : 0.0f;
        const int n = a + b + c + d;
        const u64 at = (u64)i * coarse_columns + j;
        coarse_known[at] = n > 0;
        coarse[at] = n > 0 ? total / (float)n : 0.0f;
    }
}

// classify_double: copies known cells; interpolates the others bilinearly from the coarse cells.
//   row, column    those of classify_halve
extern "C" __global__ void classify_double(const float* coarse, const float* z, const flag_t* known,
                                           int rows, int columns, int coarse_rows,
                                           int coarse_columns, int row, int column,
                                           float* result) {
    FOR_CELLS(i, j, rows, columns) {
        const u64 at = (u64)i * columns + j;
        if (known[at]) {
            result[at] = z[at];
            continue;
        }
        const int near = (i + row) / 2, k = (j + column) / 2;
        const int far = at_most(at_least(near + 2 * ((i + row) % 2) - 1, 0), coarse_rows - 1);
        const int other = at_most(at_least(k + 2 * ((j + column) % 2) - 1, 0), coarse_columns - 1);
        const float* a = coarse + (u64)near * coarse_columns;
        const float* b = coarse + (u64)far * coarse_columns;
        result[at] =
            0.75f * (0.75f * a[k] + 0.25f * b[k]) + 0.25f * (0.75f * a[other] + 0.25f * b[other]);
    }
}

// classify_relax: one damped Jacobi sweep over the unknown cells.
extern "C" __global__ void classify_relax(const float* z, const flag_t* known, float step, int rows,
                                          int columns, float* result) {
    FOR_CELLS(i, j, rows, columns) {
        const u64 at = (u64)i * columns + j;
        const float here = z[at];
        if (known[at]) {
            result[at] = here;
            continue;
        }
        const float up = z[i > 0 ? at - columns : at], down = z[i + 1 < rows ? at + columns : at];
        const float left = z[j > 0 ? at - 1 : at], right = z[j + 1 < columns ? at + 1 : at];
        const float mean = 0.25f * ((up + down) + (left + right));
        result[at] = here + step * (mean - here);
    }
}

// ---- openings                                                                     (discs.py; step 4)

// classify_runs: minimum of the 2^k cells from each start on, for all k below `levels`.
// block    STRIP starts in one row, by doubling in shared memory
// writes   tables[k][row][start]; start 0 is `margin` columns west of the grid
extern "C" __global__ void classify_runs(const float* z, float sign, int rows, int columns, int margin,
                                         int levels, float* tables) {
    __shared__ float runs[2][STRIP + (1 << (LEVELS - 1))];
    const int width = columns + 2 * margin, first = blockIdx.x * STRIP;
    const int needed = STRIP + (1 << (levels - 1)) - 1;
    for (int i = blockIdx.y; i < rows; i += gridDim.y) {
        __syncthreads();
        for (int k = threadIdx.x; k < needed; k += blockDim.x) {
            const int j = first + k - margin;
            runs[0][k] = j >= 0 && j < columns ? sign * z[(u64)i * columns + j] : INFINITE;
        }
        for (int level = 0; level < levels; ++level) {
            __syncthreads();
            const float* here = runs[level % 2];
            float* next = runs[1 - level % 2];
            const int half = 1 << level, left = STRIP + (1 << (levels - 1)) - (1 << level);
            for (int k = threadIdx.x; k < STRIP; k += blockDim.x)
                if (first + k < width)
                    tables[((u64)level * rows + i) * width + first + k] = here[k];
            if (level + 1 < levels)
                for (int k = threadIdx.x; k < left - half; k += blockDim.x)
                    next[k] = lesser(here[k], here[k + half]);
        }
    }
}

// classify_discs: minimum of sign * z in the disc around each cell, times `sign`.
// thread   one cell of the result, whose cell (0, 0) is the grid's (-outside, -outside)
// reads    two entries of the tables for each row of the disc
extern "C" __global__ void classify_discs(const float* tables, const int* half_widths,
                                          const int* levels, int radius, float sign, int rows,
                                          int columns, int margin, int outside, int result_rows,
                                          int result_columns, float* result) {
    const int width = columns + 2 * margin;
    FOR_CELLS(i, j, result_rows, result_columns) {
        const int row = i - outside, start = j - outside + margin;
        float minimum = INFINITE;
        for (int d = at_least(-radius, -row); d <= radius && row + d < rows; ++d) {
            const int half = half_widths[d < 0 ? -d : d], level = levels[d < 0 ? -d : d];
            const float* runs = tables + ((u64)level * rows + row + d) * width;
            const float left = runs[start - half], right = runs[start + half + 1 - (1 << level)];
            minimum = lesser(minimum, lesser(left, right));
        }
        result[(u64)i * result_columns + j] = sign * minimum;
    }
}

// classify_flag: cells that an opening has lowered by more than `most`.
extern "C" __global__ void classify_flag(const float* before, const float* after, float most, int rows,
                                         int columns, flag_t* flags) {
    FOR_CELLS(i, j, rows, columns) {
        const u64 at = (u64)i * columns + j;
        if (before[at] - after[at] > most) flags[at] = 1;
    }
}

// ---- from objects to terrain                                              (terrain.py; steps 5 to 10)

extern "C" __global__ void classify_blur_rows(const float* z, int radius, int rows, int columns,
                                              float* result) {
    const float scale = 1.0f / (float)(2 * radius + 1);
    FOR_CELLS(i, j, rows, columns) {
        const float* row = z + (u64)i * columns;
        float sum = 0.0f;
        for (int d = -radius; d <= radius; ++d) sum += row[at_most(at_least(j + d, 0), columns - 1)];
        result[(u64)i * columns + j] = sum * scale;
    }
}

extern "C" __global__ void classify_blur_columns(const float* z, int radius, int rows, int columns,
                                                 float* result) {
    const float scale = 1.0f / (float)(2 * radius + 1);
    FOR_CELLS(i, j, rows, columns) {
        float sum = 0.0f;
        for (int d = -radius; d <= radius; ++d)
            sum += z[(u64)at_most(at_least(i + d, 0), rows - 1) * columns + j];
        result[(u64)i * columns + j] = sum * scale;
    }
}

// classify_planes: slopes of the plane through 3 x 3 cells, and the rms distance from it.
extern "C" __global__ void classify_planes(const float* z, float scale, int rows, int columns,
                                           float* slope_x, float* slope_y, float* rms) {
    FOR_CELLS(i, j, rows, columns) {
        const float* above = z + (u64)at_least(i - 1, 0) * columns;
        const float* row = z + (u64)i * columns;
        const float* below = z + (u64)at_most(i + 1, rows - 1) * columns;
        const int west = at_least(j - 1, 0), east = at_most(j + 1, columns - 1);
        const float centre = row[j];
        const float a = above[west] - centre, b = above[j] - centre, c = above[east] - centre;
        const float d = row[west] - centre, e = row[east] - centre;
        const float f = below[west] - centre, g = below[j] - centre, h = below[east] - centre;
        const float x = ((c - a) + (e - d) + (h - f)) / 6.0f;
        const float y = ((f - a) + (g - b) + (h - c)) / 6.0f;
        const float mean = ((a + b + c) + (d + e) + (f + g + h)) / 9.0f;
        const float squares = (a * a + b * b + c * c) + (d * d + e * e) + (f * f + g * g + h * h);
        const float rest = squares - 9.0f * mean * mean - 6.0f * (x * x + y * y);
        const u64 at = (u64)i * columns + j;
        slope_x[at] = x * scale;
        slope_y[at] = y * scale;
        rms[at] = sqrtf((rest > 0.0f ? rest : 0.0f) / 9.0f);
    }
}

// classify_grow: smooth cells that continue the slope of smooth ground cells beside them.
extern "C" __global__ void classify_grow(const float* z, const float* slope_x, const float* slope_y,
                                         const float* rms, const flag_t* ground, float cell,
                                         float smooth, int needed, int rows, int columns,
                                         flag_t* result) {
    FOR_CELLS(i, j, rows, columns) {
        const u64 at = (u64)i * columns + j;
        result[at] = ground[at];
        if (ground[at] || rms[at] > smooth) continue;
        int n = 0;
        for (int r = at_least(i - 1, 0); r <= at_most(i + 1, rows - 1); ++r)
            for (int c = at_least(j - 1, 0); c <= at_most(j + 1, columns - 1); ++c) {
                const u64 near = (u64)r * columns + c;
                if (!ground[near] || rms[near] > smooth) continue;
                const float x = 0.5f * (slope_x[near] + slope_x[at]) * ((float)(c - j) * cell);
                const float y = 0.5f * (slope_y[near] + slope_y[at]) * ((float)(r - i) * cell);
                n += fabsf((z[near] - z[at]) - (x + y)) <= smooth;
            }
        result[at] = n >= needed;
    }
}

// classify_extend: candidates that the planes of the ground cells of some half disc around meet.
extern "C" __global__ void classify_extend(
    const float* z, const float* slope_x, const float* slope_y, const flag_t* ground,
    const flag_t* known, const flag_t* candidate, const int* near_rows, const int* near_columns,
    const float* near_x, const float* near_y, const float* most, const int* octant, int n_near,
    float min_planes, float of_ground, float of_known, int rows, int columns, flag_t* result) {
    FOR_CELLS(i, j, rows, columns) {
        const u64 at = (u64)i * columns + j;
        result[at] = ground[at];
        if (ground[at] || !candidate[at]) continue;
        // counts of the eight octants, one byte each: with cells of 1 m no octant has more than 255
        u64 cells = 0, planes = 0, met = 0;
        for (int k = 0; k < n_near; ++k) {
            const int r = i + near_rows[k], c = j + near_columns[k];
            if (r < 0 || r >= rows || c < 0 || c >= columns) continue;
            const u64 near = (u64)r * columns + c;
            if (!known[near]) continue;
            const u64 one = 1ull << (8 * octant[k]);
            cells += one;
            if (!ground[near]) continue;
            planes += one;
            const float plane = z[near] - (slope_x[near] * near_x[k] + slope_y[near] * near_y[k]);
            if (fabsf(z[at] - plane) <= most[k]) met += one;
        }
        for (int o = 0; o < 8; ++o) {
            int n_cells = 0, n_planes = 0, n_met = 0;
            for (int k = o; k < o + 4; ++k) {
                n_cells += (int)(cells >> (8 * (k & 7)) & 255);
                n_planes += (int)(planes >> (8 * (k & 7)) & 255);
                n_met += (int)(met >> (8 * (k & 7)) & 255);
            }
            if ((float)n_met >= min_planes && (float)n_met >= of_ground * (float)n_planes &&
                (float)n_met >= of_known * (float)n_cells)
                result[at] = 1;
        }
    }
}

// classify_join_cliffs: candidates on the steep face between ground above and ground below them.
extern "C" __global__ void classify_join_cliffs(const float* z, const flag_t* ground,
                                                const flag_t* candidate, float reach, float cell,
                                                float diagonal, float slope, float distance,
                                                float top_slope, int rows, int columns,
                                                flag_t* result) {
    FOR_CELLS(i, j, rows, columns) {
        const u64 at = (u64)i * columns + j;
        result[at] = ground[at];
        if (ground[at] || !candidate[at]) continue;
        for (int k = 0; k < 4; ++k) {  // to the east, and to the north-west, north and north-east
            const int dr = k > 0, dc = k == 0 ? 1 : k - 2;
            const float step = dr * dc != 0 ? diagonal : cell;
            const int n_steps = (int)(reach / step);
            int ahead = 0, behind = 0;
            float front = 0.0f, back = 0.0f;
            for (int s = 1; s <= n_steps; ++s) {
                const int r = i + s * dr, c = j + s * dc;
                if (r >= rows || c < 0 || c >= columns) break;
                if (!ground[(u64)r * columns + c]) continue;
                ahead = s, front = z[(u64)r * columns + c];
                break;
            }
            for (int s = 1; s <= n_steps; ++s) {
                const int r = i - s * dr, c = j - s * dc;
                if (r < 0 || c < 0 || c >= columns) break;
                if (!ground[(u64)r * columns + c]) continue;
                behind = s, back = z[(u64)r * columns + c];
                break;
            }
            if (ahead == 0 || behind == 0) continue;
            const bool rising = front >= back;
            const float top = rising ? front : back, foot = rising ? back : front;
            const float to_top = (float)(rising ? ahead : behind) * step;
            if (top - foot >= slope * ((float)(ahead + behind) * step) &&
                z[at] <= top + (distance + top_slope * to_top) && z[at] >= foot - distance)
                result[at] = 1;
        }
    }
}

// classify_slopes: slope of the plane through 3 x 3 cells.
extern "C" __global__ void classify_slopes(const float* terrain, float scale, int rows, int columns,
                                           float* result) {
    FOR_CELLS(i, j, rows, columns) {
        const float* up = terrain + (u64)at_least(i - 1, 0) * columns;
        const float* row = terrain + (u64)i * columns;
        const float* down = terrain + (u64)at_most(i + 1, rows - 1) * columns;
        const int w = at_least(j - 1, 0), e = at_most(j + 1, columns - 1);
        const float x = (((up[e] + down[e]) + row[e]) - ((up[w] + down[w]) + row[w])) * scale;
        const float y = (((down[w] - up[w]) + (down[e] - up[e])) + (down[j] - up[j])) * scale;
        result[(u64)i * columns + j] = sqrtf(x * x + y * y);
    }
}

// classify_near_terrain: makes ground of the known cells near the terrain.
// writes   changed[0]: number of cells that changed
extern "C" __global__ void classify_near_terrain(const float* z, const flag_t* known,
                                                 const float* terrain, const float* slope,
                                                 float distance, float per_slope,
                                                 const flag_t* ground, int rows, int columns,
                                                 flag_t* result, u32* changed) {
    FOR_CELLS(i, j, rows, columns) {
        const u64 at = (u64)i * columns + j;
        const float above = z[at] - terrain[at];
        const float most = distance + per_slope * slope[at];
        result[at] = known[at] && above <= most && above >= -(most + most);
        if (result[at] != ground[at]) atomicAdd(changed, 1u);
    }
}

// ground_surface on the GPU: the loops of cells.py with the same operations in the same order.
// Coordinates are relative to the lower left corner of the grid, or of the buckets. Grids are stored
// row by row; row 0 is the southernmost.
//
// Every kernel over a grid processes tiles of 32 x 8 cells with 256 threads. Rows are a grid-stride
// loop, so that any number of blocks along y is allowed.

typedef unsigned int u32;
typedef unsigned char flag_t;

#define INFINITE __longlong_as_double(0x7FF0000000000000ll)
#define STRIP 1024      // columns of a row per strip; a warp processes one strip at a time
#define NO_TRIANGLE ~0u
#define NEIGHBOURS 100  // the same value as MAX_NEIGHBOURS of the options

// Loop over the cells (i, j) of a thread.
#define FOR_CELLS(i, j, n_rows, n_columns)                          \
    const int j = blockIdx.x * 32 + threadIdx.x % 32;               \
    if (j < (n_columns))                                            \
        for (int i = blockIdx.y * 8 + threadIdx.x / 32; i < (n_rows); i += gridDim.y * 8)

__device__ double lesser(double a, double b) { return a < b ? a : b; }
__device__ double greater(double a, double b) { return a > b ? a : b; }

// ---- triangles                                                                       (step 4)

struct Triangle {
    double ax, ay, bx, by, cx, cy;
};

__device__ Triangle triangle_at(const double* x, const double* y, const int* corners, long long t) {
    const int i = corners[3 * t], j = corners[3 * t + 1], k = corners[3 * t + 2];
    return {x[i], y[i], x[j], y[j], x[k], y[k]};
}

// Twice the area of a, b, p: > 0 if p is left of a -> b. Exchanging a and b only changes the sign.
__device__ double side(double ax, double ay, double bx, double by, double px, double py) {
    return (ax - px) * (by - py) - (ay - py) * (bx - px);
}

// The areas opposite the corners; returns whether p is inside the triangle or on an edge.
__device__ bool is_inside(const Triangle& t, double px, double py, double* to_a, double* to_b,
                          double* to_c) {
    *to_a = side(t.bx, t.by, t.cx, t.cy, px, py);
    *to_b = side(t.cx, t.cy, t.ax, t.ay, px, py);
    *to_c = side(t.ax, t.ay, t.bx, t.by, px, py);
    return !(*to_a < 0.0 || *to_b < 0.0 || *to_c < 0.0 || *to_a + *to_b + *to_c == 0.0);
}

// The cells that a triangle may cover: rows [first, last] in strips of columns.
struct Span {
    int first, last, strips;
};

__device__ Span span_of(const Triangle& t, double y0, double resolution, int rows, int columns) {
    const double low = lesser(lesser(t.ay, t.by), t.cy), high = greater(greater(t.ay, t.by), t.cy);
    const double west = lesser(lesser(t.ax, t.bx), t.cx), east = greater(greater(t.ax, t.bx), t.cx);
    const double bottom = floor((low - y0) / resolution), top = ceil((high - y0) / resolution);
    // a row is widened by a cell at both ends, which rounding outwards and the crossings make five
    const double wide = lesser((east - west) / resolution + 6.0, columns);
    return {bottom > 0.0 ? (int)bottom : 0, top < rows - 1.0 ? (int)top : rows - 1,
            (int)wide / STRIP + 1};
}

// Widen [low, high] by where an edge meets the row.
__device__ void cross(double ux, double uy, double vx, double vy, double py, double* low,
                      double* high) {
    if ((uy <= py) == (vy <= py) && uy != py && vy != py) return;
    const double at = uy != vy ? ux + (py - uy) / (vy - uy) * (vx - ux) : ux;
    const double end = uy == vy ? vx : at;
    *low = lesser(*low, lesser(at, end));
    *high = greater(*high, greater(at, end));
}

// surface_count: strips of rows that each triangle may cover.             thread: one triangle
extern "C" __global__ void surface_count(const double* x, const double* y, const int* corners,
                                         long long n, double y0, double resolution, int rows,
                                         int columns, long long* strips) {
    const long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (t >= n) return;
    const Span span = span_of(triangle_at(x, y, corners, t), y0, resolution, rows, columns);
    strips[t] = span.last < span.first ? 0 : (span.last - span.first + 1ll) * span.strips;
}

// surface_rasterise: the first triangle that contains the centre of each cell, edges included.
// warp     strips, grid-stride: small and large triangles are divided into equal pieces of work
// lane     columns of the strip
// reads    ends: running sum of the strips of all triangles
// races    minima of triangles; the order of the warps does not matter
extern "C" __global__ void surface_rasterise(const double* x, const double* y, const int* corners,
                                             const long long* ends, long long n,
                                             const double* centre_x, const double* centre_y,
                                             double resolution, int rows, int columns,
                                             u32* owners) {
    const long long n_warps = (long long)gridDim.x * blockDim.x / 32, n_strips = ends[n - 1];
    const double x0 = centre_x[0];
    for (long long s = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / 32; s < n_strips;
         s += n_warps) {
        long long t = 0, behind = n - 1;  // the first triangle that ends after s
        while (t < behind) {
            const long long mid = (t + behind) / 2;
            if (ends[mid] > s) behind = mid;
            else t = mid + 1;
        }
        const Triangle triangle = triangle_at(x, y, corners, t);
        const Span span = span_of(triangle, centre_y[0], resolution, rows, columns);
        const long long k = s - (t > 0 ? ends[t - 1] : 0);
        const int row = span.first + (int)(k / span.strips);
        const double py = centre_y[row];
        double low = INFINITE, high = -INFINITE;
        cross(triangle.ax, triangle.ay, triangle.bx, triangle.by, py, &low, &high);
        cross(triangle.bx, triangle.by, triangle.cx, triangle.cy, py, &low, &high);
        cross(triangle.cx, triangle.cy, triangle.ax, triangle.ay, py, &low, &high);
        if (low > high) continue;
        const double west = floor((low - x0) / resolution) - 1.0;
        const double east = ceil((high - x0) / resolution) + 1.0;
        const int first = (west > 0.0 ? (int)west : 0) + (int)(k % span.strips) * STRIP;
        const int last = (int)lesser(lesser(east, columns - 1.0), first + (STRIP - 1.0));
        for (int column = first + threadIdx.x % 32; column <= last; column += 32) {
            double to_a, to_b, to_c;
            if (!is_inside(triangle, centre_x[column], py, &to_a, &to_b, &to_c)) continue;
            u32* owner = owners + (long long)row * columns + column;
            if ((u32)t < __ldcg(owner)) atomicMin(owner, (u32)t);
        }
    }
}

// surface_heights: height of each cell that has a triangle, linear between its corners.
// writes   heights of these cells
extern "C" __global__ void surface_heights(const double* x, const double* y, const double* z,
                                           const int* corners, const u32* owners,
                                           const double* centre_x, const double* centre_y, int rows,
                                           int columns, double* heights) {
    FOR_CELLS(i, j, rows, columns) {
        const long long cell = (long long)i * columns + j;
        const long long t = owners[cell];
        if (t == NO_TRIANGLE) continue;
        double to_a, to_b, to_c;
        is_inside(triangle_at(x, y, corners, t), centre_x[j], centre_y[i], &to_a, &to_b, &to_c);
        const double a = z[corners[3 * t]], b = z[corners[3 * t + 1]], c = z[corners[3 * t + 2]];
        // differences from the first corner, so that a level triangle stays exactly level
        heights[cell] = a + (to_b * (b - a) + to_c * (c - a)) / (to_a + to_b + to_c);
    }
}

// ---- nearest points                                                                  (step 5)

// The nearest points so far, by ascending distance, then by position.
struct Nearest {
    double squares[NEIGHBOURS];
    u32 points[NEIGHBOURS];
};

// Points in the order of their buckets; see buckets.py.
struct Buckets {
    const double *x, *y;
    const long long* starts;
    double side;
    int columns, rows;
};

__device__ int bucket_of(double place, double side, int n) {
    const double bucket = floor(place / side);
    return bucket < 0.0 ? 0 : bucket > n - 1.0 ? n - 1 : (int)bucket;
}

// Inserts the points of the buckets [first, last] of a row; returns the number of points found.
__device__ int look(const Buckets& buckets, int row, int first, int last, double px, double py,
                    int wanted, int found, Nearest* near) {
    const long long* starts = buckets.starts + (long long)row * buckets.columns;
    const u32 stop = (u32)starts[last + 1];
    for (u32 p = (u32)starts[first]; p < stop; ++p) {
        const double dx = buckets.x[p] - px, dy = buckets.y[p] - py;
        const double square = dx * dx + dy * dy;
        if (found < wanted) {
            ++found;
        } else {
            const double most = near->squares[found - 1];
            if (square > most || (square == most && p > near->points[found - 1])) continue;
        }
        int k = found - 1;
        for (; k > 0; --k) {
            const double before = near->squares[k - 1];
            if (!(before > square || (before == square && near->points[k - 1] > p))) break;
            near->squares[k] = before;
            near->points[k] = near->points[k - 1];
        }
        near->squares[k] = square;
        near->points[k] = p;
    }
    return found;
}

// Searches growing rings of buckets until the next one is farther than the last wanted point;
// returns the number of points found.
__device__ int search(const Buckets& buckets, double px, double py, int wanted, Nearest* near) {
    int found = 0;
    const int column = bucket_of(px, buckets.side, buckets.columns);
    const int row = bucket_of(py, buckets.side, buckets.rows);
    const int n_rings = buckets.columns > buckets.rows ? buckets.columns : buckets.rows;
    for (int ring = 0; ring < n_rings; ++ring) {
        const double reach = (ring - 1) * buckets.side;
        if (found == wanted && ring > 0 && near->squares[found - 1] < reach * reach) break;
        const int west = column - ring, east = column + ring;
        const int south = row - ring > 0 ? row - ring : 0;
        const int north = row + ring < buckets.rows ? row + ring : buckets.rows - 1;
        for (int r = south; r <= north; ++r) {
            // the top and bottom rows of the ring are complete; the others have two cells
            if (r == row - ring || r == row + ring) {
                const int last = east < buckets.columns ? east : buckets.columns - 1;
                found = look(buckets, r, west > 0 ? west : 0, last, px, py, wanted, found, near);
            } else {
                if (west >= 0) found = look(buckets, r, west, west, px, py, wanted, found, near);
                if (east < buckets.columns)
                    found = look(buckets, r, east, east, px, py, wanted, found, near);
            }
        }
    }
    return found;
}

// surface_weigh: mean height of the points nearest to each wanted cell, weighted with
// 1 / distance squared; a point at the centre itself gives its height.
// local    the nearest points of a thread, of which only the wanted number is accessed
// writes   heights of the wanted cells
extern "C" __global__ void surface_weigh(const double* x, const double* y, const double* z,
                                         const long long* starts, double bucket, int n_columns,
                                         int n_rows, const double* centre_x,
                                         const double* centre_y, int neighbours,
                                         const flag_t* wanted, int rows, int columns,
                                         double* heights) {
    const Buckets buckets = {x, y, starts, bucket, n_columns, n_rows};
    FOR_CELLS(i, j, rows, columns) {
        const long long cell = (long long)i * columns + j;
        if (!wanted[cell]) continue;
        Nearest near;
        const int found = search(buckets, centre_x[j], centre_y[i], neighbours, &near);
        const double base = z[near.points[0]];
        if (near.squares[0] == 0.0 || found == 1) {
            heights[cell] = base;
            continue;
        }
        double total = 0.0, weights = 0.0;
        for (int k = 0; k < found; ++k) {
            // relative to the nearest point: no overflow, and level points stay exactly level
            const double weight = near.squares[0] / near.squares[k];
            total += weight * (z[near.points[k]] - base);
            weights += weight;
        }
        heights[cell] = base + total / weights;
    }
}

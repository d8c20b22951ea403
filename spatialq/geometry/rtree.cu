// Boxes of meshes, and the R-tree of rtree.py: its construction and search. The comparisons are the
// same; the order along the curve may differ, the pairs do not.

typedef unsigned int u32;
typedef unsigned long long u64;

#define INFINITE __longlong_as_double(0x7FF0000000000000ll)
#define FAN_BITS 2
#define FAN_OUT (1 << FAN_BITS)   // FAN_OUT of rtree.py
#define MAX_STEPS 1024            // of a search in one thread; more than a tree without a level PART
                                  // has nodes
#define PART 4                    // level of the nodes among which long searches are divided
#define PART_SIZE (1 << (PART * FAN_BITS))  // elements of such a node

// A box; read in three pieces of 16 bytes.
struct alignas(16) Box {
    double west, south, bottom, east, north, top;
};

// Whether boxes are at most the distance apart along every axis. A node is near whatever one of its
// elements is near: rounding a - b never reverses an order.
__device__ bool near(const Box& a, const Box& b, double distance) {
    return b.west - a.east <= distance && a.west - b.east <= distance && b.south - a.north <= distance &&
           a.south - b.north <= distance && b.bottom - a.top <= distance && a.bottom - b.top <= distance;
}

__device__ double lesser(double a, double b) { return a < b ? a : b; }
__device__ double greater(double a, double b) { return a > b ? a : b; }

__device__ void widen(Box* box, const Box& by) {
    box->west = lesser(box->west, by.west);
    box->south = lesser(box->south, by.south);
    box->bottom = lesser(box->bottom, by.bottom);
    box->east = greater(box->east, by.east);
    box->north = greater(box->north, by.north);
    box->top = greater(box->top, by.top);
}

// The bounding box of the boxes of a warp, in all its lanes.
__device__ void widen_by_warp(Box* box) {
    for (int away = 16; away > 0; away /= 2) {
        const Box other = {
            __shfl_xor_sync(~0u, box->west, away),  __shfl_xor_sync(~0u, box->south, away),
            __shfl_xor_sync(~0u, box->bottom, away), __shfl_xor_sync(~0u, box->east, away),
            __shfl_xor_sync(~0u, box->north, away), __shfl_xor_sync(~0u, box->top, away)};
        widen(box, other);
    }
}

__device__ Box nothing() {
    return {INFINITE, INFINITE, INFINITE, -INFINITE, -INFINITE, -INFINITE};
}

__device__ long long thread_id() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }

// rtree_boxes: box of each mesh, from the corners of its faces.
// warp     one mesh
// lane     corners of faces, contiguous for the warp; the vertices of a mesh are near each other
extern "C" __global__ void rtree_boxes(const double* vertices, const int* faces,
                                       const long long* vertex_starts,
                                       const long long* face_starts, long long n, Box* boxes) {
    const long long mesh = thread_id() / 32;
    if (mesh >= n) return;
    const double* own = vertices + 3 * vertex_starts[mesh];
    const long long stop = 3 * face_starts[mesh + 1];
    Box box = nothing();
#pragma unroll 4
    for (long long corner = 3 * face_starts[mesh] + threadIdx.x % 32; corner < stop; corner += 32) {
        const double* at = own + 3ll * faces[corner];
        widen(&box, {at[0], at[1], at[2], at[0], at[1], at[2]});
    }
    widen_by_warp(&box);
    if (threadIdx.x % 32 == 0) boxes[mesh] = box;
}

// ---- order along a Morton curve

// Numbers in the order of doubles.
__device__ u64 ordered(double value) {
    const u64 bits = (u64)__double_as_longlong(value);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

__device__ double from_ordered(u64 number) {
    return __longlong_as_double((long long)(number >> 63 ? number & ~(1ull << 63) : ~number));
}

__device__ Box centre_of(const Box& box) {
    const double x = 0.5 * box.west + 0.5 * box.east, y = 0.5 * box.south + 0.5 * box.north;
    const double z = 0.5 * box.bottom + 0.5 * box.top;
    return {x, y, z, x, y, z};
}

// rtree_extent: the box of all centres, as ordered numbers: minima, and complements of maxima.
// thread   boxes, grid-stride; the launch's warps are full
// races    minima of extent[0 .. 6), which begin with all bits set
extern "C" __global__ void rtree_extent(const Box* boxes, long long n, u64* extent) {
    Box all = nothing();
    for (long long k = thread_id(); k < n; k += gridDim.x * (long long)blockDim.x)
        widen(&all, centre_of(boxes[k]));  // NaN, of nothing, is neither lesser nor greater
    widen_by_warp(&all);
    if (threadIdx.x % 32 != 0) return;
    atomicMin(extent, ordered(all.west));
    atomicMin(extent + 1, ordered(all.south));
    atomicMin(extent + 2, ordered(all.bottom));
    atomicMin(extent + 3, ~ordered(all.east));
    atomicMin(extent + 4, ~ordered(all.north));
    atomicMin(extent + 5, ~ordered(all.top));
}

// Two zeros between the bits of a number of 21 bits.
__device__ u64 spread(u64 v) {
    v = (v | v << 32) & 0x001F00000000FFFFull;
    v = (v | v << 16) & 0x001F0000FF0000FFull;
    v = (v | v << 8) & 0x100F00F00F00F00Full;
    v = (v | v << 4) & 0x10C30C30C30C30C3ull;
    return (v | v << 2) & 0x1249249249249249ull;
}

// rtree_codes: code of each centre, and below it the row: all keys are different.  thread: one box
extern "C" __global__ void rtree_codes(const Box* boxes, long long n, const u64* extent, int bits,
                                       int row_bits, u64* keys) {
    const long long row = thread_id();
    if (row >= n) return;
    double low[3], longest = 0.0;
    for (int axis = 0; axis < 3; ++axis) {
        low[axis] = from_ordered(extent[axis]);
        longest = greater(longest, from_ordered(~extent[3 + axis]) - low[axis]);
    }
    const double scale = longest > 0.0 ? ((1 << bits) - 1.0) / longest : 0.0;
    const Box centre = centre_of(boxes[row]);
    const double places[3] = {(centre.west - low[0]) * scale, (centre.south - low[1]) * scale,
                              (centre.bottom - low[2]) * scale};
    u64 code = 0;
    for (int axis = 0; axis < 3; ++axis)
        if (places[axis] > 0.0) code |= spread((u64)places[axis]) << axis;  // nothing: NaN
    keys[row] = code << row_bits | (u64)row;
}

// ---- tree

// rtree_leaves: boxes and rows in the order of the keys.                           thread: one box
extern "C" __global__ void rtree_leaves(const Box* boxes, const u64* keys, long long n,
                                        int row_bits, Box* ordered_boxes, int* rows) {
    const long long k = thread_id();
    if (k >= n) return;
    const int row = (int)(keys[k] & ((1ull << row_bits) - 1));
    rows[k] = row;
    ordered_boxes[k] = boxes[row];
}

// rtree_nodes: boxes of the nodes of a level, from the level below.               thread: one node
extern "C" __global__ void rtree_nodes(const Box* children, long long n_children, long long n,
                                       Box* nodes) {
    const long long node = thread_id();
    if (node >= n) return;
    const long long first = node * FAN_OUT;
    Box box = children[first];
    for (long long child = first + 1; child < first + FAN_OUT && child < n_children; ++child)
        widen(&box, children[child]);
    nodes[node] = box;
}

// Where pairs are written; those beyond the room are only counted.
struct Found {
    u64* count;
    u64 room;
    long long* pairs;
    int swapped;  // the first of a pair is the element: 1; the lower row of the two: 2
};

__device__ void add(const Found& found, int query, int element) {
    const bool element_first = found.swapped == 2 ? element < query : found.swapped;
    const long long first = element_first ? element : query;
    const long long second = element_first ? query : element;
    const u64 at = atomicAdd(found.count, 1ull);
    if (at < found.room) found.pairs[at] = first << 32 | second;
}

// rtree_search: the elements that meet each query, or within one set those behind it in the tree.
// thread   one query; they are in the order of their own curve, so those of a warp go similar ways
// walk     down to the first child of a node that is met, else on; up from the last child of a node
// writes   pairs, in any order; queries that take more than MAX_STEPS, and the first element that
//          each has not yet looked at
extern "C" __global__ void rtree_search(const Box* boxes, const long long* starts, int levels,
                                        const int* rows, const Box* queries,
                                        const int* query_rows, long long n, double distance,
                                        int swapped, u64* counts, long long room, long long* pairs,
                                        int* long_queries, int* long_firsts) {
    const long long query = thread_id();
    if (query >= n) return;
    const Found found = {counts, (u64)room, pairs, swapped};
    const Box box = queries[query];
    const bool within = swapped == 2;
    int level = within ? 0 : levels - 1;
    long long place = within ? query : 0;
    bool down = !within;  // within: begin behind the query itself
    for (int step = 0;; ++step) {
        if (!down) {
            ++place;
            while (level < levels && ((place & (FAN_OUT - 1)) == 0 ||
                                      place == starts[level + 1] - starts[level])) {
                ++level;
                place = (place + FAN_OUT - 1) >> FAN_BITS;
            }
        }
        if (level >= levels) return;
        if (step == MAX_STEPS) {
            const u64 k = atomicAdd(counts + 1, 1ull);
            long_queries[k] = (int)query;
            long_firsts[k] = (int)(place << (level * FAN_BITS));
            return;
        }
        down = false;
        if (!near(boxes[starts[level] + place], box, distance)) continue;
        if (level == 0) {
            add(found, query_rows[query], rows[place]);
        } else {
            down = true;
            --level;
            place <<= FAN_BITS;
        }
    }
}

// rtree_search_long: what rtree_search left, a giant among many for example.
// block    a query and a node of level PART, grid-stride
// thread   elements of the node
extern "C" __global__ void rtree_search_long(const Box* boxes, const long long* starts,
                                             const int* rows, const Box* queries,
                                             const int* query_rows, double distance, int swapped,
                                             u64* counts, long long room, long long* pairs,
                                             const int* long_queries, const int* long_firsts) {
    const Found found = {counts, (u64)room, pairs, swapped};
    const long long n = starts[1], n_long = (long long)counts[1];
    const long long parts = (n + PART_SIZE - 1) / PART_SIZE;
    for (long long k = blockIdx.x; k < n_long * parts; k += gridDim.x) {
        const int query = long_queries[k / parts];
        const long long part = k % parts, first = long_firsts[k / parts];
        const Box box = queries[query];
        if (!near(boxes[starts[PART] + part], box, distance)) continue;
        const long long stop = (part + 1) * PART_SIZE < n ? (part + 1) * PART_SIZE : n;
        for (long long element = part * PART_SIZE + threadIdx.x; element < stop;
             element += blockDim.x)
            if (element >= first && near(boxes[element], box, distance))
                add(found, query_rows[query], rows[element]);
    }
}

// build_lod on the GPU: points counted in grids, cells made nodes, points sorted into leaves.
//
// A grid has 8^depth finest cells in Morton order, and all coarser levels up to the cell in which
// the grid lies (its level 0). The grids of one round are stored together: first the finest cells
// of all grids, then the next coarser level, and so on; eight siblings take 32 bytes. The next
// round adds a grid in each finest cell that has too many points.
//
// The word of a cell holds its number of points, and the flag INNER if it is a node with children.
// In a finest cell with this flag the other bits are the number of the grid that the next round
// made in it. The word of a leaf is finally replaced by the number of its node.
//
// In loops over points a warp takes 32 * UNROLL consecutive points, so that all loads are in flight
// at once. Points of a warp that fall into the same cell are added by one lane.

#include "build_lod/points.cuh"
#include "geometry/bounds.cuh"

#define INNER 0x80000000u
#define PARENTS 512       // cells per block of lod_pyramid, one level above its finest
#define LEVELS 4          // computed by lod_pyramid; 8^3 == PARENTS
#define NODE_THREADS 1024
#define SLOT_STRIDE 8     // words between the slots of two leaves: one memory sector per slot

// Loop over the chunks of a warp; k is the first point of the lane, its others are 32 apart.
#define FOR_SHARES(k, n)                                                                 \
    for (i64 k = (blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32 * (32 * UNROLL) + threadIdx.x % 32; \
         k - threadIdx.x % 32 < (n); k += (i64)gridDim.x * blockDim.x * UNROLL)

// ---- formats of the input

struct PackedPoints {
    typedef Packed Record;
    typedef float Real;
    const Packed* points;
    __device__ Packed at(i64 k) const { return points[k]; }
};

struct Columns {
    typedef Wide Record;
    typedef double Real;
    const double *x, *y, *z;
    const u64* colour;
    __device__ Wide at(i64 k) const { return {x[k], y[k], z[k], colour[k]}; }
};

// ---- cells

// Eight siblings.
struct alignas(16) Siblings {
    u32 word[8];
};

// ---- lanes of a warp that have the same key

struct Group {
    int leader, rank, size;  // first lane of the group; rank of this lane; number of lanes

    __device__ Group(u32 key) {
        const u32 members = __match_any_sync(ALL, key), below = (1u << threadIdx.x % 32) - 1;
        leader = __ffs(members) - 1;
        rank = __popc(members & below);
        size = __popc(members);
    }
    __device__ bool leads() const { return threadIdx.x % 32 == leader; }
};

// ---- bounds

// lod_bounds: bounds of packed points.
// writes   ends[7]: see planes_bounds
extern "C" __global__ void lod_bounds(const Packed* points, i64 n, u64* ends) {
    Ends of_x, of_y, of_z;
    bool finite = true;
    FOR_EACH(k, n) {
        const Packed point = points[k];
        finite = of_x.take(point.x) && finite;
        finite = of_y.take(point.y) && finite;
        finite = of_z.take(point.z) && finite;
    }
    of_x.write(ends);
    of_y.write(ends + 2);
    of_z.write(ends + 4);
    if (!finite) ends[6] = 0;
}

// ---- counting

// Counts the points of each finest cell of the first grid; `level` is the finest level.
// writes   ids[n]: the cell of each point; words
template <typename Points>
__device__ void count_points(Points points, i64 n, Cube cube, int level, int depth, u32* words,
                             u32* ids) {
    const Cells<typename Points::Real> grid(cube, level, depth);
    const int UNROLL = 4;
    FOR_SHARES(k, n) {
        typename Points::Record found[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i)
            if (k + 32 * i < n) found[i] = points.at(k + 32 * i);
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            const bool mine = k + 32 * i < n;
            const u32 cell = mine ? grid.of(found[i]) : NOWHERE;
            if (mine) ids[k + 32 * i] = cell;
            const Group group(cell);
            if (group.leads() && mine) atomicAdd(&words[cell], (u32)group.size);
        }
    }
}

// The grids of a round, and the number of its first finest cell among those of all rounds.
struct Grids {
    u32* words;
    i64 start, cells;  // first finest cell, number of finest cells
};

// Counts the points of cells that were too full in the previous round, in the grids made in them.
// reads    ids: cells of the previous rounds
// writes   ids of such points; seen[grids], NOWHERE before: any point of each grid; differs[grids],
//          0 before: 1 if the points of a grid have more than one position
// races    all writers of differs write 1; reading an outdated value only costs time
template <typename Points>
__device__ void refine_points(Points points, i64 n, Cube cube, Grids above, Grids grids, int level,
                              int depth, u32* seen, u32* differs, u32* ids) {
    const Cells<typename Points::Real> within(cube, level, depth);
    const int UNROLL = 4;
    FOR_SHARES(k, n) {
        u32 words[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            const i64 at = k + 32 * i;
            const i64 cell = at < n ? ids[at] - above.start : -1;
            words[i] = cell >= 0 && cell < above.cells ? above.words[cell] : 0;
        }
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            const bool mine = words[i] & INNER;
            if (!__any_sync(ALL, mine)) continue;
            u32 cell = NOWHERE;
            if (mine) {
                const i64 at = k + 32 * i;
                const u32 grid = words[i] & ~INNER;
                const auto point = points.at(at);
                if (__ldcg(&differs[grid]) == 0) {
                    u32 other = __ldcg(&seen[grid]);
                    if (other == NOWHERE) other = atomicCAS(&seen[grid], NOWHERE, (u32)at);
                    if (other != NOWHERE && !(cube.place(points.at(other)) == cube.place(point)))
                        differs[grid] = 1;
                }
                cell = (grid << 3 * depth) + within.of(point);
                ids[at] = (u32)grids.start + cell;
            }
            const Group group(cell);
            if (group.leads() && cell != NOWHERE) atomicAdd(&grids.words[cell], (u32)group.size);
        }
    }
}

// lod_full: finest cells with too many points, in which the next round makes grids.
// reads    differs[grids]: whether the points of a grid have more than one position
// writes   words: INNER and the number of the cell's grid; for each such grid: above, the cell among
//          those of all rounds, and counts, its points; n_full, 0 before: number of these grids
extern "C" __global__ void lod_full(u32* words, i64 grids, i64 depth, i64 start, i64 max_points,
                                    const u32* differs, u32* above, u32* counts, u32* n_full) {
    FOR_EACH(cell, grids << 3 * depth) {
        if (words[cell] <= max_points || differs[cell >> 3 * depth] == 0) continue;
        const u32 grid = atomicAdd(n_full, 1u);
        above[grid] = (u32)(start + cell);
        counts[grid] = words[cell];
        words[cell] = INNER | grid;
    }
}

// ---- nodes

// Word (points and INNER) of the parent of eight cells.
__device__ u32 parent_of(const u32* words, i64 max_points, u32* occupied) {
    u32 points = 0, inner = 0, mask = 0;
    for (int child = 0; child < 8; ++child) {
        const u32 word = words[child];
        points += word & ~INNER;
        inner |= word & INNER;
        mask |= (word != 0) << child;
    }
    *occupied = __popc(mask);
    // too many points in a single child that is a leaf: they all have the same position
    return points > max_points && *occupied > 1 ? INNER | points : inner | points;
}

// lod_pyramid: up to LEVELS coarser levels from one level; each is stored after the finer one.
// block    PARENTS cells of the first coarser level, one thread per cell
// reads    counts, differs of the grids in the cells, if the level is the finest one, otherwise 0;
//          n_full (or 0): the kernel does nothing while there is a full cell
// writes   n_nodes[levels]: adds the number of children of inner nodes, by level from the finest
extern "C" __global__ void lod_pyramid(u32* words, i64 cells, i64 levels, i64 max_points,
                                       const u32* counts, const u32* differs, const u32* n_full,
                                       u32* n_nodes) {
    __shared__ u32 below[PARENTS], n_children[LEVELS];
    const int t = threadIdx.x;
    if (n_full != 0 && *n_full > 0) return;
    if (t < LEVELS) n_children[t] = 0;
    __syncthreads();
    i64 parents = cells / 8, first = (i64)blockIdx.x * PARENTS;
    u32 word = 0, occupied;
    if (first + t < parents) {
        Siblings* there = (Siblings*)words + first + t;
        Siblings here = *there;
        for (int child = 0; child < 8 && counts != 0; ++child) {
            if (!(here.word[child] & INNER)) continue;
            const u32 grid = here.word[child] & ~INNER;
            if (differs[grid] == 0) there->word[child] = counts[grid];  // one position: a leaf
            here.word[child] = counts[grid] | (differs[grid] ? INNER : 0);
        }
        word = parent_of(here.word, max_points, &occupied);
        words[cells + first + t] = word;
        if (word & INNER) atomicAdd(&n_children[0], occupied);
    }
    below[t] = word;
    int within = PARENTS;
    for (int level = 1; level < levels; ++level) {
        words += cells;
        cells = parents;
        parents /= 8;
        first /= 8;
        within /= 8;
        __syncthreads();
        const bool mine = t < within && first + t < parents;
        if (mine) {
            word = parent_of(below + 8 * t, max_points, &occupied);
            words[cells + first + t] = word;
            if (word & INNER) atomicAdd(&n_children[level], occupied);
        }
        __syncthreads();
        if (t < within) below[t] = mine ? word : 0;
    }
    __syncthreads();
    if (t < levels && n_children[t] > 0) atomicAdd(&n_nodes[t], n_children[t]);
}

// Sum of the values of all preceding threads of the block, and of all threads.
__device__ u32 sum_before(u32 value, u32* all) {
    __shared__ u32 sums[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 sum = sum_up_to(value);
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sums[lane] = sum_up_to(lane < blockDim.x / 32 ? sums[lane] : 0);
    }
    __syncthreads();
    const u32 before = (warp > 0 ? sums[warp - 1] : 0) + sum - value;
    *all = sums[31];
    __syncthreads();
    return before;
}

// lod_root: the first node.
// reads    words: the word of the coarsest cell
// writes   the node; for an inner node within, its cell; for a leaf slots and its word
extern "C" __global__ void lod_root(u32* words, i64 level, u64 x, u64 y, u64 z, int* levels,
                                    u64* cells, int* parents, int* first_children,
                                    unsigned char* children, i64* firsts, i64* points, u32* within,
                                    u32* slots) {
    const u32 word = words[0];
    levels[0] = (int)level;
    cells[0] = x;
    cells[1] = y;
    cells[2] = z;
    parents[0] = first_children[0] = -1;
    children[0] = 0;
    firsts[0] = 0;
    points[0] = word & ~INNER;
    within[0] = word & INNER ? 0 : NOWHERE;
    slots[0] = 0;
    if (!(word & INNER)) words[0] = 0;
}

// lod_nodes: children of the nodes of a round, level by level from its coarsest.
// block    a single one; one thread per node
// reads    nodes first to end, which are the coarsest cells; counts of the grids in the finest
//          cells
// writes   the following nodes, see Tree; within: the cell of an inner node in its level of the
//          round, NOWHERE for a leaf; slots: the first point of a leaf; the words of leaves
extern "C" __global__ void __launch_bounds__(NODE_THREADS)
    lod_nodes(u32* words, i64 grids, i64 depth, i64 first, i64 end, const u32* counts, int* levels,
              u64* cells, int* parents, int* first_children, unsigned char* children, i64* firsts,
              i64* points, u32* within, u32* slots) {
    i64 size = grids;  // of the level of the parents
    for (int level = 0; level < depth; ++level) words += grids << 3 * (depth - level);
    for (int level = 0; level < depth && first < end; ++level) {
        size *= 8;
        words -= size;
        i64 next = end;
        for (i64 tile = first; tile < end; tile += NODE_THREADS) {
            const i64 node = tile + threadIdx.x;
            const u32 cell = node < end ? within[node] : NOWHERE;
            Siblings found = {};
            u32 mask = 0, all;
            if (cell != NOWHERE) found = ((const Siblings*)words)[cell];
            for (int child = 0; child < 8; ++child) mask |= (found.word[child] != 0) << child;
            i64 k = next + sum_before(__popc(mask), &all);
            next += all;
            if (mask == 0) continue;
            first_children[node] = (int)k;
            children[node] = (unsigned char)mask;
            i64 at = firsts[node];
            for (int child = 0; child < 8; ++child) {
                const u32 word = found.word[child], rest = word & ~INNER;
                if (word == 0) continue;
                const bool inner = word & INNER, finest = level + 1 == depth;
                levels[k] = levels[node] + 1;
                cells[3 * k] = 2 * cells[3 * node] + (child >> 2);
                cells[3 * k + 1] = 2 * cells[3 * node + 1] + (child >> 1 & 1);
                cells[3 * k + 2] = 2 * cells[3 * node + 2] + (child & 1);
                parents[k] = (int)node;
                first_children[k] = -1;
                children[k] = 0;
                firsts[k] = at;
                points[k] = inner && finest ? counts[rest] : rest;
                within[k] = !inner ? NOWHERE : finest ? rest : 8 * cell + child;
                slots[SLOT_STRIDE * k] = (u32)at;
                if (!inner) words[8ll * cell + child] = (u32)k;
                at += points[k];
                ++k;
            }
        }
        __syncthreads();
        first = end;
        end = next;
    }
}

// lod_leaves: the leaf of the points of each finest cell.
// reads    above[grids]: the cell of each grid among those of all rounds; 0 for the first round
// writes   leaf_of, starting at the first cell of the round
extern "C" __global__ void lod_leaves(const u32* words, i64 grids, i64 depth, const u32* above,
                                      i64 start, u32* leaf_of) {
    const i64 cells = grids << 3 * depth;
    FOR_EACH(k, cells) {
        u32 word = words[k];
        // 0: no points, or the first node, which is a finest cell only in a grid of one cell
        if ((word == 0 && depth > 0) || word & INNER) continue;
        const u32* level = words;
        i64 cell = k, size = cells;
        int left = depth;
        for (; left > 0; --left) {
            level += size;
            const u32 parent = level[cell / 8];
            if (parent & INNER) break;
            word = parent;
            cell /= 8;
            size /= 8;
        }
        if (left == 0 && above != 0) word = leaf_of[above[cell]];
        leaf_of[start + k] = word;
    }
}

// ---- sorting

// Writes the points leaf after leaf.
// reads    ids: the cell of each point among those of all rounds; leaf_of
// writes   slots: next free slot of each leaf; records; order: their original positions
template <typename Points>
__device__ void sort_points(Points points, i64 n, const u32* ids, const u32* leaf_of, u32* slots,
                            typename Points::Record* records, u32* order) {
    const int UNROLL = 1;  // higher values are slower for points in random order
    FOR_SHARES(k, n) {
        const u32 leaf = k < n ? leaf_of[ids[k]] : NOWHERE;
        typename Points::Record found;
        if (k < n) found = points.at(k);
        const Group group(leaf);
        u32 first = 0;
        if (group.leads() && k < n)
            first = atomicAdd(&slots[(i64)SLOT_STRIDE * leaf], (u32)group.size);
        const u32 to = __shfl_sync(ALL, first, group.leader) + group.rank;
        if (k >= n) continue;
        records[to] = found;
        order[to] = (u32)k;
    }
}

// ---- for both kinds of points

extern "C" __global__ void lod_count_packed(const Packed* points, i64 n, double x0, double y0,
                                            double z0, double size, i64 level, i64 depth,
                                            u32* words, u32* ids) {
    count_points(PackedPoints{points}, n, {x0, y0, z0, size}, level, depth, words, ids);
}

extern "C" __global__ void lod_count_columns(const double* x, const double* y, const double* z,
                                             const u64* colour, i64 n, double x0, double y0,
                                             double z0, double size, i64 level, i64 depth,
                                             u32* words, u32* ids) {
    count_points(Columns{x, y, z, colour}, n, {x0, y0, z0, size}, level, depth, words, ids);
}

extern "C" __global__ void lod_refine_packed(const Packed* points, i64 n, double x0, double y0,
                                             double z0, double size, u32* above, i64 above_start,
                                             i64 above_cells, u32* words, i64 start, i64 level,
                                             i64 depth, u32* seen, u32* differs, u32* ids) {
    refine_points(PackedPoints{points}, n, {x0, y0, z0, size}, {above, above_start, above_cells},
                  {words, start, 0}, level, depth, seen, differs, ids);
}

extern "C" __global__ void lod_refine_columns(const double* x, const double* y, const double* z,
                                              const u64* colour, i64 n, double x0, double y0,
                                              double z0, double size, u32* above, i64 above_start,
                                              i64 above_cells, u32* words, i64 start, i64 level,
                                              i64 depth, u32* seen, u32* differs, u32* ids) {
    refine_points(Columns{x, y, z, colour}, n, {x0, y0, z0, size},
                  {above, above_start, above_cells}, {words, start, 0}, level, depth, seen, differs,
                  ids);
}

extern "C" __global__ void lod_sort_packed(const Packed* points, i64 n, const u32* ids,
                                           const u32* leaf_of, u32* slots, Packed* records,
                                           u32* order) {
    sort_points(PackedPoints{points}, n, ids, leaf_of, slots, records, order);
}

extern "C" __global__ void lod_sort_columns(const double* x, const double* y, const double* z,
                                            const u64* colour, i64 n, const u32* ids,
                                            const u32* leaf_of, u32* slots, Wide* records,
                                            u32* order) {
    sort_points(Columns{x, y, z, colour}, n, ids, leaf_of, slots, records, order);
}

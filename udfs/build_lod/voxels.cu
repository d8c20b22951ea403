// build_lod on the GPU: voxels of inner nodes, see voxels.py. All sums are of whole numbers, so
// that their order does not matter.
//
// An octant is the eighth of a node's grid that one child covers; it is stored under the number of
// that child. The octants of a node are stored in the order of its children, so that all voxels lie
// in the order of the nodes, starting with the second node. An octant has up to 64^3 cells in Morton
// order, one bit per cell: words of 64 cells, of which only those with a voxel are kept, and tops
// of 64 words.
//
// First the octants of all leaves are marked at once, then those of inner nodes level by level from
// the deepest one: eight consecutive cells are one cell of the parent's grid. After that every
// voxel has its place in memory, and the points of all leaves are added to their voxels. Finally
// the voxels of inner nodes are added to those of their parents, again from the deepest level.

#include "build_lod/points.cuh"

#define OPAQUE 0xFF000000u
#define MARKERS 512      // threads per block of lod_mark_*
#define ADDERS 512       // the same for lod_first_* and so on
#define PIECE 16384      // points per pass of a block: VOXEL_WIDTH * 255 * PIECE < 2^32
#define SLOTS 3000       // voxels of an octant that are summed up in shared memory
#define MAX_WORDS 4096  // of an octant
#define VOXELS 1024      // per block in loops over voxels level by level

// the same values as in voxels.py
#define FINE 10
#define VOXEL_WIDTH (1 << FINE)
#define HALF (VOXEL_WIDTH / 2)
// Weight of a voxel, in the centre of an eighth of its parent voxel, for the parent voxel and for a
// neighbour that shares a face with the eighth; neighbours at its edges are too far away.
#define OWN 581     // VOXEL_WIDTH - floor(sqrt(3 * 256^2))
#define BESIDE 175  // VOXEL_WIDTH - floor(sqrt(768^2 + 2 * 256^2))

// 64 cells, at least one of them with a voxel.
struct alignas(16) Word {
    u64 cells;
    u32 before;  // voxels of the octant before this word
    u32 at;      // number of cells before this word, / 64
};

// 64 words.
struct alignas(16) Top {
    u64 words;  // bits of the words that are kept
    u32 first;  // number of the first of them among all kept words
};

// Reads 16 bytes with one load, even if not all of them are used.
template <typename T>
__device__ T load(const T* at) {
    uint4 words[sizeof(T) / 16];
    for (int k = 0; k < sizeof(T) / 16; ++k) words[k] = ((const uint4*)at)[k];
    T value;
    memcpy(&value, words, sizeof(T));
    return value;
}

// Filled in by voxels_gpu.py; every member has eight bytes.
struct Lod {
    const void* records;  // leaf after leaf
    const u32* order;     // their positions
    const void* source;   // by position: the records, or the colours
    const i64* point_id;  // by position; 0 where ids are positions
    // nodes, see Tree
    const int *level, *parent, *first_child;
    const unsigned char* children;
    const i64 *first, *points;
    // octants
    Top* tops;
    Word* words;
    u32 *first_word, *n_words, *n_voxels;
    u64* n_kept;  // words
    const i64* place;  // the first voxel
    u32* cells;        // of points, leaf after leaf
    // voxels; arrays that the strategy does not need are 0
    u32 *code, *owner;  // owner: the node whose octant a voxel is in
    void* colour;
    u32 *mass, *lowest;  // position of the lowest point
    u64 *keys, *sums;
    i64 depth, n_tops, max_points, seed;
    Cube cube;

    __device__ bool is_leaf(i64 node) const { return children[node] == 0; }
    // Whether all points of a leaf have one position; only then may they be more than allowed.
    __device__ bool is_heap(i64 node) const { return points[node] > max_points; }
    __device__ u32 octant_mask() const { return (1u << 3 * (depth - 1)) - 1; }
    // Number of leading bits of a place that identify a voxel in a node's octant.
    __device__ int voxel_bits(i64 node) const { return level[node] - 1 + (int)depth; }
};

__device__ u64 below(int bit) { return (1ull << bit) - 1; }

__device__ u32 gather_few(u32 v) {
    v &= 0x09249249;
    v = (v | v >> 2) & 0x030C30C3;
    v = (v | v >> 4) & 0x0300F00F;
    v = (v | v >> 8) & 0x030000FF;
    return (v | v >> 16) & 0x3FF;
}

__device__ u32 morton(u32 x, u32 y, u32 z) {
    return spread_few(x) << 2 | spread_few(y) << 1 | spread_few(z);
}

// ---- lanes of a warp

struct Sum {
    template <typename T>
    static __device__ T of(T a, T b) { return a + b; }
};
struct Min {
    template <typename T>
    static __device__ T of(T a, T b) { return a < b ? a : b; }
};
struct Max {
    template <typename T>
    static __device__ T of(T a, T b) { return a > b ? a : b; }
};

// Neighbouring lanes with the same key.
struct Run {
    bool leads;  // whether this lane is the first
    int left;    // number of lanes of the group after this one

    __device__ Run(u32 key) {
        const int lane = threadIdx.x % 32;
        const u32 before = __shfl_up_sync(ALL, key, 1);
        const u32 starts = __ballot_sync(ALL, lane == 0 || key != before);
        const u32 later = starts & 0xFFFFFFFEu << lane;
        leads = starts >> lane & 1;
        left = (later ? __ffs(later) - 2 : 31) - lane;
    }

    // Reduction of the lanes' values, valid in the first lane.
    template <typename Together, typename T>
    __device__ T all(T value) const {
        for (int away = 1; away < 32 && __any_sync(ALL, away <= left); away *= 2) {
            const T other = __shfl_down_sync(ALL, value, away);
            if (away <= left) value = Together::of(value, other);
        }
        return value;
    }
};

// ---- steps of a launch

// Blocks with numbers from `block` on process the items from `first` to `end`.
struct Step {
    i64 block, first, end;
};

// The chunk of a block in one of several steps, each of which begins when the previous one is done.
// Blocks are numbered in the order in which they start, so that blocks never wait for one that has
// not started.
// state    0 before: number of blocks that started, then number of finished blocks of each step
struct Chunk {
    u32* state;
    int step;
    i64 first, end;

    __device__ Chunk(const Step* steps, i64 n_steps, i64 share, u32* state) : state(state), step(0) {
        __shared__ u32 number;
        if (threadIdx.x == 0) number = atomicAdd(&state[0], 1u);
        __syncthreads();
        while (step + 1 < n_steps && steps[step + 1].block <= number) ++step;
        first = steps[step].first + (number - steps[step].block) * share;
        end = first + share < steps[step].end ? first + share : steps[step].end;
        if (step > 0 && threadIdx.x == 0) {
            const u32 blocks = (u32)(steps[step].block - steps[step - 1].block);
            while (*(volatile u32*)&state[step] < blocks) continue;
            __threadfence();
        }
        __syncthreads();
    }
    __device__ void pass() const {
        __syncthreads();
        if (threadIdx.x > 0) return;
        __threadfence();
        atomicAdd(&state[1 + step], 1u);
    }
};

// ---- octants

struct Octant {
    const Top* tops;
    const Word* words;

    __device__ Octant(const Lod& lod, i64 node)
        : tops(lod.tops + node * lod.n_tops), words(lod.words) {}

    // The word that contains a cell; an empty word if it is not kept.
    __device__ Word word(u32 code) const {
        const Top top = load(tops + (code >> 12));
        const int at = code >> 6 & 63;
        if (!(top.words >> at & 1)) return {0, 0, 0};
        return load(words + top.first + __popcll(top.words & below(at)));
    }
    // Number of voxels before the voxel of a cell; NOWHERE if the cell has none.
    __device__ u32 find(u32 code) const {
        const Word found = word(code);
        const int bit = code & 63;
        return found.cells >> bit & 1 ? found.before + __popcll(found.cells & below(bit)) : NOWHERE;
    }
    // The same for a cell that is known to have a voxel.
    __device__ u32 rank(u32 code) const {
        const Top top = load(tops + (code >> 12));
        const Word found = load(words + top.first + __popcll(top.words & below(code >> 6 & 63)));
        return found.before + __popcll(found.cells & below(code & 63));
    }
};

// The eight octants of a node.
struct Grid {
    const Lod& lod;
    i64 first_child;
    u32 children;

    __device__ Grid(const Lod& lod, i64 node)
        : lod(lod), first_child(lod.first_child[node]), children(lod.children[node]) {}

    __device__ bool has(u32 number) const { return children >> number & 1; }
    __device__ i64 child(u32 number) const {
        return first_child + __popc(children & ((1u << number) - 1));
    }
    // The number of a child.
    __device__ u32 number(i64 node) const {
        u32 found = 0;
        while (!has(found) || child(found) != node) ++found;
        return found;
    }
    // Rank of the voxel in a cell among those of a child; NOWHERE if there is none.
    __device__ u32 find(u32 code, i64* node) const {
        const u32 number = code >> 3 * (lod.depth - 1);
        if (!has(number)) return NOWHERE;
        *node = child(number);
        return Octant(lod, *node).find(code & lod.octant_mask());
    }
};

// Voxels of an inner node that lie in one cell of its octant.
struct Below {
    i64 first;
    u32 cells;  // one bit per cell with a voxel

    __device__ Below(const Lod& lod, i64 node, u32 code) {
        const Grid grid(lod, node);
        if (lod.depth == 1) {  // one octant per cell
            first = lod.place[grid.first_child];
            cells = grid.children;
            return;
        }
        const i64 child = grid.child(code >> 3 * (lod.depth - 2));
        const u32 lowest = code << 3 & lod.octant_mask();
        const Word word = Octant(lod, child).word(lowest);
        const int bit = lowest & 63;
        first = lod.place[child] + word.before + __popcll(word.cells & below(bit));
        cells = word.cells >> bit & 0xFF;
    }
    __device__ int count() const { return __popc(cells); }
};

// ---- marking

// Writes the tops and words of an octant, and its numbers of words and voxels.
// block    one octant; a warp takes one top after the other, a lane two of its words
// races    the order of octants among the kept words is not defined
__device__ void keep(const Lod& lod, i64 node, const u64* mask) {
    __shared__ u64 kept[64], before[64];  // by top; words << 32 | voxels
    __shared__ u32 first;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int top = warp; top < lod.n_tops; top += warps) {
        const u64 a = mask[64 * top + lane], b = mask[64 * top + 32 + lane];
        const u64 words = (u64)__ballot_sync(ALL, b != 0) << 32 | __ballot_sync(ALL, a != 0);
        const u32 voxels = sum_up_to((u32)(__popcll(a) + __popcll(b)));
        if (lane != 31) continue;
        kept[top] = words;
        before[top] = (u64)__popcll(words) << 32 | voxels;
    }
    __syncthreads();
    if (warp == 0) {
        const u64 one = 2 * lane < lod.n_tops ? before[2 * lane] : 0;
        const u64 other = 2 * lane + 1 < lod.n_tops ? before[2 * lane + 1] : 0;
        const u64 all = sum_up_to(one + other);
        before[2 * lane] = all - other - one;
        before[2 * lane + 1] = all - other;
        if (lane == 31) {
            const u32 words = (u32)(all >> 32);
            first = (u32)atomicAdd(lod.n_kept, (u64)words);
            lod.first_word[node] = first;
            lod.n_words[node] = words;
            lod.n_voxels[node] = (u32)all;
        }
    }
    __syncthreads();
    for (int top = warp; top < lod.n_tops; top += warps) {
        const u64 a = mask[64 * top + lane], b = mask[64 * top + 32 + lane];
        const u32 both = __popcll(a) | __popcll(b) << 16;
        const u32 up_to = sum_up_to(both), of_a = __shfl_sync(ALL, up_to, 31) & 0xFFFF;
        const u32 voxels = (u32)before[top], at = first + (u32)(before[top] >> 32);
        const u64 words = kept[top];
        const u32 rank = voxels + (up_to & 0xFFFF) - (both & 0xFFFF);
        const u32 other = voxels + of_a + (up_to >> 16) - (both >> 16);
        if (a != 0) lod.words[at + __popcll(words & below(lane))] = {a, rank, 64u * top + lane};
        if (b != 0)
            lod.words[at + __popcll(words & below(32 + lane))] = {b, other, 64u * top + 32 + lane};
        if (lane == 0) lod.tops[node * lod.n_tops + top] = {words, at};
    }
}

__device__ void clear(u64* mask) {
    for (int k = threadIdx.x; k < MAX_WORDS; k += blockDim.x) mask[k] = 0;
    __syncthreads();
}

// lod_mark_*: octants of leaves.
// block    one node
// writes   cells
template <typename Record>
__device__ void mark_points(const Lod& lod) {
    __shared__ u64 mask[MAX_WORDS];
    const i64 node = 1 + (i64)blockIdx.x;
    if (!lod.is_leaf(node)) return;
    clear(mask);
    const i64 first = lod.first[node];
    const Record* records = (const Record*)lod.records + first;
    const Cells<decltype(Record::x)> octant(lod.cube, lod.voxel_bits(node), (int)lod.depth - 1);
    const int lane = threadIdx.x % 32;
    const i64 n = lod.is_heap(node) ? 1 : lod.points[node];
    const int UNROLL = 2;
    for (i64 k = threadIdx.x / 32 * (32 * UNROLL) + lane; k - lane < n; k += MARKERS * UNROLL) {
        Record found[UNROLL];
        u32 cells[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i)
            found[i] = load(records + (k + 32 * i < n ? k + 32 * i : n - 1));
#pragma unroll
        for (int i = 0; i < UNROLL; ++i)
            cells[i] = k + 32 * i < n ? octant.of(found[i]) : NOWHERE;
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            const u32 before = __shfl_up_sync(ALL, cells[i], 1);
            if (cells[i] == NOWHERE) continue;
            lod.cells[first + k + 32 * i] = cells[i];
            if (lane > 0 && cells[i] == before) continue;
            u32* word = (u32*)mask + cells[i] / 32;
            const u32 bit = 1u << cells[i] % 32;
            if (!(*word & bit)) atomicOr(word, bit);
        }
    }
    __syncthreads();
    keep(lod, node, mask);
}

// Which of eight bytes are not 0.
__device__ u32 bytes_of(u64 cells) {
    cells |= cells >> 4;
    cells |= cells >> 2;
    cells |= cells >> 1;
    return (u32)((cells & 0x0101010101010101ull) * 0x0102040810204080ull >> 56);
}

// Marks the octant of an inner node.
__device__ void mark_above(const Lod& lod, i64 node, u64* mask) {
    clear(mask);
    const Grid grid(lod, node);
    for (u32 number = 0; number < 8; ++number) {
        if (!grid.has(number)) continue;
        const i64 child = grid.child(number);
        const Word* words = lod.words + lod.first_word[child];
        for (u32 k = threadIdx.x; k < lod.n_words[child]; k += MARKERS) {
            const Word word = load(words + k);
            const u32 first = (number << 3 * (lod.depth - 1) | word.at << 6) >> 3;
            atomicOr((u32*)mask + first / 32, bytes_of(word.cells) << first % 32);
        }
    }
    __syncthreads();
    keep(lod, node, mask);
}

// lod_mark_inner: octants of inner nodes, from those of their children.
// block    one node; one step per level
extern "C" __global__ void __launch_bounds__(MARKERS)
    lod_mark_inner(Lod lod, const Step* steps, i64 n_steps, u32* state) {
    __shared__ u64 mask[MAX_WORDS];
    const Chunk chunk(steps, n_steps, 1, state);
    if (!lod.is_leaf(chunk.first)) mark_above(lod, chunk.first, mask);
    chunk.pass();
}

// ---- voxels from points

// Format of the colours of one kind of points.
template <typename Record>
struct Tint {
    typedef decltype(Record::colour) Colour;
    static const int N = Record::CHANNELS, WIDTH = 8 * sizeof(Colour) / 4;
    static const int SUMS = N + 1;  // sums per voxel: channels, weight
    // sums over the points of a warp, several packed into one word
    static const int FIELD = 2 * WIDTH, FIELDS = 64 / FIELD, WORDS = (N + FIELDS - 1) / FIELDS;

    static __device__ u32 channel(Colour colour, int k) {
        return (u32)(colour >> WIDTH * k) & ((1u << WIDTH) - 1);
    }
    static __device__ Colour of(const u32* channels) {
        Colour colour = N == 3 ? OPAQUE : 0;
        for (int k = 0; k < N; ++k) colour |= (Colour)channels[k] << WIDTH * k;
        return colour;
    }
};

__device__ u32 colour_of(const Packed* points, u32 position) {
    return points[position].colour | OPAQUE;
}
__device__ u64 colour_of(const u64* colours, u32 position) { return colours[position]; }
template <typename Record>
struct Source {
    typedef u64 Type;
};
template <>
struct Source<Packed> {
    typedef Packed Type;
};

// splitmix64, see voxels.py
__device__ u32 random_word(u64 id, u64 seed) {
    u64 word = id + 0x9E3779B97F4A7C15ull * (seed + 1);
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ word >> 27) * 0x94D049BB133111EBull;
    return (u32)((word ^ word >> 31) >> 32);
}

// A point of a leaf, and the rank of its voxel in the leaf's octant; NOWHERE for an idle lane.
template <typename Record>
struct Sample {
    Record record;
    u32 position, rank;
    i64 voxel;

    __device__ bool any() const { return rank != NOWHERE; }
};

// How a strategy adds points. begin and end are called by all threads of a block.
template <typename Record>
struct First {
    static const bool RECORDS = false;  // whether coordinates or colours are needed
    static const int UNROLL = 4;        // points per thread whose loads are in flight at once

    static __device__ void begin() {}
    static __device__ void end(const Lod&, i64) {}
    static __device__ void add(const Lod& lod, i64, const Sample<Record>& sample, const Run& run) {
        if (lod.lowest == 0) return;
        // points mostly keep their order, so that the first of a run is the lowest
        const u32 before = __shfl_up_sync(ALL, sample.position, 1);
        if (sample.any() && (run.leads || sample.position < before))
            atomicMin(&lod.lowest[sample.voxel], sample.position);
    }
};

template <typename Record>
struct Random {
    static const bool RECORDS = false;
    static const int UNROLL = 4;

    static __device__ void begin() {}
    static __device__ void end(const Lod&, i64) {}
    static __device__ void add(const Lod& lod, i64, const Sample<Record>& sample, const Run& run) {
        u64 key = 0;
        if (sample.any()) {
            const u64 id = lod.point_id ? lod.point_id[sample.position] : sample.position;
            key = (u64)random_word(id, lod.seed) << 32 | (0xFFFFFFFFu - sample.position);
        }
        key = run.all<Max>(key);
        if (run.leads && sample.any()) atomicMax(&lod.keys[sample.voxel], key);
    }
};

template <typename Record>
struct Average {
    typedef Tint<Record> T;
    static const bool RECORDS = true;
    static const int UNROLL = 4;

    static __device__ void begin() {}
    static __device__ void end(const Lod&, i64) {}
    static __device__ void add(const Lod& lod, i64 node, const Sample<Record>& sample,
                               const Run& run) {
        First<Record>::add(lod, node, sample, run);
        u64 words[T::WORDS] = {};
#pragma unroll
        for (int k = 0; k < T::N; ++k)
            words[k / T::FIELDS] |= (u64)sample.record.channel(k) << T::FIELD * (k % T::FIELDS);
#pragma unroll
        for (int k = 0; k < T::WORDS; ++k) words[k] = run.all<Sum>(words[k]);
        if (!run.leads || !sample.any()) return;
        u64* sums = lod.sums + T::SUMS * sample.voxel;
#pragma unroll
        for (int k = 0; k < T::N; ++k) {
            const u64 sum = words[k / T::FIELDS] >> T::FIELD * (k % T::FIELDS);
            atomicAdd(&sums[k], sum & ((1ull << T::FIELD) - 1));
        }
    }
};

// The two voxels along an axis to which a point contributes: its own and the nearer neighbour, with
// their parts of the Morton code and the squared distances of their centres. A voxel outside the
// node gets a distance without weight.
struct Neighbours {
    u32 code, square, next_code, next_square;

    // axis: 2 for x, 1 for y, 0 for z
    __device__ Neighbours(u32 where, int axis, int depth) {
        const u32 cell = where >> FINE, at = where & (VOXEL_WIDTH - 1);
        const u32 away = at < HALF ? HALF - at : at - HALF;
        const u32 next = at < HALF ? cell - 1 : cell + 1;  // -1 wraps to a large number
        code = spread_few(cell) << axis;
        square = away * away;
        next_code = spread_few(next & 0x3FF) << axis;
        next_square = next >> depth ? VOXEL_WIDTH * VOXEL_WIDTH : (VOXEL_WIDTH - away) * (VOXEL_WIDTH - away);
    }
};

template <typename Record>
struct Weighted {
    typedef Tint<Record> T;
    static const bool RECORDS = true;
    static const int UNROLL = 1;
    // sums of three channels of 8 bits fit in 32
    static const bool SHARED = T::N == 3;
    static const int STRIDE = SHARED ? SLOTS : 1;

    static __device__ u32* shared() {
        __shared__ u32 sums[T::SUMS * STRIDE];
        return sums;
    }

    static __device__ void begin() {
        if constexpr (SHARED) {
            for (int k = threadIdx.x; k < T::SUMS * STRIDE; k += ADDERS) shared()[k] = 0;
            __syncthreads();
        }
    }
    static __device__ void end(const Lod& lod, i64 node) {
        if constexpr (SHARED) {
            __syncthreads();
            const u32 n = T::SUMS * min(lod.n_voxels[node], (u32)SLOTS);
            u64* sums = lod.sums + T::SUMS * lod.place[node];
            for (u32 k = threadIdx.x; k < n; k += ADDERS) {
                const u32 sum = shared()[k % T::SUMS * STRIDE + k / T::SUMS];
                if (sum != 0) atomicAdd(&sums[k], (u64)sum);
            }
            __syncthreads();
        }
    }

    static __device__ void add(const Lod& lod, i64 node, const Sample<Record>& sample,
                               const Run& run) {
        First<Record>::add(lod, node, sample, run);
        if (!sample.any()) return;
        const int depth = (int)lod.depth, bits = lod.voxel_bits(node) + FINE;
        const u32 mask = (VOXEL_WIDTH << depth) - 1;
        const Place place = lod.cube.place(sample.record);
        const Neighbours x((u32)digits(place.x, bits) & mask, 2, depth);
        const Neighbours y((u32)digits(place.y, bits) & mask, 1, depth);
        const Neighbours z((u32)digits(place.z, bits) & mask, 0, depth);
        const u32 number = (x.code | y.code | z.code) >> 3 * (depth - 1);
        const Octant octant(lod, node);
#pragma unroll 1
        for (int corner = 0; corner < 8; ++corner) {
            const u32 square = (corner & 4 ? x.next_square : x.square) +
                               (corner & 2 ? y.next_square : y.square) +
                               (corner & 1 ? z.next_square : z.square);
            if (square >= VOXEL_WIDTH * VOXEL_WIDTH) continue;
            const u32 code = (corner & 4 ? x.next_code : x.code) |
                             (corner & 2 ? y.next_code : y.code) |
                             (corner & 1 ? z.next_code : z.code);
            i64 other = node;
            const u32 rank = corner == 0 ? sample.rank
                             : code >> 3 * (depth - 1) == number
                                 ? octant.find(code & lod.octant_mask())
                                 : Grid(lod, lod.parent[node]).find(code, &other);
            if (rank == NOWHERE) continue;
            const u32 weight = VOXEL_WIDTH - (u32)sqrtf((float)square);
            if (SHARED && other == node && rank < SLOTS) {
                u32* sums = shared() + rank;
                for (int c = 0; c < T::N; ++c)
                    atomicAdd(&sums[c * STRIDE], weight * sample.record.channel(c));
                atomicAdd(&sums[T::N * STRIDE], weight);
            } else {
                u64* sums = lod.sums + T::SUMS * (lod.place[other] + rank);
                for (int c = 0; c < T::N; ++c)
                    atomicAdd(&sums[c], (u64)weight * sample.record.channel(c));
                atomicAdd(&sums[T::N], (u64)weight);
            }
        }
    }
};

// lod_first_* and so on: points are added to the voxels in their leaf's octant.
// block    pieces of one node
// races    sums, minima and maxima are atomic
template <typename Record, typename Strategy>
__device__ void add_points(const Lod& lod) {
    const i64 node = 1 + (i64)blockIdx.x;
    if (!lod.is_leaf(node)) return;
    const int UNROLL = Strategy::UNROLL, lane = threadIdx.x % 32;
    const i64 first = lod.first[node], points = lod.points[node], voxel = lod.place[node];
    const bool is_heap = lod.is_heap(node), ordered = lod.lowest || lod.keys;
    const Octant octant(lod, node);
    for (i64 piece = (i64)blockIdx.y * PIECE; piece < points; piece += (i64)gridDim.y * PIECE) {
        const i64 end = first + (piece + PIECE < points ? piece + PIECE : points);
        Strategy::begin();
        for (i64 k = first + piece + threadIdx.x / 32 * (32 * UNROLL) + lane; k - lane < end;
             k += ADDERS * UNROLL) {
            Sample<Record> samples[UNROLL];
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
                const i64 mine = k + 32 * i < end ? k + 32 * i : end - 1;
                samples[i].rank = is_heap ? 0 : lod.cells[mine];
                samples[i].position = ordered ? lod.order[mine] : 0;
                if (Strategy::RECORDS) samples[i].record = ((const Record*)lod.records)[mine];
            }
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
                const u32 rank = is_heap ? 0 : octant.rank(samples[i].rank);
                samples[i].rank = k + 32 * i < end ? rank : NOWHERE;
                samples[i].voxel = voxel + rank;
            }
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) {
                const Run run(samples[i].rank);
                if (run.leads && samples[i].any())
                    atomicAdd(&lod.mass[samples[i].voxel], (u32)run.left + 1);
                Strategy::add(lod, node, samples[i], run);
            }
        }
        Strategy::end(lod, node);
    }
}

// ---- voxels from voxels

// lod_codes: cells of the voxels in the grids of their nodes, and the node of each octant.
// block    words of one node; a warp takes one word after the other, a lane two of its cells
extern "C" __global__ void lod_codes(Lod lod) {
    const i64 node = 1 + (i64)blockIdx.x, place = lod.place[node];
    const u32 octant = Grid(lod, lod.parent[node]).number(node) << 3 * (lod.depth - 1);
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const Word* words = lod.words + lod.first_word[node];
    for (u32 k = blockIdx.y * warps + threadIdx.x / 32; k < lod.n_words[node];
         k += gridDim.y * warps) {
        const Word word = load(words + k);
        for (int bit = lane; bit < 64; bit += 32) {
            if (!(word.cells >> bit & 1)) continue;
            const i64 voxel = place + word.before + __popcll(word.cells & below(bit));
            lod.code[voxel] = octant | word.at << 6 | bit;
            lod.owner[voxel] = (u32)node;
        }
    }
}

// lod_join: aggregates voxels into those of the level above.
// block    VOXELS voxels; one step per level
// writes   mass; lowest, keys and the first `channels` sums of a voxel, where they exist
extern "C" __global__ void lod_join(Lod lod, const Step* steps, i64 n_steps, u32* state,
                                    i64 channels, i64 n_sums) {
    const Chunk chunk(steps, n_steps, VOXELS, state);
    for (i64 voxel = chunk.first + threadIdx.x; voxel < chunk.end; voxel += blockDim.x) {
        const i64 node = lod.owner[voxel];
        if (lod.is_leaf(node)) continue;
        const Below under(lod, node, lod.code[voxel] & lod.octant_mask());
        const i64 stop = under.first + under.count();
        u32 mass = 0, lowest = NOWHERE;
        u64 key = 0;
        for (i64 k = under.first; k < stop; ++k) {
            mass += lod.mass[k];
            if (lod.lowest) lowest = Min::of(lowest, lod.lowest[k]);
            if (lod.keys) key = Max::of(key, lod.keys[k]);
        }
        lod.mass[voxel] = mass;
        if (lod.lowest) lod.lowest[voxel] = lowest;
        if (lod.keys) lod.keys[voxel] = key;
        for (i64 c = 0; c < channels; ++c) {
            u64 sum = 0;
            for (i64 k = under.first; k < stop; ++k) sum += lod.sums[n_sums * k + c];
            lod.sums[n_sums * voxel + c] = sum;
        }
    }
    chunk.pass();
}

// Adds the voxels below a voxel to it and to its neighbours in the grid of its node.
// reads    masses and colours of the level below
// races    sums are atomic
template <typename Record>
__device__ void weigh(const Lod& lod, i64 voxel) {
    typedef Tint<Record> T;
    const typename T::Colour* colours = (const typename T::Colour*)lod.colour;
    const u32 side = 1u << lod.depth;
    const i64 node = lod.owner[voxel];
    if (lod.is_leaf(node)) return;
    const Grid grid(lod, lod.parent[node]);
    const u32 code = lod.code[voxel];
    const Below under(lod, node, code & lod.octant_mask());
    for (int way = 0; way < 7; ++way) {  // the voxel itself; then lower, upper along z, y, x
        const u32 axis = way ? 1u << (way - 1) / 2 : 0, upper = (way - 1) % 2;
        i64 target = voxel;
        if (way > 0) {
            const u32 step = upper ? 1 : ~0u;
            const u32 x = gather_few(code >> 2) + (axis == 4 ? step : 0);
            const u32 y = gather_few(code >> 1) + (axis == 2 ? step : 0);
            const u32 z = gather_few(code) + (axis == 1 ? step : 0);
            if (x >= side || y >= side || z >= side) continue;
            i64 other;
            const u32 rank = grid.find(morton(x, y, z), &other);
            if (rank == NOWHERE) continue;
            target = lod.place[other] + rank;
        }
        u64 sums[T::SUMS] = {};
        i64 k = under.first;
        for (u32 child = 0; child < 8; ++child) {
            if (!(under.cells >> child & 1)) continue;
            const i64 sample = k++;
            if (way > 0 && ((child & axis) != 0) != upper) continue;
            const u64 weight = (u64)(way ? BESIDE : OWN) * lod.mass[sample];
            for (int c = 0; c < T::N; ++c) sums[c] += weight * T::channel(colours[sample], c);
            sums[T::N] += weight;
        }
        if (sums[T::N] == 0) continue;
        for (int c = 0; c < T::SUMS; ++c) atomicAdd(&lod.sums[T::SUMS * target + c], sums[c]);
    }
}

// ---- colours

// lod_take_*: copies the colours of single points to n voxels.
// reads    taken: positions of the points, unless there are keys
// writes   colour; where there are keys also taken: position of the point with the maximum key
template <typename Record>
__device__ void take_colours(const Lod& lod, i64 n, u32* taken) {
    const typename Source<Record>::Type* source = (const typename Source<Record>::Type*)lod.source;
    typename Tint<Record>::Colour* colours = (typename Tint<Record>::Colour*)lod.colour;
    FOR_EACH(voxel, n) {
        if (lod.keys) taken[voxel] = 0xFFFFFFFFu - (u32)lod.keys[voxel];
        colours[voxel] = colour_of(source, taken[voxel]);
    }
}

// Rounded down.
__device__ u32 quotient(u64 a, u64 b) {
    return (a | b) >> 32 ? (u32)(a / b) : (u32)a / (u32)b;
}

// Computes the mean colour of a voxel, whose samples have the total weight `weight`.
template <typename Record>
__device__ void divide(const Lod& lod, i64 voxel, u64 weight) {
    typedef Tint<Record> T;
    const u64* sums = lod.sums + T::SUMS * voxel;
    u32 channels[T::N];
    for (int c = 0; c < T::N; ++c) channels[c] = quotient(sums[c], weight);
    ((typename T::Colour*)lod.colour)[voxel] = T::of(channels);
}

// lod_divide_*: mean colours.
template <typename Record>
__device__ void divide_all(const Lod& lod, i64 n) {
    FOR_EACH(voxel, n) divide<Record>(lod, voxel, lod.mass[voxel]);
}

// lod_weigh_*: weighted means, from the deepest level upwards.
// block    VOXELS voxels; for each level two steps: add the voxels below, then compute colours
template <typename Record>
__device__ void weigh_all(const Lod& lod, const Step* steps, i64 n_steps, u32* state) {
    typedef Tint<Record> T;
    const Chunk chunk(steps, n_steps, VOXELS, state);
    for (i64 voxel = chunk.first + threadIdx.x; voxel < chunk.end; voxel += blockDim.x) {
        if (chunk.step % 2 == 0) weigh<Record>(lod, voxel);
        else divide<Record>(lod, voxel, lod.sums[T::SUMS * voxel + T::N]);
    }
    chunk.pass();
}

// ---- for both kinds of points

extern "C" __global__ void __launch_bounds__(MARKERS, 4) lod_mark_packed(Lod lod) {
    mark_points<Packed>(lod);
}
extern "C" __global__ void __launch_bounds__(MARKERS) lod_mark_columns(Lod lod) {
    mark_points<Wide>(lod);
}
extern "C" __global__ void __launch_bounds__(ADDERS) lod_first_packed(Lod lod) {
    add_points<Packed, First<Packed>>(lod);
}
extern "C" __global__ void __launch_bounds__(ADDERS) lod_first_columns(Lod lod) {
    add_points<Wide, First<Wide>>(lod);
}
extern "C" __global__ void __launch_bounds__(ADDERS) lod_random_packed(Lod lod) {
    add_points<Packed, Random<Packed>>(lod);
}
extern "C" __global__ void __launch_bounds__(ADDERS) lod_random_columns(Lod lod) {
    add_points<Wide, Random<Wide>>(lod);
}
extern "C" __global__ void __launch_bounds__(ADDERS) lod_average_packed(Lod lod) {
    add_points<Packed, Average<Packed>>(lod);
}
extern "C" __global__ void __launch_bounds__(ADDERS) lod_average_columns(Lod lod) {
    add_points<Wide, Average<Wide>>(lod);
}
extern "C" __global__ void __launch_bounds__(ADDERS, 3) lod_weighted_packed(Lod lod) {
    add_points<Packed, Weighted<Packed>>(lod);
}
extern "C" __global__ void __launch_bounds__(ADDERS) lod_weighted_columns(Lod lod) {
    add_points<Wide, Weighted<Wide>>(lod);
}
extern "C" __global__ void lod_weigh_packed(Lod lod, const Step* steps, i64 n_steps,
                                             u32* state) {
    weigh_all<Packed>(lod, steps, n_steps, state);
}
extern "C" __global__ void lod_weigh_columns(Lod lod, const Step* steps, i64 n_steps,
                                             u32* state) {
    weigh_all<Wide>(lod, steps, n_steps, state);
}
extern "C" __global__ void lod_take_packed(Lod lod, i64 n, u32* taken) {
    take_colours<Packed>(lod, n, taken);
}
extern "C" __global__ void lod_take_columns(Lod lod, i64 n, u32* taken) {
    take_colours<Wide>(lod, n, taken);
}
extern "C" __global__ void lod_divide_packed(Lod lod, i64 n) {
    divide_all<Packed>(lod, n);
}
extern "C" __global__ void lod_divide_columns(Lod lod, i64 n) {
    divide_all<Wide>(lod, n);
}

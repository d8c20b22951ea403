// Decodes x, y, z, classification, intensity and colours of LAZ chunks: LASzip's items POINT10,
// GPSTIME11, RGB12 and BYTE of version 2, and POINT14 and RGB14 of version 3. Each thread has a chunk, ALONE or with the lanes of its warp in step:
// then all lanes decode the same kind of symbol at the same time, and renew models together.
//
// One symbol of a chunk depends on the one before. What can be had is many chunks at once, the
// layers of a chunk at once (all need a few bits per point of the layer of x and y), and few
// dependent accesses to memory per symbol. A model of n symbols is an array of 16-bit words:
//     [0]                      symbols until it is renewed; 0 before its first use
//     [1..15]                  every 16th cumulated frequency (every 64th if n > 256)
//     [16]                     symbols between two renewals
//     [16 + s], 0 < s < n      cumulated frequency below s, in 1/32768; then 32767
//     [16 + padded(n) + s]     count of s
// so that a search in 256 symbols reads two sectors of 32 bytes.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

enum Way { ALONE, LOCKSTEP };
// What is wrong with a chunk; the last two are no fault of it, but there is too little memory.
enum Error { GOOD, CONTRADICTS, CUT_OFF, CHANNELS, MODELS };

const u32 BATCH = 32;      // points after which the two warps of a chunk meet
const u32 PAGE = 528;      // words of a model of 256 symbols
const u32 SMALL = 688;     // words of the models of the correctors of 1 to 7 bits
const u32 MAX_SWITCHES = 64;  // of the sequence of GPS times, at one point; an encoder makes one

__device__ constexpr u32 padded(u32 n) { return (n + 15) / 16 * 16; }
__device__ constexpr u32 words(u32 n) { return 16 + 2 * padded(n); }
__device__ constexpr u32 integer_words(u32 bits, u32 contexts) {
    return 16 + contexts * words(bits + 1) + SMALL + PAGE * ((bits < 31 ? bits : 31) - 7);
}

// Context of a return among the returns of its pulse, LASzip's tables.
static __device__ const u8 RETURN_6[256] = {
    0, 1, 2, 3, 4, 5, 3, 4, 4, 5, 5, 5, 5, 5, 5, 5,  //
    1, 0, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,  //
    2, 1, 2, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3,  //
    3, 3, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,  //
    4, 3, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,  //
    5, 3, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,  //
    3, 3, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4,  //
    4, 3, 4, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4, 4,  //
    4, 3, 4, 4, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4, 4,  //
    5, 3, 4, 4, 4, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 4,  //
    5, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4,  //
    5, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 4, 4, 4,  //
    5, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 4, 4,  //
    5, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 4,  //
    5, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5,  //
    5, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5,
};
static __device__ const u8 RETURN_16[64] = {
    15, 14, 13, 12, 11, 10, 9,  8,   //
    14, 0,  1,  3,  6,  10, 10, 9,   //
    13, 1,  2,  4,  7,  11, 11, 10,  //
    12, 3,  4,  5,  8,  12, 12, 11,  //
    11, 6,  7,  8,  9,  13, 13, 12,  //
    10, 10, 11, 12, 13, 14, 14, 13,  //
    9,  10, 11, 12, 13, 14, 15, 14,  //
    8,  9,  10, 11, 12, 13, 14, 15,
};

__device__ __forceinline__ u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }
__device__ __forceinline__ u32 least(u32 a, u32 b) { return a < b ? a : b; }
__device__ __forceinline__ u32 most(u32 a, u32 b) { return a > b ? a : b; }

#ifdef __CUDACC__
__device__ __forceinline__ uint4 load(const u16* at) { return *(const uint4*)at; }
__device__ __forceinline__ void store(u16* at, uint4 v) { *(uint4*)at = v; }
__device__ __forceinline__ u32 swapped(u32 v) { return __byte_perm(v, 0, 0x0123); }
// Counts are not read from the cache of the multiprocessor, which atomic operations pass by.
__device__ __forceinline__ uint4 load_counted(const u16* at) {
    return __ldcg((const uint4*)at);
}
// A quotient below 2^20 by a divisor below 2^30, which is in float32 at most one off.
__device__ __forceinline__ u32 quotient(u32 a, u32 b) {
    u32 q = (u32)__fdividef((float)a, (float)b);
    const int rest = (int)(a - q * b);
    return rest < 0 ? q - 1 : rest >= (int)b ? q + 1 : q;
}
#else
inline uint4 load(const u16* at) {
    uint4 v;
    std::memcpy(&v, at, sizeof v);
    return v;
}
inline void store(u16* at, uint4 v) { std::memcpy(at, &v, sizeof v); }
inline u32 swapped(u32 v) { return __builtin_bswap32(v); }
inline u32 quotient(u32 a, u32 b) { return a / b; }
inline uint4 load_counted(const u16* at) { return load(at); }
#endif

__device__ __forceinline__ u32 number(const u8* at) {
    return at[0] | at[1] << 8 | at[2] << 16 | (u32)at[3] << 24;
}

// Bits of eight 15-bit words, two of them in each of four, that are not above a value.
__device__ __forceinline__ u32 reached(uint4 words, u32 value) {
    const u32 both = value * 0x10001u | 0x80008000u;
    return __popc((both - words.x & 0x80008000u) | (both - words.y & 0x80008000u) >> 1 |
                  (both - words.z & 0x80008000u) >> 2 | (both - words.w & 0x80008000u) >> 3);
}

__device__ __forceinline__ u32 sum_of(uint4 pairs) {
    return (pairs.x & 0xffff) + (pairs.x >> 16) + (pairs.y & 0xffff) + (pairs.y >> 16) +
           (pairs.z & 0xffff) + (pairs.z >> 16) + (pairs.w & 0xffff) + (pairs.w >> 16);
}
// Half of both words of a pair, rounded up.
__device__ __forceinline__ u32 halved(u32 pair) {
    return ((pair & 0xffff) + 1 >> 1) | ((pair >> 16) + 1 >> 1) << 16;
}

__device__ __forceinline__ u32 sum_of_warp(u32 value) {
    for (u32 by = 16; by > 0; by /= 2) value += __shfl_xor_sync(~0u, value, by);
    return value;
}
__device__ __forceinline__ u32 most_of_warp(u32 value) {
    for (u32 by = 16; by > 0; by /= 2) value = most(value, __shfl_xor_sync(~0u, value, by));
    return value;
}

// Make the cumulated frequencies of a model from its counts, by so many lanes.
template <u32 LANES>
__device__ void renew(u16* model, u32 n, bool first) {
    const u32 lane = LANES == 1 ? 0 : threadIdx.x % 32;
    const u32 groups = padded(n) / 8, step = n > 256 ? 64 : 16;
    u16* below = model + 16;
    u16* counts = below + padded(n);
    u32 cycle = first ? (n + 6) >> 1 : least(5u * below[0] >> 2, (n + 6) << 3);
    u32 total = 0;
    for (u32 g = lane; g < groups; g += LANES) {
        if (first) {
            u32 ones[4];
#pragma unroll
            for (u32 p = 0; p < 4; ++p)
                ones[p] = (8 * g + 2 * p < n) | (u32)(8 * g + 2 * p + 1 < n) << 16;
            store(counts + 8 * g, uint4{ones[0], ones[1], ones[2], ones[3]});
        }
        total += sum_of(load_counted(counts + 8 * g));
    }
    if (LANES > 1) total = sum_of_warp(total);
    if (total > 32768) {
        total = 0;
        for (u32 g = lane; g < groups; g += LANES) {
            uint4 v = load_counted(counts + 8 * g);
            v = uint4{halved(v.x), halved(v.y), halved(v.z), halved(v.w)};
            store(counts + 8 * g, v);
            total += sum_of(v);
        }
        if (LANES > 1) total = sum_of_warp(total);
    }
    const u32 scale = 0x80000000u / total;
    u32 before = 0;
    for (u32 base = 0; base < groups; base += LANES) {
        const u32 g = base + lane;
        uint4 four = {0, 0, 0, 0};
        if (g < groups) four = load_counted(counts + 8 * g);
        const u32 pairs[4] = {four.x, four.y, four.z, four.w};
        const u32 own = sum_of(four);
        u32 sum = own;
        if (LANES > 1)
            for (u32 by = 1; by < 32; by *= 2) {
                const u32 other = __shfl_up_sync(~0u, sum, by);
                if (lane >= by) sum += other;
            }
        u32 start = before + sum - own, made[4];
        before += LANES > 1 ? __shfl_sync(~0u, sum, 31) : sum;
        if (g >= groups) continue;
#pragma unroll
        for (u32 p = 0; p < 4; ++p) {
            const u32 s = 8 * g + 2 * p;
            const u32 even = s < n ? scale * start >> 16 : 0x7fff;
            start += pairs[p] & 0xffff;
            const u32 odd = s + 1 < n ? scale * start >> 16 : 0x7fff;
            start += pairs[p] >> 16;
            made[p] = even | odd << 16;
        }
        if (g > 0 && 8 * g % step == 0 && 8 * g < n) model[8 * g / step] = made[0] & 0xffff;
        if (g == 0) made[0] = (made[0] & 0xffff0000u) | cycle;
        store(below + 8 * g, uint4{made[0], made[1], made[2], made[3]});
    }
    if (lane == 0) {
        if (first)
            for (u32 j = (n - 1) / step + 1; j < 16; ++j) model[j] = 0x7fff;
        model[0] = cycle;
    }
    if (LANES > 1) __syncwarp();
}

// An arithmetic decoder over a stream of bytes, and the pages for models that are made when needed.
// `on` says whether a lane takes part: where lanes are in step, all of them make each call.
template <Way WAY>
struct Coder {
    const u8* at = nullptr;   // next aligned word to load
    const u8* end = nullptr;
    u32 high = 0, low = 0, used = 0;  // two loaded words, and how many bits of the first are spent
    int left = 0;                     // bytes that may still be taken
    u32 value = 0, length = 0;
    u32 error = GOOD;
    u16* pages = nullptr;
    u32 n_pages = 0, pages_used = 0;

    __device__ bool any(bool flag) const {
        return WAY == LOCKSTEP ? __any_sync(~0u, flag) : flag;
    }

    __device__ u32 word() {
        u32 found = 0;
        if (at + 4 <= end) found = swapped(*(const u32*)at);
        else
            for (u32 k = 0; k < 4; ++k) found = found << 8 | (at + k < end ? at[k] : 0);
        at += 4;
        return found;
    }

    __device__ void start(const u8* begin, u32 size) {
        used = 8 * ((u64)begin & 3);
        at = begin - used / 8;
        end = begin + size;
        left = (int)size;
        high = word();
        low = word();
        length = ~0u;
        value = take(2) << 16;
        value |= take(2);
    }

    __device__ u32 take(u32 bytes) {
        const u32 shifted = (u32)(((u64)high << 32 | low) << used >> 32);
        used += 8 * bytes;
        left -= (int)bytes;
        if (used >= 32) {
            used -= 32;
            high = low;
            low = word();
        }
        return shifted >> (32 - 8 * bytes);
    }

    __device__ void refill() {
        const u32 bytes = __clz((int)length) >> 3;
        if (bytes > 0) {
            value = value << 8 * bytes | take(bytes);
            length <<= 8 * bytes;
            if (left < 0) error = CUT_OFF;
        }
    }

    __device__ void renew_all(bool mine, u16* model, u32 n, bool first) {
        if (WAY == LOCKSTEP) {
            for (u32 lanes = __ballot_sync(~0u, mine); lanes != 0; lanes &= lanes - 1) {
                const int from = __ffs(lanes) - 1;
                u16* theirs = (u16*)__shfl_sync(~0u, (u64)model, from);
                const u32 their_n = __shfl_sync(~0u, n, from);
                __syncwarp();
                renew<32>(theirs, their_n, first);
            }
        } else if (mine) {
            renew<1>(model, n, first);
        }
    }

    // The symbol whose interval a value is in.
    __device__ u32 find(const u16* model, uint4 a, uint4 b, u32 n, u32 wanted) const {
        u32 coarse = 0, sectors = 1, start = 0;
        if (n > 16) {
            const u32 step = n > 256 ? 64 : 16;
            a.x &= 0xffff0000u;
            coarse = least(reached(a, wanted) + reached(b, wanted) - 1, (n - 1) / step);
            start = coarse * step;
            sectors = least(step, padded(n) - start) / 16;
        }
        const u16* at = model + 16 + start;
        u32 found = 0;
        for (u32 s = 0; s < sectors; ++s, at += 16) {
            uint4 c = load(at), d = load(at + 8);
            if (start == 0 && s == 0) c.x &= 0xffff0000u;
            found += reached(c, wanted) + reached(d, wanted);
        }
        return least(start + found - 1, n - 1);
    }

    __device__ u32 symbol(bool on, u16* model, u32 n) {
        if (!any(on)) return 0;
        uint4 a = {1, 0, 0, 0}, b = {0, 0, 0, 0};
        if (on) {
            a = load(model);
            b = load(model + 8);
        }
        const u32 whole = length, part = length >> 15;
        const u32 wanted = on ? least(quotient(value, part), 0x7fff) : 0;
        const bool unused = (a.x & 0xffff) == 0;
        if (any(unused)) {
            renew_all(unused, model, n, true);
            if (unused) {
                a = load(model);
                b = load(model + 8);
            }
        }
        const u32 until = a.x & 0xffff;
        u32 found = 0;
        if (on) {
            found = find(model, a, b, n, wanted);
            const u16* below = model + 16 + found;
            const u32 from = found == 0 ? 0 : below[0] * part;
            const u32 to = found == n - 1 ? whole : below[1] * part;
            // an atomic operation, for whose result nobody waits
            u32* counts = (u32*)(model + 16 + padded(n));
            atomicAdd(counts + found / 2, found % 2 ? 0x10000u : 1u);
            model[0] = until - 1;
            value -= from;
            length = to - from;
            refill();
        }
        const bool due = on && until == 1;
        if (any(due)) renew_all(due, model, n, false);
        return found;
    }

    __device__ u32 some(u32 n) {
        length >>= n;
        const u32 found = n > 1            ? quotient(value, length)
                          : value < length ? 0
                                           : 1 + (value - length >= length);
        value -= found * length;
        refill();
        return found;
    }

    // Bits without a model.
    __device__ u32 bits(u32 n) {
        if (n <= 19) return some(n);
        const u32 lower = some(16) & 0xffff;
        return lower | some(n - 16) << 16;
    }

    // A bit; its model is: until its renewal, cycle, probability, zeros, all.
    __device__ u32 bit(u16* model) {
        const bool unused = model[0] == 0;
        u32 until = unused ? 4 : model[0], cycle = unused ? 4 : model[1];
        u32 chance = unused ? 4096 : model[2], zeros = unused ? 1 : model[3];
        u32 all = unused ? 2 : model[4];
        const u32 from = chance * (length >> 13);
        const u32 found = value >= from;
        if (found) {
            value -= from;
            length -= from;
        } else {
            length = from;
            ++zeros;
        }
        refill();
        if (--until == 0) {
            all += cycle;
            if (all > 8192) {
                all = (all + 1) >> 1;
                zeros = (zeros + 1) >> 1;
                if (zeros == all) ++all;
            }
            chance = zeros * (0x80000000u / all) >> 18;
            cycle = least(5 * cycle >> 2, 64);
            until = cycle;
        }
        model[0] = until;
        model[1] = cycle;
        model[2] = chance;
        model[3] = zeros;
        model[4] = all;
        return found;
    }

    // The model of 256 symbols of a number that few models are needed for.
    __device__ u16* page(u16* map, u32 index) {
        u32 slot = map[index];
        if (slot == 0) {
            if (pages_used == n_pages) {
                error = MODELS;
                return pages;
            }
            slot = ++pages_used;
            map[index] = slot;
        }
        return pages + (slot - 1) * PAGE;
    }

    __device__ u16* corrector(u16* models, u32 k) {
        if (k >= 8) return models + SMALL + PAGE * (k - 8);
        return models + (k <= 5 ? 48 * (k - 1) : k == 6 ? 272 : 416);
    }

    // A number of 16 or 32 bits by its difference to a predicted one; k are bits of the difference.
    __device__ u32 integer(
        bool on, u16* models, u32 bits_of, u32 contexts, u32 context, u32 predicted, u32& k
    ) {
        k = symbol(on, models + 16 + context * words(bits_of + 1), bits_of + 1);
        const bool many = on && k > 0 && k < 32;
        u16* model = many ? corrector(models + 16 + contexts * words(bits_of + 1), k) : models;
        u32 c = symbol(many, model, k < 8 ? 1u << k : 256);
        if (many) {
            if (k > 8) {
                const u32 lower = bits(k - 8);
                c = c << (k - 8) | lower;
            }
            c = c >= 1u << (k - 1) ? c + 1 : c - ((1u << k) - 1);
        } else if (on) {
            c = k == 0 ? bit(models) : 0x80000000u;
        }
        const u32 real = predicted + c;
        if (bits_of == 32) return real;
        return (int)real < 0 ? real + 65536 : real >= 65536 ? real - 65536 : real;
    }
};

// The median of the last numbers that fell on either side of it in turn: LASzip's StreamingMedian5.
struct Median {
    int a, b, c, d, e, below;

    __device__ static Median get(const u16* at) {
        const uint4 p = load(at), q = load(at + 8);
        return Median{(int)p.x, (int)p.y, (int)p.z, (int)p.w, (int)q.x, (int)q.y};
    }
    __device__ void put(u16* at, int v) {
        if (below == 0) {
            if (v < c) {
                e = d;
                d = c;
                c = v < b ? b : v;
                const int second = v < a ? a : v < b ? v : b;
                a = v < a ? v : a;
                b = second;
            } else {
                e = v < d ? d : v;
                d = v < d ? v : d;
                below = 1;
            }
        } else {
            if (c < v) {
                a = b;
                b = c;
                c = d < v ? d : v;
                const int fourth = e < v ? e : d < v ? v : d;
                e = e < v ? v : e;
                d = fourth;
            } else {
                a = b < v ? b : v;
                b = b < v ? v : b;
                below = 0;
            }
        }
        store(at, uint4{(u32)a, (u32)b, (u32)c, (u32)d});
        store(at + 8, uint4{(u32)e, (u32)below, 0, 0});
    }
};

// A chunk: its address, size, row of its first point, number of points.
struct Chunk {
    const u8* begin;
    i64 size, first;
    u32 rows;

    __device__ Chunk(const i64* chunks, i64 k)
        : begin((const u8*)chunks[4 * k]),
          size(chunks[4 * k + 1]),
          first(chunks[4 * k + 2]),
          rows((u32)chunks[4 * k + 3]) {}
};

// --- Point formats 6 to 10: x and y, and z, in layers of their own

const u32 CHANGED = 0, CHANNEL = CHANGED + 8 * words(128), SAME_TIME = CHANNEL + words(3),
          NUMBER = SAME_TIME + words(13), RETURN = NUMBER + 16 * words(16),
          MEDIANS = RETURN + 16 * words(16), LAST_XY = MEDIANS + 24 * 16, DX = LAST_XY + 16;
const u32 LAST_Z = 0, DZ = LAST_Z + 32;

const u32 DY = DX + integer_words(32, 2), XY_WORDS = DY + integer_words(32, 22);
const u32 Z_WORDS = DZ + integer_words(32, 20);

__device__ __forceinline__ i64 layer_words(i64 channels) { return channels * (XY_WORDS + Z_WORDS); }

// Find a layer of a chunk.
__device__ u32 open_layer(
    const Chunk& chunk, u32 record, u32 n_layers, u32 which, const u8*& layer, u32& size
) {
    const i64 head = record + 4 + 4 * (i64)n_layers;
    if (chunk.rows == 0 || chunk.size < head || which >= n_layers) return CONTRADICTS;
    const u8* table = chunk.begin + record;
    i64 all = head, before = head;
    for (u32 k = 0; k < n_layers; ++k) {
        if (k == which) before = all;
        all += number(table + 4 + 4 * k);
    }
    if (number(table) != chunk.rows || all > chunk.size) return CONTRADICTS;
    layer = chunk.begin + before;
    size = number(table + 4 + 4 * which);
    return GOOD;
}

template <Way WAY>
struct LayerXY {
    Coder<WAY> coder;
    u16* work = nullptr;    // of all scanner channels
    u16* models = nullptr;  // of the current one
    u32 channels = 0, channel = 0, slots = 0, n_slots = 1;
    u32 rows = 0, x = 0, y = 0, n = 0, r = 0, timed = 0;

    __device__ void start(const u8* point, const u8* layer, u32 size, u32 count) {
        models = work;
        rows = count;
        x = number(point);
        y = number(point + 4);
        r = point[14] & 15;
        n = point[14] >> 4;
        channel = point[15] >> 4 & 3;
        slots = 1u << 4 * channel;
        if (rows > 1) coder.start(layer, size);
    }

    // Go on with the models of another scanner channel, which begin where this one is.
    __device__ void move(u32 to) {
        const u32 slot = slots >> 4 * to & 15;
        if (slot == 0 && n_slots == channels) {
            coder.error = CHANNELS;
            return;
        }
        store(models + LAST_XY, uint4{x, y, n | r << 8 | timed << 16, 0});
        channel = to;
        if (slot == 0) {
            slots |= ++n_slots << 4 * to;
            models = work + (n_slots - 1) * XY_WORDS;
            timed = 0;
            return;
        }
        models = work + (slot - 1) * XY_WORDS;
        const uint4 last = load(models + LAST_XY);
        x = last.x;
        y = last.y;
        n = last.z & 255;
        r = last.z >> 8 & 255;
        timed = last.z >> 16;
    }

    // Decode a point; give what other layers need of it: 8 bits for that of z, its context and the
    // level of its return; then its scanner channel, its place in its pulse, whether it is timed, and
    // the channel that colours are told of.
    __device__ u32 next(bool on) {
        const u32 state = (r == 1) | (r >= n) << 1 | timed << 2;
        const u32 changed = coder.symbol(on, models + CHANGED + state * words(128), 128);
        const bool moved = on && (changed & 64);
        if (coder.any(moved)) {
            const u32 by = coder.symbol(moved, models + CHANNEL, 3);
            if (moved) move((channel + by + 1) & 3);
        }
        u32 now = changed >> 4 & 1, number_now = n;
        const bool renumbered = on && (changed & 4);
        if (coder.any(renumbered)) {
            const u32 found = coder.symbol(renumbered, models + NUMBER + n * words(16), 16);
            if (renumbered) number_now = found;
        }
        const u32 kind = changed & 3;
        u32 return_now = (kind == 1 ? r + 1 : kind == 2 ? r + 15 : r) & 15;
        const bool other = on && kind == 3;
        if (coder.any(other)) {
            u16* model = models + (now ? RETURN + r * words(16) : SAME_TIME);
            const u32 found = coder.symbol(other, model, now ? 16 : 13);
            if (other) return_now = now ? found : (r + found + 2) & 15;
        }
        if (on) {
            n = number_now;
            r = return_now;
            timed = now;
        }
        const u32 single = n == 1;
        u16* medians = models + MEDIANS + (RETURN_6[16 * n + r] * 2 + timed) * 32;
        Median of_x = {}, of_y = {};
        if (on) {
            of_x = Median::get(medians);
            of_y = Median::get(medians + 16);
        }
        u32 kx, ky;
        const u32 dx = coder.integer(on, models + DX, 32, 2, single, of_x.c, kx);
        const u32 context = single + (kx < 20 ? kx & ~1u : 20);
        const u32 dy = coder.integer(on, models + DY, 32, 22, context, of_y.c, ky);
        if (on) {
            of_x.put(medians, (int)dx);
            of_y.put(medians + 16, (int)dy);
            x += dx;
            y += dy;
        }
        const u32 k = (kx + ky) / 2;
        return (single + (k < 18 ? k & ~1u : 18)) | least(distance(n, r), 7) << 5 |
               ((slots >> 4 * channel & 15) - 1) << 8 | (r >= n) << 10 | (r == 1) << 11 |
               timed << 12 | (moved ? channel : 0) << 13;
    }
};

template <Way WAY>
struct LayerZ {
    Coder<WAY> coder;
    u16* work = nullptr;
    u16* models = nullptr;
    u32 rows = 0, slot = 0, z = 0;
    bool there = false;

    __device__ int* last() const { return (int*)(models + LAST_Z); }

    // Begin a scanner channel where the one before is.
    __device__ void begin() {
        store(models + LAST_Z, uint4{z, z, z, z});
        store(models + LAST_Z + 8, uint4{z, z, z, z});
        store(models + LAST_Z + 16, uint4{z, 1, 0, 0});
    }

    __device__ void start(const u8* point, const u8* layer, u32 size, u32 count) {
        models = work;
        rows = count;
        z = number(point + 8);
        begin();
        there = size > 0;
        if (rows > 1 && there) coder.start(layer, size);
    }

    __device__ void move(u32 to) {
        store(models + LAST_Z + 16, uint4{z, 1, 0, 0});
        slot = to;
        models = work + slot * Z_WORDS;
        const uint4 state = load(models + LAST_Z + 16);
        if (state.y) z = state.x;
        else begin();
    }

    __device__ void next(bool on, u32 note) {
        if (on && (note >> 8 & 3) != slot) move(note >> 8 & 3);
        on = on && there;
        u16* at = models + LAST_Z + 2 * (note >> 5 & 7);
        u32 k, before = 0;
        if (on) before = at[0] | (u32)at[1] << 16;
        const u32 now = coder.integer(on, models + DZ, 32, 20, note & 31, before, k);
        if (on) {
            z = now;
            at[0] = z & 0xffff;
            at[1] = z >> 16;
        }
    }
};

__device__ __forceinline__ u32 folded(u32 v) { return v & 255; }
__device__ __forceinline__ u32 clamped(int v) { return v < 0 ? 0 : v > 255 ? 255 : v; }

const u32 COLOUR_WORDS = words(128) + 6 * words(256);

// The colours of a point from those of the one before, by the models of which bytes change, and of
// the differences of the six bytes.
template <Way WAY>
__device__ void next_colours(
    Coder<WAY>& coder, bool on, u16* models, u32& red, u32& green, u32& blue
) {
    const auto difference = [&](bool there, u32 which) {
        return coder.symbol(there, models + words(128) + which * words(256), 256);
    };
    const u32 changed = coder.symbol(on, models, 128);
    const u32 low = red & 255, high = red >> 8;
    u32 r0 = low, r1 = high, g0, g1, b0, b1;
    u32 by = difference(on && (changed & 1), 0);
    if (changed & 1) r0 = folded(r0 + by);
    by = difference(on && (changed & 2), 1);
    if (changed & 2) r1 = folded(r1 + by);
    const bool grey = !(changed & 64);
    const u32 old_g0 = green & 255, old_g1 = green >> 8;
    const u32 old_b0 = blue & 255, old_b1 = blue >> 8;
    g0 = old_g0, g1 = old_g1, b0 = old_b0, b1 = old_b1;
    int d = (int)r0 - (int)low;
    by = difference(on && !grey && (changed & 4), 2);
    if (changed & 4) g0 = folded(by + clamped(d + (int)old_g0));
    by = difference(on && !grey && (changed & 16), 4);
    d = (d + (int)g0 - (int)old_g0) / 2;
    if (changed & 16) b0 = folded(by + clamped(d + (int)old_b0));
    d = (int)r1 - (int)high;
    by = difference(on && !grey && (changed & 8), 3);
    if (changed & 8) g1 = folded(by + clamped(d + (int)old_g1));
    by = difference(on && !grey && (changed & 32), 5);
    d = (d + (int)g1 - (int)old_g1) / 2;
    if (changed & 32) b1 = folded(by + clamped(d + (int)old_b1));
    if (on) {
        red = r0 | r1 << 8;
        green = grey ? red : g0 | g1 << 8;
        blue = grey ? red : b0 | b1 << 8;
    }
}

// What is asked for beside coordinates, where it goes; the arrays of what is not asked for are not
// used.
enum Attribute { CLASS, INTENSITY, COLOURS, ATTRIBUTES };

struct Outputs {
    i64 wanted;  // a bit each
    u8* classes;
    u16 *intensities, *red, *green, *blue;

    __device__ bool wants(u32 which) const { return wanted >> which & 1; }
    __device__ void put_colours(i64 at, u32 r, u32 g, u32 b) const {
        red[at] = (u16)r;
        green[at] = (u16)g;
        blue[at] = (u16)b;
    }
};

// --- Point formats 6 to 10: each attribute in a layer of its own

const u32 HEAD = 16;  // words of a scanner channel: its last three values, whether it has begun; the
                      // last intensities by return

__device__ constexpr u32 words_of_channel(u32 which) {
    return HEAD + (which == CLASS       ? 64 * words(256)
                   : which == INTENSITY ? integer_words(16, 4)
                                        : COLOUR_WORDS);
}
// Colours may have those of channel 0 besides.
__device__ __forceinline__ i64 attribute_words(u32 which, i64 channels) {
    return (channels + (which == COLOURS)) * words_of_channel(which);
}

template <Way WAY>
struct LayerOfAttribute {
    Coder<WAY> coder;
    u16* work = nullptr;    // of all scanner channels
    u16* models = nullptr;  // of the current one
    u16* before = nullptr;  // of the channel before, at the first point of one that goes on
    u32 which = CLASS, slot = 0, slots = 0, n_slots = 1, a = 0, b = 0, c = 0, rows = 0;
    bool there = false;

    // Begin a scanner channel where the one before is.
    __device__ void begin() {
        const u32 both = a | a << 16;
        store(models + 8, uint4{both, both, both, both});
    }

    __device__ void start(const u8* point, const u8* layer, u32 size, u32 count) {
        models = work;
        rows = count;
        if (which == CLASS) a = point[16];
        if (which == INTENSITY) a = point[12] | point[13] << 8;
        if (which == COLOURS) {
            slots = 1u << 4 * (point[15] >> 4 & 3);
            a = point[30] | point[31] << 8;
            b = point[32] | point[33] << 8;
            c = point[34] | point[35] << 8;
        }
        begin();
        there = size > 0;
        if (rows > 1 && there) coder.start(layer, size);
    }

    __device__ void move(u32 to) {
        store(models, uint4{a, b, c, 1});
        before = models;
        slot = to;
        models = work + slot * words_of_channel(which);
        if (!load(models).w) begin();
        else if (which == COLOURS) return;
        else recall();
        before = nullptr;
    }

    __device__ void recall() {
        const uint4 last = load(models);
        a = last.x, b = last.y, c = last.z;
    }

    // The number of the models of colours for a scanner channel.
    __device__ u32 slot_of(u32 channel) {
        if ((slots >> 4 * channel & 15) == 0) slots |= ++n_slots << 4 * channel;
        return (slots >> 4 * channel & 15) - 1;
    }

    // The note is what LayerXY gives, without the part of the layer of z. As LASzip has it, colours
    // are told of a point's channel only where it is another than before, else of channel 0; and
    // where a channel goes on, its first colours follow, and replace, those of the one before.
    __device__ void next(bool on, u32 note) {
        if (on && before) {
            store(before, uint4{a, b, c, 1});
            before = nullptr;
            recall();
        }
        if (on) {
            const u32 to = which == COLOURS ? slot_of(note >> 5 & 3) : note & 3;
            if (to != slot) move(to);
        }
        on = on && there;
        const u32 place = note >> 2 & 3, timed = note >> 4 & 1;  // among the returns of a pulse
        if (which == CLASS) {
            u16* model = models + HEAD + ((a & 31) << 1 | (place == 3)) * words(256);
            const u32 found = coder.symbol(on, model, 256);
            if (on) a = found;
        } else if (which == INTENSITY) {
            u16* last = models + 8 + (place << 1 | timed);
            u32 k;
            const u32 now = coder.integer(on, models + HEAD, 16, 4, place, *last, k);
            if (on) *last = (u16)(a = now);
        } else {
            next_colours(coder, on, models + HEAD, a, b, c);
        }
    }

    __device__ void put(const Outputs& to, i64 at) const {
        if (which == CLASS) to.classes[at] = (u8)a;
        if (which == INTENSITY) to.intensities[at] = (u16)a;
        if (which == COLOURS) to.put_colours(at, a, b, c);
    }
};

// Decode an attribute of a chunk whose layer of x and y has left a note per point.
template <Way WAY>
__device__ void one_attribute(
    u32 which, const i64* chunks, i64 k, bool mine, i64 record, i64 n_layers, u16* work,
    const u8* notes, const Outputs& to, int* errors
) {
    const u32 layer_of[] = {2, 4, 9};
    LayerOfAttribute<WAY> of;
    of.which = which;
    of.work = of.models = work;
    u32 rows = 0, error = GOOD;
    i64 first = 0;
    if (mine) {
        const Chunk chunk(chunks, k);
        const u8* layer;
        u32 size;
        error = open_layer(chunk, record, n_layers, layer_of[which], layer, size);
        if (error == GOOD) {
            rows = chunk.rows;
            first = chunk.first;
            of.start(chunk.begin, layer, size, rows);
            of.put(to, first);
        }
    }
    const u32 all = WAY == LOCKSTEP ? most_of_warp(rows) : rows;
    for (u32 i = 1; i < all; ++i) {
        const bool on = i < rows && of.coder.error == GOOD;
        if (!of.coder.any(on)) break;
        of.next(on, on ? notes[first + i] : 0);
        if (on) of.put(to, first + i);
    }
    if (error == GOOD) error = of.coder.error;
    if (mine && error != GOOD) atomicMax(&errors[k], (int)error);
}

// --- Point formats 0 to 3: all fields in one stream

const u32 P_CHANGED = 0, P_ANGLE = P_CHANGED + words(64),
          P_INTENSITY = P_ANGLE + 2 * words(256),
          P_SOURCE = P_INTENSITY + integer_words(16, 4),
          P_DX = P_SOURCE + integer_words(16, 1),
          P_DY = P_DX + integer_words(32, 2), P_DZ = P_DY + integer_words(32, 22),
          P_MULTI = P_DZ + integer_words(32, 20), P_NO_DIFF = P_MULTI + words(516),
          P_TIME = P_NO_DIFF + words(6), P_COLOUR = P_TIME + integer_words(32, 9),
          P_MAPS = P_COLOUR + COLOUR_WORDS,
          P_MEDIANS = P_MAPS + 3 * 256, P_STATE = P_MEDIANS + 32 * 16;
// words of the state: 8 heights of 2, 16 intensities, 4 times of 4, 4 differences of 2, 4 counters
const u32 HEIGHTS = P_STATE, INTENSITIES = HEIGHTS + 16, TIMES = INTENSITIES + 16,
          DIFFS = TIMES + 16, EXTREMES = DIFFS + 8, P_EXTRA = P_STATE + 64;
const u32 EXTRA_WORDS = 16 + words(256);  // of an extra byte: its last value, and its model

__device__ __forceinline__ i64 point_words(i64 extra, i64 pages) {
    return P_EXTRA + extra * EXTRA_WORDS + pages * PAGE;
}

template <Way WAY>
struct Points {
    Coder<WAY> coder;
    u16* work = nullptr;
    u32 rows = 0, x = 0, y = 0, flags = 0, class_ = 0, angle = 0, user = 0, source = 0, z = 0;
    u32 intensity = 0, red = 0, green = 0, blue = 0, n_extra = 0, last = 0, next_time = 0;
    bool timed = false, coloured = false;

    __device__ u32 get32(u32 at) const { return work[at] | (u32)work[at + 1] << 16; }
    __device__ void put32(u32 at, u32 v) {
        work[at] = v & 0xffff;
        work[at + 1] = v >> 16;
    }
    __device__ u64 time() const { return get32(TIMES + 4 * last) | (u64)get32(TIMES + 4 * last + 2) << 32; }
    __device__ void set_time(u64 v) {
        put32(TIMES + 4 * last, (u32)v);
        put32(TIMES + 4 * last + 2, (u32)(v >> 32));
    }

    __device__ void start(const Chunk& chunk) {
        const u8* p = chunk.begin;
        rows = chunk.rows;
        x = number(p);
        y = number(p + 4);
        z = number(p + 8);
        intensity = p[12] | p[13] << 8;
        flags = p[14];
        class_ = p[15];
        angle = p[16];
        user = p[17];
        source = p[18] | p[19] << 8;
        p += 20;
        if (timed) {
            set_time(number(p) | (u64)number(p + 4) << 32);
            p += 8;
        }
        if (coloured) {
            red = p[0] | p[1] << 8;
            green = p[2] | p[3] << 8;
            blue = p[4] | p[5] << 8;
            p += 6;
        }
        for (u32 k = 0; k < n_extra; ++k) work[P_EXTRA + k * EXTRA_WORDS] = p[k];
        p += n_extra;
        if (rows > 1) coder.start(p, (u32)(chunk.size - (p - chunk.begin)));
    }

    __device__ void put(int* to_x, int* to_y, int* to_z, const Outputs& to, i64 at) const {
        to_x[at] = (int)x;
        to_y[at] = (int)y;
        to_z[at] = (int)z;
        if (to.wants(CLASS)) to.classes[at] = (u8)(class_ & 31);
        if (to.wants(INTENSITY)) to.intensities[at] = (u16)intensity;
        if (to.wants(COLOURS)) to.put_colours(at, red, green, blue);
    }

    // A byte whose model depends on its last value.
    __device__ void by_last(bool on, u32 map, u32& value) {
        if (!coder.any(on)) return;
        u16* model = on ? coder.page(work + P_MAPS + 256 * map, value) : work;
        const u32 found = coder.symbol(on, model, 256);
        if (on) value = found;
    }

    __device__ void next(bool on) {
        const u32 changed = coder.symbol(on, work + P_CHANGED, 64);
        by_last(on && (changed & 32), 0, flags);
        const u32 r = flags & 7, n = flags >> 3 & 7;
        const u32 m = RETURN_16[8 * n + r], level = distance(n, r);
        u32 k;
        const bool brighter = on && (changed & 16);
        if (coder.any(brighter)) {
            const u32 before = work[INTENSITIES + m];
            const u32 now = coder.integer(
                brighter, work + P_INTENSITY, 16, 4, least(m, 3), before, k
            );
            if (brighter) work[INTENSITIES + m] = now;
        }
        if (on) intensity = work[INTENSITIES + m];
        by_last(on && (changed & 8), 1, class_);
        const bool turned = on && (changed & 4);
        if (coder.any(turned)) {
            const u32 by = coder.symbol(turned, work + P_ANGLE + (flags >> 6 & 1) * words(256), 256);
            if (turned) angle = folded(angle + by);
        }
        by_last(on && (changed & 2), 2, user);
        const bool sourced = on && (changed & 1);
        if (coder.any(sourced)) {
            const u32 now = coder.integer(sourced, work + P_SOURCE, 16, 1, 0, source, k);
            if (sourced) source = now;
        }
        const u32 single = n == 1;
        u16* medians = work + P_MEDIANS + m * 32;
        Median of_x = {}, of_y = {};
        if (on) {
            of_x = Median::get(medians);
            of_y = Median::get(medians + 16);
        }
        u32 kx, ky;
        const u32 dx = coder.integer(on, work + P_DX, 32, 2, single, of_x.c, kx);
        const u32 dy = coder.integer(
            on, work + P_DY, 32, 22, single + (kx < 20 ? kx & ~1u : 20), of_y.c, ky
        );
        const u32 kz = (kx + ky) / 2;
        const u32 before = get32(HEIGHTS + 2 * level);
        const u32 now = coder.integer(
            on, work + P_DZ, 32, 20, single + (kz < 18 ? kz & ~1u : 18), before, k
        );
        if (on) {
            of_x.put(medians, (int)dx);
            of_y.put(medians + 16, (int)dy);
            x += dx;
            y += dy;
            z = now;
            put32(HEIGHTS + 2 * level, now);
        }
        if (timed) next_gps(on);
        if (coloured) next_colours(coder, on, work + P_COLOUR, red, green, blue);
        for (u32 e = 0; e < n_extra; ++e) {
            u16* at = work + P_EXTRA + e * EXTRA_WORDS;
            const u32 old = at[0];
            const u32 by = coder.symbol(on, at + 16, 256);
            if (on) at[0] = folded(old + by);
        }
    }

    __device__ void next_gps(bool on) {
        bool more = on;
        for (u32 turn = 0; coder.any(more); ++turn) {
            const u32 diff = get32(DIFFS + 2 * last), extreme = work[EXTREMES + last];
            const u64 old = time();
            const bool first = diff == 0;
            const u32 s = coder.symbol(
                more, work + (first ? P_NO_DIFF : P_MULTI), first ? 6 : 516
            );
            const u32 unchanged = first ? 0 : 511, full = first ? 2 : 512;
            const bool jumps = more && s > full, renews = more && s == full;
            const bool steps = more && (first ? s == 1 : s < unchanged);
            u32 context = 8, predicted = (u32)(old >> 32);
            bool counts = false;
            if (steps) {
                int times = (int)s <= 500 ? (int)s : 500 - (int)s;
                if (first) context = times = 0;
                else if (s == 0) context = 7;
                else if (s == 1) context = 1;
                else if (s < 10) context = 2;
                else if (s < 500) context = 3;
                else if (s == 500) context = 4;
                else context = times > -10 ? 5 : 6;
                counts = !first && (s == 0 || s == 500 || times <= -10);
                predicted = (u32)times * diff;
            }
            u32 k;
            const u32 by = coder.integer(
                steps || renews, work + P_TIME, 32, 9, context, predicted, k
            );
            if (steps) {
                set_time(old + (i64)(int)by);
                if (first) {
                    put32(DIFFS + 2 * last, by);
                    work[EXTREMES + last] = 0;
                } else if (counts) {
                    if (extreme + 1 > 3) put32(DIFFS + 2 * last, by);
                    work[EXTREMES + last] = extreme + 1 > 3 ? 0 : extreme + 1;
                } else if (s == 1) {
                    work[EXTREMES + last] = 0;
                }
            }
            if (renews) {
                last = next_time = (next_time + 1) & 3;
                set_time((u64)by << 32 | coder.bits(32));
                put32(DIFFS + 2 * last, 0);
                work[EXTREMES + last] = 0;
            }
            if (jumps) last = (last + s - full) & 3;
            if (jumps && turn == MAX_SWITCHES) coder.error = CONTRADICTS;
            more = jumps && coder.error == GOOD;
        }
    }
};

// Decode a chunk of point formats 0 to 3, whose items are: bit 0 a GPS time, bit 1 colours.
template <Way WAY>
__device__ void all_points(
    const i64* chunks, i64 k, bool mine, i64 items, i64 extra, u16* work, i64 pages, int* x, int* y,
    int* z, const Outputs& to, int* errors
) {
    Points<WAY> points;
    points.work = work + (mine ? k : 0) * point_words(extra, pages);
    points.timed = items & 1;
    points.coloured = items & 2;
    points.n_extra = (u32)extra;
    points.coder.pages = points.work + P_EXTRA + extra * EXTRA_WORDS;
    points.coder.n_pages = (u32)pages;
    u32 rows = 0, error = GOOD;
    i64 first = 0;
    if (mine) {
        const Chunk chunk(chunks, k);
        const i64 record = 20 + 8 * points.timed + 6 * points.coloured + extra;
        if (chunk.rows == 0 || chunk.size < record) error = CONTRADICTS;
        else {
            rows = chunk.rows;
            first = chunk.first;
            points.start(chunk);
            points.put(x, y, z, to, first);
        }
    }
    const u32 all = WAY == LOCKSTEP ? most_of_warp(rows) : rows;
    for (u32 i = 1; i < all; ++i) {
        const bool on = i < rows && points.coder.error == GOOD;
        if (!points.coder.any(on)) break;
        points.next(on);
        if (on) points.put(x, y, z, to, first + i);
    }
    if (mine) errors[k] = (int)(error ? error : points.coder.error);
}

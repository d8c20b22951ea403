// Enough of CUDA to run kernels on the host: one block after the other, its threads as contexts
// that take turns where they synchronise. For the tests; blocks of up to 1024 threads.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __noinline__
#define __forceinline__ inline
#define __restrict__
#define __shared__ static  // blocks run one after the other
#define __launch_bounds__(...)
#define __CUDA_ARCH__ 900

using std::floor;
using std::max;
using std::min;
using std::sqrt;
using std::fabs;

struct dim3 {
    unsigned x, y, z;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

namespace host {
enum State : unsigned char { READY, AT_BLOCK, AT_WARP, DONE };
const size_t STACK = 64 * 1024;
const unsigned MAX_THREADS = 1024;
struct Thread {
    ucontext_t start;
    jmp_buf place;  // where it pauses; a jump there asks nothing of the operating system
    bool started = false;
    std::vector<char> stack;
};
inline jmp_buf scheduler;
inline std::deque<Thread> threads;  // a context must stay where it is
inline State states[MAX_THREADS];
inline unsigned current, n_threads;
inline unsigned long long deposits[MAX_THREADS];
inline std::function<void()> body;
inline unsigned long long dice = 1;

// A random number below an end, by Marsaglia's xorshift.
inline unsigned below(unsigned end) {
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (dice >> 32) * end >> 32;
}

inline void pause(State state) {
    states[current] = state;
    if (_setjmp(threads[current].place) == 0) _longjmp(scheduler, 1);
}

// A thread runs its part of one block after the other.
inline void entry() {
    for (;;) {
        body();
        pause(DONE);
    }
}

// Run a thread until it pauses.
[[gnu::noinline]] inline void go_on(Thread& thread) {
    if (_setjmp(scheduler) != 0) return;
    if (thread.started) _longjmp(thread.place, 1);
    thread.started = true;
    setcontext(&thread.start);
}

// Let go those that wait for each other, once nobody of them is still on the way.
inline void release(unsigned first, unsigned last, State waiting) {
    bool any = false, left = false;
    for (unsigned t = first; t < last; ++t) {
        if (states[t] == waiting) any = true;
        else if (states[t] == DONE) left = true;
        else return;
    }
    if (!any) return;
    if (waiting == AT_WARP && left) {
        std::fprintf(stderr, "a warp waits for a thread that has left\n");
        std::abort();
    }
    for (unsigned t = first; t < last; ++t)
        if (states[t] == waiting) states[t] = READY;
}
}  // namespace host

inline dim3 blockIdx, blockDim, gridDim, threadIdx;

namespace host {
inline void run_block() {
    std::fill_n(states, n_threads, READY);
    unsigned turn[MAX_THREADS];
    for (;;) {
        unsigned n = 0;
        for (unsigned t = 0; t < n_threads; ++t)
            if (states[t] == READY) turn[n++] = t;
        if (n == 0) {
            if (std::count(states, states + n_threads, DONE) == n_threads) return;
            std::fprintf(stderr, "threads of a block wait at different places\n");
            std::abort();
        }
        for (; n > 0; --n) {  // no order can be relied on
            std::swap(turn[n - 1], turn[below(n)]);
            current = turn[n - 1];
            threadIdx = {current, 0, 0};
            go_on(threads[current]);
        }
        for (unsigned w = 0; w < n_threads; w += 32)
            release(w, std::min(w + 32, n_threads), AT_WARP);
        release(0, n_threads, AT_BLOCK);
    }
}

inline void launch(unsigned x, unsigned y, unsigned n, std::function<void()> kernel) {
    body = kernel;
    n_threads = n;
    while (threads.size() < n) {
        Thread& thread = threads.emplace_back();
        thread.stack.resize(STACK);
        getcontext(&thread.start);
        thread.start.uc_stack.ss_sp = thread.stack.data();
        thread.start.uc_stack.ss_size = STACK;
        thread.start.uc_link = nullptr;
        makecontext(&thread.start, entry, 0);
    }
    gridDim = {x, y, 1};
    blockDim = {n, 1, 1};
    for (unsigned b = 0; b < y; ++b)
        for (unsigned a = 0; a < x; ++a) {
            blockIdx = {a, b, 0};
            run_block();
        }
}

template <typename T>
inline T exchange(T value, unsigned from) {
    static_assert(sizeof(T) <= 8);
    const unsigned me = current;
    std::memcpy(&deposits[me], &value, sizeof(T));
    pause(AT_WARP);
    T other;
    std::memcpy(&other, &deposits[me / 32 * 32 + from % 32], sizeof(T));
    pause(AT_WARP);
    return other;
}

// What the lanes of a warp have, put together.
template <typename Together>
inline unsigned reduce(unsigned value, Together together) {
    const unsigned first = current / 32 * 32;
    deposits[current] = value;
    pause(AT_WARP);
    unsigned all = deposits[first];
    for (unsigned lane = 1; lane < 32; ++lane) all = together(all, (unsigned)deposits[first + lane]);
    pause(AT_WARP);
    return all;
}
}  // namespace host

inline void __syncthreads() { host::pause(host::AT_BLOCK); }
inline void __syncwarp(unsigned = ~0u) { host::pause(host::AT_WARP); }
inline void __threadfence() {}

template <typename T>
inline T __shfl_xor_sync(unsigned, T value, int mask) {
    return host::exchange(value, (host::current % 32) ^ mask);
}
template <typename T>
inline T __shfl_sync(unsigned, T value, int from) {
    return host::exchange(value, from);
}
template <typename T>
inline T __shfl_up_sync(unsigned, T value, int by) {
    const int lane = host::current % 32;
    return host::exchange(value, lane >= by ? lane - by : lane);
}
template <typename T>
inline T __shfl_down_sync(unsigned, T value, int by) {
    const int lane = host::current % 32;
    return host::exchange(value, lane + by < 32 ? lane + by : lane);
}
inline unsigned __ballot_sync(unsigned, int flag) {
    return host::reduce(flag ? 1u << host::current % 32 : 0u, std::bit_or<unsigned>());
}
template <typename T>
inline unsigned __match_any_sync(unsigned, T value) {
    static_assert(sizeof(T) <= 8);
    const unsigned first = host::current / 32 * 32;
    unsigned long long mine = 0;
    std::memcpy(&mine, &value, sizeof(T));
    host::deposits[host::current] = mine;
    host::pause(host::AT_WARP);
    unsigned same = 0;
    for (unsigned lane = 0; lane < 32; ++lane) same |= (host::deposits[first + lane] == mine) << lane;
    host::pause(host::AT_WARP);
    return same;
}
inline int __any_sync(unsigned mask, int flag) { return __ballot_sync(mask, flag) != 0; }
inline int __all_sync(unsigned mask, int flag) { return __ballot_sync(mask, flag) == ~0u; }
inline int __reduce_add_sync(unsigned, int value) {
    return host::reduce(value, std::plus<unsigned>());
}
inline int __reduce_min_sync(unsigned, int value) {
    return host::reduce(value, [](int a, int b) { return std::min(a, b); });
}

template <typename T>
inline T atomicAdd(T* at, T value) {
    T old = *at;
    *at = old + value;
    return old;
}
template <typename T>
inline T atomicMin(T* at, T value) {
    T old = *at;
    *at = std::min(old, value);
    return old;
}
template <typename T>
inline T atomicMax(T* at, T value) {
    T old = *at;
    *at = std::max(old, value);
    return old;
}
template <typename T>
inline T atomicOr(T* at, T value) {
    T old = *at;
    *at = old | value;
    return old;
}
template <typename T>
inline T atomicExch(T* at, T value) {
    T old = *at;
    *at = value;
    return old;
}
template <typename T>
inline T atomicCAS(T* at, T expected, T value) {
    T old = *at;
    if (old == expected) *at = value;
    return old;
}

template <typename T>
inline T __ldcs(const T* at) {
    return *at;
}
template <typename T>
inline T __ldcg(const T* at) {
    return *at;
}
template <typename T>
inline T __ldg(const T* at) {
    return *at;
}
template <typename To, typename From>
inline To host_bits(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To bits;
    std::memcpy(&bits, &value, sizeof(To));
    return bits;
}
inline long long __double_as_longlong(double v) { return host_bits<long long>(v); }
inline double __longlong_as_double(long long v) { return host_bits<double>(v); }
inline int __float_as_int(float v) { return host_bits<int>(v); }
inline float __int_as_float(int v) { return host_bits<float>(v); }
inline unsigned __float_as_uint(float v) { return host_bits<unsigned>(v); }
inline float __uint_as_float(unsigned v) { return host_bits<float>(v); }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }

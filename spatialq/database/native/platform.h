/* Locks, large pieces of memory and names of functions, on Linux, macOS and Windows. */
#ifndef SPATIALQ_PLATFORM_H
#define SPATIALQ_PLATFORM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef _WIN32

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <malloc.h>
#include <windows.h>
#define EXPORT __declspec(dllexport)
typedef SRWLOCK Lock;
typedef CONDITION_VARIABLE Signal;
#define LOCK_INIT SRWLOCK_INIT
#define SIGNAL_INIT CONDITION_VARIABLE_INIT

static inline void lock(Lock *l) { AcquireSRWLockExclusive(l); }
static inline void unlock(Lock *l) { ReleaseSRWLockExclusive(l); }
static inline void notify(Signal *s) { WakeAllConditionVariable(s); }
static inline void wait_for(Signal *s, Lock *l) { SleepConditionVariableSRW(s, l, INFINITE, 0); }
/* False if nobody notified in time. */
static inline bool wait_briefly(Signal *s, Lock *l, int milliseconds) {
    return SleepConditionVariableSRW(s, l, milliseconds, 0) != 0;
}
static inline void *allocate_aligned(size_t size) { return _aligned_malloc(size, 4096); }
static inline void free_aligned(void *memory) { _aligned_free(memory); }
/* The number that Python's threading.get_ident() gives the thread. */
static inline uint64_t this_thread(void) { return GetCurrentThreadId(); }
/* Whether a function has that name in the library that it is of. */
static inline bool is_named(const void *function, const char *name) {
    HMODULE library;
    return GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS
                                  | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                              function, &library)
           && (const void *)GetProcAddress(library, name) == function;
}

#else

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#define EXPORT __attribute__((visibility("default")))
typedef pthread_mutex_t Lock;
typedef pthread_cond_t Signal;
#define LOCK_INIT PTHREAD_MUTEX_INITIALIZER
#define SIGNAL_INIT PTHREAD_COND_INITIALIZER

static inline void lock(Lock *l) { pthread_mutex_lock(l); }
static inline void unlock(Lock *l) { pthread_mutex_unlock(l); }
static inline void notify(Signal *s) { pthread_cond_broadcast(s); }
static inline void wait_for(Signal *s, Lock *l) { pthread_cond_wait(s, l); }
/* False if nobody notified in time. */
static inline bool wait_briefly(Signal *s, Lock *l, int milliseconds) {
    struct timespec until = {0, milliseconds * 1000000L};
#ifdef __APPLE__
    return pthread_cond_timedwait_relative_np(s, l, &until) != ETIMEDOUT;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* which nobody sets back */
    until.tv_sec = now.tv_sec + (now.tv_nsec + until.tv_nsec) / 1000000000L;
    until.tv_nsec = (now.tv_nsec + until.tv_nsec) % 1000000000L;
    return pthread_cond_clockwait(s, l, CLOCK_MONOTONIC, &until) != ETIMEDOUT;
#endif
}
/* Huge pages where there are some: the page faults of fresh memory cost more than its use. */
static inline void *allocate_aligned(size_t size) {
    const size_t huge = (size_t)2 << 20;
    void *memory = NULL;
    if (posix_memalign(&memory, size >= huge ? huge : 4096, size) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    if (size >= huge) madvise(memory, size, MADV_HUGEPAGE);
#endif
    return memory;
}
static inline void free_aligned(void *memory) { free(memory); }
/* The number that Python's threading.get_ident() gives the thread. */
static inline uint64_t this_thread(void) { return (uint64_t)pthread_self(); }
/* Whether a function has that name in the library that it is of. */
static inline bool is_named(const void *function, const char *name) {
    Dl_info of;
    void *library = dladdr(function, &of) ? dlopen(of.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    bool is = library && dlsym(library, name) == function;
    if (library) dlclose(library);
    return is;
}

#endif
#endif

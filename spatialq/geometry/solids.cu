// Meshes as solids, and the boxes of their clusters: the operations of solids.py and clusters.py; a
// loop there is a warp here.
#include "geometry/boxes.cuh"

typedef unsigned long long u64;

const unsigned ALL = 0xffffffffu;
#define INFINITE __longlong_as_double(0x7FF0000000000000ll)
const int WARPS = 4;  // of a block, where a warp works alone

__device__ inline u64 place(Vec p) {
    u64 x, y, z;
    memcpy(&x, &p.x, 8);
    memcpy(&y, &p.y, 8);
    memcpy(&z, &p.z, 8);
    if (x == 1ull << 63) x = 0;
    if (y == 1ull << 63) y = 0;
    if (z == 1ull << 63) z = 0;
    u64 k = (x ^ (x >> 32)) * 0x9E3779B97F4A7C15ull;
    k = ((k + y) ^ (k >> 29)) * 0xC2B2AE3D27D4EB4Full;
    k = ((k + z) ^ (k >> 32)) * 0x165667B19E3779F9ull;
    return k ^ (k >> 29);
}

__device__ inline u64 edge(u64 tail, u64 head) {
    if (tail == head) return 0;
    u64 low = tail < head ? tail : head, high = tail < head ? head : tail;
    u64 k = (low * 0x9E3779B97F4A7C15ull) ^ (high * 0xC2B2AE3D27D4EB4Full + 0x165667B19E3779F9ull);
    k = (k ^ (k >> 32)) * 0x165667B19E3779F9ull;
    k ^= k >> 29;
    return tail < head ? k : ~k + 1;
}

// One warp per element: closed or open, orientation, connected parts.
extern "C" __global__ void describe(
    const double* vertices, const int* faces, const i64* vertex_starts, const i64* face_starts,
    const double* boxes, i64 elements, signed char* side, int* label, int* parts) {
    const int lane = threadIdx.x % 32;
    const i64 e = blockIdx.x * (i64)WARPS + threadIdx.x / 32;
    if (e >= elements) return;
    const i64 v0 = vertex_starts[e], v1 = vertex_starts[e + 1];
    const i64 f0 = face_starts[e], f1 = face_starts[e + 1];
    int* mine = label + v0;
    for (i64 v = lane; v < v1 - v0; v += 32) mine[v] = -1;
    __syncwarp();
    u64 balance = 0;
    i64 volume = 0;
    Box box = box_at(boxes, e);
    Vec o = f1 > f0 ? corner(vertices, v0 + faces[3 * f0]) : Vec{0.0, 0.0, 0.0};
    double unit = 0.0;
    if (f1 > f0) {
        Vec d = box.high - box.low;
        double room = d.x * d.y * d.z;
        unit = room > 1e-280 ? 68719476736.0 / room : 0.0;
    }
    for (i64 f = f0 + lane; f < f1; f += 32) {
        int i = faces[3 * f], j = faces[3 * f + 1], k = faces[3 * f + 2];
        Vec a = corner(vertices, v0 + i), b = corner(vertices, v0 + j), c = corner(vertices, v0 + k);
        u64 ka = place(a), kb = place(b), kc = place(c);
        balance += edge(ka, kb) + edge(kb, kc) + edge(kc, ka);
        volume += (i64)floor(dot(a - o, cross(b - o, c - o)) * unit + 0.5);
        mine[i] = i;  // several lanes may write the same
        mine[j] = j;
        mine[k] = k;
    }
    for (int away = 16; away > 0; away /= 2) {
        balance += __shfl_xor_sync(ALL, balance, away);
        volume += __shfl_xor_sync(ALL, volume, away);
    }
    __syncwarp();
    // Each vertex takes the minimum label around it, until nothing changes.
    bool again = f1 > f0;
    while (again) {
        bool changed = false;
        for (i64 f = f0 + lane; f < f1; f += 32) {
            int i = faces[3 * f], j = faces[3 * f + 1], k = faces[3 * f + 2];
            int a = mine[i], b = mine[j], c = mine[k];
            int m = min(a, min(b, c));
            if (a != m || b != m || c != m) {
                atomicMin(mine + i, m);
                atomicMin(mine + j, m);
                atomicMin(mine + k, m);
                // and the roots, so that whole parts join at once
                atomicMin(mine + a, m);
                atomicMin(mine + b, m);
                atomicMin(mine + c, m);
                changed = true;
            }
        }
        __syncwarp();
        for (i64 v = lane; v < v1 - v0; v += 32) {
            if (mine[v] < 0) continue;
            int r = mine[v];
            while (mine[r] < r) r = mine[r];
            mine[v] = r;
        }
        __syncwarp();
        again = __any_sync(ALL, changed);
    }
    int count = 0;
    for (i64 v = lane; v < v1 - v0; v += 32) count += mine[v] == v;
    for (int away = 16; away > 0; away /= 2) count += __shfl_xor_sync(ALL, count, away);
    if (lane == 0) {
        side[e] = balance != 0 || f1 == f0 ? 0 : (volume < 0 ? -1 : 1);
        parts[e] = count;
    }
}

// One thread per cluster: its box.
extern "C" __global__ void cluster_boxes(
    const double* vertices, const int* faces, const i64* vertex_starts, const i64* face_starts,
    const i64* cluster_starts, i64 elements, i64 clusters, double* boxes) {
    const i64 c = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (c >= clusters) return;
    i64 e = 0, above = elements;  // the element: the last that begins at c or before, with clusters
    while (above - e > 1) {
        i64 middle = (e + above) / 2;
        if (cluster_starts[middle] <= c) e = middle;
        else above = middle;
    }
    const i64 v0 = vertex_starts[e], begin = face_starts[e] + (c - cluster_starts[e]) * CLUSTER;
    const i64 end = min(begin + CLUSTER, face_starts[e + 1]);
    Box box = {{INFINITE, INFINITE, INFINITE}, {-INFINITE, -INFINITE, -INFINITE}};
    for (i64 k = 3 * begin; k < 3 * end; ++k) {
        Vec p = corner(vertices, v0 + faces[k]);
        box.low = {min(p.x, box.low.x), min(p.y, box.low.y), min(p.z, box.low.z)};
        box.high = {max(p.x, box.high.x), max(p.y, box.high.y), max(p.z, box.high.z)};
    }
    double* out = boxes + 6 * c;
    out[0] = box.low.x;
    out[1] = box.low.y;
    out[2] = box.low.z;
    out[3] = box.high.x;
    out[4] = box.high.y;
    out[5] = box.high.z;
}

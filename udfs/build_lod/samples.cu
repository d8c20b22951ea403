// The samples of the nodes of an octree in the order of the table, see samples_gpu.py.

#include "build_lod/points.cuh"

typedef unsigned char u8;
typedef unsigned short u16;

// Collects every third bit of a code, from the lowest on.
__device__ inline u32 gather(u32 code) {
    u32 v = code & 0x09249249;
    v = (v | v >> 2) & 0x030C30C3;
    v = (v | v >> 4) & 0x0300F00F;
    v = (v | v >> 8) & 0x030000FF;
    return (v | v >> 16) & 0x3FF;
}

// Lays the colours of points side by side, as `colours` of colours.py does for points without masks.
// Without intensity it is 0, and the colour of points without red, green and blue `grey`.
extern "C" __global__ void lod_colours(
    const u16* red, const u16* green, const u16* blue, const u16* intensity, i64 has_colour,
    i64 has_intensity, i64 grey, i64 n, u64* colour) {
    FOR_EACH(k, n) {
        const u64 light = has_intensity ? intensity[k] : 0, none = has_intensity ? light : (u64)grey;
        const u64 r = has_colour ? red[k] : none, g = has_colour ? green[k] : none;
        const u64 b = has_colour ? blue[k] : none;
        colour[k] = r | g << 16 | b << 32 | light << 48;
    }
}

// Writes the samples: points of leaves, and voxels of inner nodes. A voxel has the class and the id of
// the point that represents it, and lies in the middle of its cell unless it is `exact`.
extern "C" __global__ void lod_samples(
    const i64* offsets, const i64* first, const i64* voxel_first, const double* low,
    const double* spacing, i64 nodes, const u32* order, const u32* representative, const u32* code,
    const u64* voxel_colour, const double* x, const double* y, const double* z, const u64* colour,
    const u8* classes, const i64* ids, i64 has_ids, i64 exact, i64 n, double* xs, double* ys,
    double* zs, u16* red, u16* green, u16* blue, u16* intensity, u8* classes_out, i64* ids_out) {
    FOR_EACH(k, n) {
        i64 node = 0, stop = nodes;  // the last node whose offset is at most k; no node is empty
        while (stop - node > 1) {
            const i64 middle = (node + stop) / 2;
            if (offsets[middle] <= k) node = middle; else stop = middle;
        }
        const i64 place = k - offsets[node];
        const double side = spacing[node];
        const i64 voxel = voxel_first[node] + place;
        const bool is_leaf = voxel_first[node] == voxel_first[node + 1];
        const u32 point = is_leaf ? order[first[node] + place] : representative[voxel];
        if (is_leaf || exact) {
            xs[k] = x[point];
            ys[k] = y[point];
            zs[k] = z[point];
        } else {
            const u32 cell = code[voxel];
            const double* corner = low + 3 * node;
            xs[k] = corner[0] + ((double)gather(cell >> 2) + 0.5) * side;
            ys[k] = corner[1] + ((double)gather(cell >> 1) + 0.5) * side;
            zs[k] = corner[2] + ((double)gather(cell) + 0.5) * side;
        }
        const u64 tint = is_leaf ? colour[point] : voxel_colour[voxel];
        red[k] = (u16)tint;
        green[k] = (u16)(tint >> 16);
        blue[k] = (u16)(tint >> 32);
        intensity[k] = (u16)(tint >> 48);
        classes_out[k] = classes[point];
        ids_out[k] = has_ids ? ids[point] : (i64)point;
    }
}

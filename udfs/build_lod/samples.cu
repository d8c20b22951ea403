// Points of tiles, and the samples of nodes in the order of the table; see tiles_gpu.py and
// samples_gpu.py.

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

// A point without colour.
struct Bare {
    double x, y, z;
};

// Counts points in the cells `depth` levels below the cube; a code is that of a cell.
extern "C" __global__ void lod_cells(
    const double* x, const double* y, const double* z, double x0, double y0, double z0, double size,
    i64 depth, i64 n, u32* code, u32* count) {
    const Cells<double> cells({x0, y0, z0, size}, (int)depth, (int)depth);
    FOR_EACH(k, n) {
        const u32 cell = cells.of(Bare{x[k], y[k], z[k]});
        code[k] = cell;
        atomicAdd(count + cell, 1u);
    }
}

// Makes keys that sort positions by tiles.
extern "C" __global__ void lod_tile_keys(const u32* code, const u32* tile, i64 n, u64* key) {
    FOR_EACH(k, n) key[k] = (u64)tile[code[k]] << 32 | (u64)k;
}

extern "C" __global__ void lod_positions(const u64* key, i64 n, u32* position) {
    FOR_EACH(k, n) position[k] = (u32)key[k];
}

// Copies the points at some positions.
extern "C" __global__ void lod_points(
    const u32* position, i64 n, const double* x, const double* y, const double* z, const u64* colour,
    const u8* classes, double* xs, double* ys, double* zs, u64* colours, u8* classes_out) {
    FOR_EACH(k, n) {
        const u32 at = position[k];
        xs[k] = x[at];
        ys[k] = y[at];
        zs[k] = z[at];
        colours[k] = colour[at];
        classes_out[k] = classes[at];
    }
}

// Turns positions in a tile into those in the whole cloud.
extern "C" __global__ void lod_of_cloud(const u32* position, i64 n, u32* within) {
    FOR_EACH(k, n) within[k] = position[within[k]];
}

// Writes n samples from the one with number `begin` on: points of leaves, and voxels of inner nodes.
// A voxel has the class and the id of the point that represents it, and lies in the middle of its
// cell unless it is `exact`.
extern "C" __global__ void lod_samples(
    const i64* offsets, const u8* is_leaf, const i64* first, const double* low,
    const double* spacing, i64 nodes, const u32* order, const u32* representative, const u32* code,
    const u64* voxel_colour, const double* x, const double* y, const double* z, const u64* colour,
    const u8* classes, const i64* ids, i64 has_ids, i64 exact, i64 begin, i64 n, double* xs,
    double* ys, double* zs, u16* red, u16* green, u16* blue, u16* intensity, u8* classes_out,
    i64* ids_out) {
    FOR_EACH(k, n) {
        i64 node = 0, stop = nodes;  // the last node whose offset is at most that; none is empty
        while (stop - node > 1) {
            const i64 middle = (node + stop) / 2;
            if (offsets[middle] <= begin + k) node = middle; else stop = middle;
        }
        const i64 at = first[node] + begin + k - offsets[node];
        const bool leaf = is_leaf[node];
        const u32 point = leaf ? order[at] : representative[at];
        if (leaf || exact) {
            xs[k] = x[point];
            ys[k] = y[point];
            zs[k] = z[point];
        } else {
            const u32 cell = code[at];
            const double* corner = low + 3 * node;
            const double side = spacing[node];
            xs[k] = corner[0] + ((double)gather(cell >> 2) + 0.5) * side;
            ys[k] = corner[1] + ((double)gather(cell >> 1) + 0.5) * side;
            zs[k] = corner[2] + ((double)gather(cell) + 0.5) * side;
        }
        const u64 tint = leaf ? colour[point] : voxel_colour[at];
        red[k] = (u16)tint;
        green[k] = (u16)(tint >> 16);
        blue[k] = (u16)(tint >> 32);
        intensity[k] = (u16)(tint >> 48);
        classes_out[k] = classes[point];
        ids_out[k] = has_ids ? ids[point] : (i64)point;
    }
}

// The nearest face of a point, and on which side of it the point is: the operations of
// nearest_faces.py, in the same order.
#pragma once
#include "geometry/winding.cuh"

struct NearestFaces {
    double max_distance, rounding;
    const int* nodes;
    const i64* leaf_starts;
    const int* leaf_faces;
    const double *triangles, *grid;
    const i64* shape;
    const double* vertices;
    const i64* corners;
    const int* mesh_of;
    const signed char* side;
    const double* normals;
    const unsigned char* reliable;
    const int* part;
    const signed char* turn;
    const i64* part_starts;
    const int* part_faces;
    const double* boxes;
    const i64* near_starts;
    const int* near;
};

const double BOUND_SLACK = 1e-9;
const int FEATURE_FACE = 0, FEATURE_EDGES = 1, FEATURE_CORNERS = 4;

// The leaf of a point; 0, which is empty, outside of the grid.
__device__ inline i64 leaf_of(const NearestFaces& m, Vec p) {
    const double x = (p.x - m.grid[0]) * m.grid[3], y = (p.y - m.grid[1]) * m.grid[3],
                 z = (p.z - m.grid[2]) * m.grid[3];
    const i64 levels = m.shape[3];
    if (!(x >= 0.0 && y >= 0.0 && z >= 0.0 && x < (double)(m.shape[0] << levels) &&
          y < (double)(m.shape[1] << levels) && z < (double)(m.shape[2] << levels)))
        return 0;
    const i64 ix = (i64)x, iy = (i64)y, iz = (i64)z;
    i64 node = m.nodes[((ix >> levels) * m.shape[1] + (iy >> levels)) * m.shape[2] + (iz >> levels)];
    for (i64 level = levels - 1; node >= 0; --level)
        node = m.nodes[node + (((ix >> level) & 1) << 2) + (((iy >> level) & 1) << 1) +
                       ((iz >> level) & 1)];
    return -1 - node;
}

// The nearest feature of a triangle with a corner in the origin.
__device__ inline int feature_of(Vec r, Vec u, Vec v) {
    Vec w = r - u, t = r - v;
    double d1 = dot(u, r), d2 = dot(v, r), d3 = dot(u, w), d4 = dot(v, w), d5 = dot(u, t),
           d6 = dot(v, t);
    double va = d3 * d6 - d5 * d4, vb = d5 * d2 - d1 * d6, vc = d1 * d4 - d3 * d2;
    if (!(va + vb + vc > THIN * dot(u, u) * dot(v, v))) return FEATURE_FACE;
    if (d1 <= 0.0 && d2 <= 0.0) return FEATURE_CORNERS;
    if (d3 >= 0.0 && d4 <= d3) return FEATURE_CORNERS + 1;
    if (d6 >= 0.0 && d5 <= d6) return FEATURE_CORNERS + 2;
    if (vc <= 0.0 && d1 >= 0.0 && d3 <= 0.0) return FEATURE_EDGES;
    if (vb <= 0.0 && d2 >= 0.0 && d6 <= 0.0) return FEATURE_EDGES + 2;
    if (va <= 0.0 && d4 >= d3 && d5 >= d6) return FEATURE_EDGES + 1;
    return FEATURE_FACE;
}

// How often a part winds round a point.
__device__ __noinline__ int turns_of(const NearestFaces& m, Vec p, i64 part) {
    int total = 0;
    for (i64 k = m.part_starts[part]; k < m.part_starts[part + 1]; ++k) {
        const i64* at = m.corners + 3 * (i64)m.part_faces[k];
        total += winding_of(p, corner(m.vertices, at[0]), corner(m.vertices, at[1]),
                            corner(m.vertices, at[2]));
    }
    return total;
}

// Whether a point is inside the closed mesh of its nearest face; q is relative to a corner of it.
__device__ inline bool is_inside(const NearestFaces& m, Vec p, i64 f, Vec q) {
    const double* t = m.triangles + 12 * f;
    const i64 own = m.part[f];
    Vec r = p - Vec{t[0], t[1], t[2]};
    const int feature = feature_of(r, {t[6], t[7], t[8]}, {t[9], t[10], t[11]});
    int total = 0;
    if ((m.reliable[f] >> feature) & 1) {
        const double* n = m.normals + 21 * f + 3 * feature;
        const bool front = dot(r - q, {n[0], n[1], n[2]}) >= 0.0;
        if (m.turn[own] > 0) {
            if (!front) total = 1;
        } else if (front) {
            total = -1;
        }
    } else {
        total = turns_of(m, p, own);
    }
    for (i64 k = m.near_starts[own]; k < m.near_starts[own + 1]; ++k) {
        const double* box = m.boxes + 6 * (i64)m.near[k];
        if (p.x >= box[0] && p.x <= box[3] && p.y >= box[1] && p.y <= box[4] && p.z >= box[2] &&
            p.z <= box[5])
            total += turns_of(m, p, m.near[k]);
    }
    return total != 0;
}

// The nearest face of a point, -1 if none is near, and its signed distance.
__device__ inline i64 nearest_face(const NearestFaces& m, Vec p, double& distance) {
    i64 best = -1;
    double d2 = m.max_distance * m.max_distance;
    double reach = m.max_distance + m.rounding;
    Vec q = {0.0, 0.0, 0.0};
    const i64 leaf = leaf_of(m, p);
    for (i64 k = m.leaf_starts[leaf]; k < m.leaf_starts[leaf + 1]; ++k) {
        const i64 f = m.leaf_faces[k];
        const double* t = m.triangles + 12 * f;
        Vec r = p - Vec{t[0], t[1], t[2]};
        if (fabs(dot({t[3], t[4], t[5]}, r)) > reach) continue;
        Vec at;
        const double gap =
            distance_of_point(r, {0.0, 0.0, 0.0}, {t[6], t[7], t[8]}, {t[9], t[10], t[11]}, at);
        if (gap < d2 || (gap == d2 && (best < 0 || f < best))) {
            d2 = gap;
            best = f;
            q = at;
            reach = sqrt(gap) * (1.0 + BOUND_SLACK) + m.rounding;
        }
    }
    distance = __longlong_as_double(0x7FF8000000000000ll);
    if (best >= 0) {
        distance = sqrt(d2);
        if (m.side[m.mesh_of[best]] != 0 && is_inside(m, p, best, q)) distance = -distance;
    }
    return best;
}

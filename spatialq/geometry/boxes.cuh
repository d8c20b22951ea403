// Boxes of elements, and of clusters of their faces.
#pragma once
#include "geometry/triangles.cuh"

typedef long long i64;

const int CLUSTER = 8;  // consecutive faces of a mesh that share a box

struct Box {
    Vec low, high;
};

__device__ inline Box box_at(const double* boxes, i64 k) {
    const double* b = boxes + 6 * k;
    return {{b[0], b[1], b[2]}, {b[3], b[4], b[5]}};
}
__device__ inline Box box_of(Vec a, Vec b, Vec c) {
    return {{min3(a.x, b.x, c.x), min3(a.y, b.y, c.y), min3(a.z, b.z, c.z)},
            {max3(a.x, b.x, c.x), max3(a.y, b.y, c.y), max3(a.z, b.z, c.z)}};
}

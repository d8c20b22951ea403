// How often a closed mesh winds round a point: `winding.winding` once more, face by face.
#pragma once
#include "distance/triangles.cuh"

__device__ inline int crossing(double px, double py, double ux, double uy, double vx, double vy) {
    if (uy < vy) return (vx - ux) * (py - uy) - (vy - uy) * (px - ux) > 0.0 ? 1 : 0;
    return (ux - vx) * (py - vy) - (uy - vy) * (px - vx) > 0.0 ? -1 : 0;
}

__device__ inline double height(double px, double py, Vec a, Vec b, Vec c) {
    Vec u = b - a, v = c - a;
    double nx = u.y * v.z - u.z * v.y, ny = u.z * v.x - u.x * v.z, nz = u.x * v.y - u.y * v.x;
    double low = least(a.z, b.z, c.z), high = most(a.z, b.z, c.z);
    if (nz == 0.0) return high;
    double z = a.z - (nx * (px - a.x) + ny * (py - a.y)) / nz;
    return z < low ? low : (z > high ? high : z);
}

// How often a face of a closed mesh is met by a ray upwards, with its sign.
__device__ inline int winding_of(Vec p, Vec a, Vec b, Vec c) {
    bool over_a = a.y > p.y, over_b = b.y > p.y, over_c = c.y > p.y;
    if (over_a == over_b && over_b == over_c) return 0;
    if ((a.x < p.x && b.x < p.x && c.x < p.x) || (a.x > p.x && b.x > p.x && c.x > p.x)) return 0;
    if (a.z < p.z && b.z < p.z && c.z < p.z) return 0;
    int turn = 0;
    if (over_a != over_b) turn += crossing(p.x, p.y, a.x, a.y, b.x, b.y);
    if (over_b != over_c) turn += crossing(p.x, p.y, b.x, b.y, c.x, c.y);
    if (over_c != over_a) turn += crossing(p.x, p.y, c.x, c.y, a.x, a.y);
    return turn != 0 && height(p.x, p.y, a, b, c) > p.z ? turn : 0;
}

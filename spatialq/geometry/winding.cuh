// Winding numbers of meshes round points: the operations of winding.py, face by face.
#pragma once
#include "geometry/triangles.cuh"

typedef long long i64;

const double TURN = 17592186044416.0;  // units of a full turn in which solid angles are added

__device__ inline int crossing(double px, double py, double ux, double uy, double vx, double vy) {
    if (uy < vy) return (vx - ux) * (py - uy) - (vy - uy) * (px - ux) > 0.0 ? 1 : 0;
    return (ux - vx) * (py - vy) - (uy - vy) * (px - vx) > 0.0 ? -1 : 0;
}

__device__ inline double height(double px, double py, Vec a, Vec b, Vec c) {
    Vec u = b - a, v = c - a;
    double nx = u.y * v.z - u.z * v.y, ny = u.z * v.x - u.x * v.z, nz = u.x * v.y - u.y * v.x;
    double low = min3(a.z, b.z, c.z), high = max3(a.z, b.z, c.z);
    if (nz == 0.0) return high;
    double z = a.z - (nx * (px - a.x) + ny * (py - a.y)) / nz;
    return z < low ? low : (z > high ? high : z);
}

// How often a ray upwards crosses a face of a closed mesh, with its sign.
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

__device__ inline double arc_tangent(double y, double x) {
    const double PI = 3.141592653589793;
    double up = fabs(y), along = fabs(x);
    double t = up < along ? up / along : along / up;
    double s = t * t, r = 0.0028662257;
    r = r * s - 0.0161657367;
    r = r * s + 0.0429096138;
    r = r * s - 0.0752896400;
    r = r * s + 0.1065626393;
    r = r * s - 0.1420889944;
    r = r * s + 0.1999355085;
    r = r * s - 0.3333314528;
    double angle = t + t * s * r;
    if (up >= along) angle = 0.5 * PI - angle;
    if (x < 0.0) angle = PI - angle;
    return y > 0.0 ? angle : -angle;
}

// The solid angle of a triangle seen from the origin, in units of a full turn.
__device__ inline i64 solid_angle(Vec a, Vec b, Vec c) {
    const double PI = 3.141592653589793;
    double la = sqrt(dot(a, a)), lb = sqrt(dot(b, b)), lc = sqrt(dot(c, c));
    double above = dot(a, cross(b, c));
    double below = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb;
    if (above == 0.0) return 0;
    return (i64)floor(arc_tangent(above, below) / (2.0 * PI) * TURN + 0.5);
}

// Exact distances of triangles: the operations of triangles.py, in the same order.
#pragma once

struct Vec {
    double x, y, z;
};

__device__ inline Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
__device__ inline Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
__device__ inline Vec operator*(double s, Vec a) { return {s * a.x, s * a.y, s * a.z}; }
__device__ inline double dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ inline Vec cross(Vec a, Vec b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

__device__ inline Vec corner(const double* vertices, long long v) {
    return {vertices[3 * v], vertices[3 * v + 1], vertices[3 * v + 2]};
}
__device__ inline double min3(double a, double b, double c) {
    double m = a < b ? a : b;
    return m < c ? m : c;
}
__device__ inline double max3(double a, double b, double c) {
    double m = a > b ? a : b;
    return m > c ? m : c;
}

struct Closest {
    double d2;
    Vec a, b;
};

const double DISTANCE_ROUNDING = 1e-24;
const double THIN = 1e-10;
#define DISTANCE_INFINITY __longlong_as_double(0x7FF0000000000000ll)

__device__ inline double share(double part, double whole) {
    if (part >= whole) return whole > 0.0 ? 1.0 : 0.0;
    return part > 0.0 ? part / whole : 0.0;
}

// Where along two segments they are nearest: shares s of da and t of db; r from start to start.
__device__ inline void nearest_of_segments(
    Vec da, double da2, Vec db, double db2, Vec r, double& s, double& t) {
    double along_a = dot(da, r);
    if (!(db2 > 0.0)) {
        s = share(along_a, da2);
        t = 0.0;
        return;
    }
    Vec n = cross(da, db);
    s = share(dot(cross(r, db), n), dot(n, n));
    double of_both = dot(da, db);
    t = s * of_both - dot(db, r);
    if (t <= 0.0) {
        s = share(along_a, da2);
        t = 0.0;
    } else if (t >= db2) {
        s = share(along_a + of_both, da2);
        t = 1.0;
    } else {
        t = t / db2;
    }
}

// Where the perpendicular of a point r meets a face, with its square: infinite if outside.
__device__ inline double foot(Vec r, Vec u, Vec v, Vec n, double n2, Vec& q) {
    double su = dot(cross(r, v), n);
    double sv = dot(cross(u, r), n);
    if (!(su >= 0.0 && sv >= 0.0 && su + sv <= n2)) return DISTANCE_INFINITY;
    su = su / n2;
    sv = sv / n2;
    q = su * u + sv * v;
    Vec d = r - q;
    return dot(d, d);
}

// Improve on the best by corners of a above the face of b, and edges of a through it.
__device__ inline void over_face(Vec a0, Vec a1, Vec a2, Vec b0, Vec b1, Vec b2,
                                 double& best, Vec& pa, Vec& pb) {
    Vec u = b1 - b0, v = b2 - b0, n = cross(u, v);
    double n2 = dot(n, n);
    if (!(n2 > 0.0)) return;
    double size2 = u.x * u.x + u.y * u.y + u.z * u.z + v.x * v.x + v.y * v.y + v.z * v.z;
    double h0 = dot(a0 - b0, n), h1 = dot(a1 - b0, n), h2 = dot(a2 - b0, n);
    for (int corner = 0; corner < 3; ++corner) {
        Vec r = a0 - b0, q;
        double d2 = foot(r, u, v, n, n2, q);
        if (d2 < best) {
            best = d2;
            pa = a0;
            pb = b0 + q;
        }
        if ((h0 < 0.0) != (h1 < 0.0)) {
            Vec e = a1 - a0, s = (h0 / (h0 - h1)) * e;
            d2 = foot(r + s, u, v, n, n2, q);
            if (d2 <= DISTANCE_ROUNDING * (size2 + e.x * e.x + e.y * e.y + e.z * e.z)) {
                best = 0.0;
                pa = pb = a0 + s;
                return;
            }
        }
        Vec first = a0;
        a0 = a1;
        a1 = a2;
        a2 = first;
        double h = h0;
        h0 = h1;
        h1 = h2;
        h2 = h;
    }
}

__device__ __noinline__ Closest closest_of_triangles(Vec a0, Vec a1, Vec a2, Vec b0, Vec b1, Vec b2) {
    Closest best = {DISTANCE_INFINITY, {0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
    for (int i = 0; i < 3; ++i) {
        Vec da = a1 - a0;
        double da2 = dot(da, da);
        for (int j = 0; j < 3; ++j) {
            Vec db = b1 - b0, r = b0 - a0;
            double db2 = dot(db, db), s, t;
            nearest_of_segments(da, da2, db, db2, r, s, t);
            Vec along_a = s * da, along_b = t * db, w = r + along_b - along_a;
            double d2 = dot(w, w);
            if (d2 <= best.d2) {
                best = {d2, a0 + along_a, b0 + along_b};
                // how far the third corners reach from the nearest points towards each other
                double of_a = dot(a2 - best.a, w), of_b = dot(b2 - best.b, w);
                if (of_a <= 0.0 && of_b >= 0.0 && d2 > DISTANCE_ROUNDING * (da2 + db2)) return best;
            }
            Vec first = b0;
            b0 = b1;
            b1 = b2;
            b2 = first;
        }
        Vec first = a0;
        a0 = a1;
        a1 = a2;
        a2 = first;
    }
    over_face(a0, a1, a2, b0, b1, b2, best.d2, best.a, best.b);
    over_face(b0, b1, b2, a0, a1, a2, best.d2, best.b, best.a);
    return best;
}

// The squared distance of a point p from a triangle, and its nearest point q.
__device__ __noinline__ double distance_of_point(Vec p, Vec b0, Vec b1, Vec b2, Vec& q) {
    Vec u = b1 - b0, v = b2 - b0, r = p - b0;
    double d1 = dot(u, r), d2 = dot(v, r);
    r = p - b1;
    double d3 = dot(u, r), d4 = dot(v, r);
    r = p - b2;
    double d5 = dot(u, r), d6 = dot(v, r);
    double va = d3 * d6 - d5 * d4, vb = d5 * d2 - d1 * d6, vc = d1 * d4 - d3 * d2;
    double whole = va + vb + vc;  // the square of the normal
    if (!(whole > THIN * dot(u, u) * dot(v, v))) {
        Closest found = closest_of_triangles(p, p, p, b0, b1, b2);
        q = found.b;
        return found.d2;
    }
    double su = 0.0, sv = 0.0;
    if (d1 <= 0.0 && d2 <= 0.0) {
    } else if (d3 >= 0.0 && d4 <= d3) {
        su = 1.0;
    } else if (d6 >= 0.0 && d5 <= d6) {
        sv = 1.0;
    } else if (vc <= 0.0 && d1 >= 0.0 && d3 <= 0.0) {
        su = share(d1, d1 - d3);
    } else if (vb <= 0.0 && d2 >= 0.0 && d6 <= 0.0) {
        sv = share(d2, d2 - d6);
    } else if (va <= 0.0 && d4 >= d3 && d5 >= d6) {
        sv = share(d4 - d3, (d4 - d3) + (d5 - d6));
        su = 1.0 - sv;
    } else {
        su = share(vb, whole);
        sv = share(vc, whole);
    }
    q = {b0.x + su * u.x + sv * v.x, b0.y + su * u.y + sv * v.y, b0.z + su * u.z + sv * v.z};
    r = p - q;
    return dot(r, r);
}

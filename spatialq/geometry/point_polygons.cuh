// The polygons that a point is in: the operations of point_polygons.py, in the same order.
#pragma once

typedef long long i64;

const int NOTHING = -1;
const double ROUNDING = 3.3306690738754716e-16;
const double SPLITTER = 134217729.0;

// From below to above; read in two pieces of 16 bytes.
struct alignas(16) Edge {
    double x0, y0, x1, y1;
};

// What `locate` gets of a PolygonIndex of polygon_index.py.
struct PolygonIndex {
    const double *box, *grid;
    i64 nx, ny;
    const int *cells, *lists;
    const double *bottom, *scale;
    const i64 *row_starts, *begins;
    const Edge* listed;
};

__device__ inline double min2(double a, double b) { return a < b ? a : b; }
__device__ inline double max2(double a, double b) { return a > b ? a : b; }
__device__ inline i64 min2(i64 a, i64 b) { return a < b ? a : b; }

// A sum or product, and what rounding left of it.
struct Exact {
    double found, rest;
};

__device__ inline Exact difference(double a, double b) {
    const double found = a - b, other = a - found;
    return {found, (a - (found + other)) + (other - b)};
}

__device__ inline Exact product(double a, double b) {
    const double found = a * b;
    double c = SPLITTER * a;
    const double a_high = c - (c - a);
    c = SPLITTER * b;
    const double b_high = c - (c - b);
    const double a_low = a - a_high, b_low = b - b_high;
    return {found, a_low * b_low - (((found - a_high * b_high) - a_low * b_high) - a_high * b_low)};
}

// Add a number to parts that ascend in size and do not overlap.
__device__ inline void add(double* parts, int& count, double value) {
    double carried = value;
    for (int k = 0; k < count; ++k) {
        const double found = carried + parts[k], other = found - carried;
        parts[k] = (carried - (found - other)) + (parts[k] - other);
        carried = found;
    }
    parts[count++] = carried;
}

// The largest part of the determinant, summed without rounding. Few points need it: not inlined, so
// that its parts take no registers of the others.
__device__ __noinline__ double exact_side(Edge edge, double x, double y) {
    const Exact a = difference(edge.x1, edge.x0), b = difference(y, edge.y0);
    const Exact c = difference(edge.y1, edge.y0), d = difference(x, edge.x0);
    double parts[16];
    int count = 0;
    for (int k = 0; k < 4; ++k) {
        const Exact left = product(k < 2 ? a.found : a.rest, k % 2 == 0 ? b.found : b.rest);
        add(parts, count, left.rest);
        add(parts, count, left.found);
        const Exact right = product(-(k < 2 ? c.found : c.rest), k % 2 == 0 ? d.found : d.rest);
        add(parts, count, right.rest);
        add(parts, count, right.found);
    }
    for (int k = count - 1; k >= 0; --k)
        if (parts[k] != 0.0) return parts[k];
    return 0.0;
}

// On which side of an edge a point is: > 0 to the left, 0 on its line.
__device__ inline double side(const Edge& edge, double x, double y) {
    const double left = (edge.x1 - edge.x0) * (y - edge.y0);
    const double right = (edge.y1 - edge.y0) * (x - edge.x0);
    const double found = left - right;
    if (fabs(found) >= ROUNDING * (fabs(left) + fabs(right))) return found;
    return exact_side(edge, x, y);
}

// Whether a point of a cell that the boundary of polygon k may pass is within the polygon.
__device__ inline bool is_within(const PolygonIndex& index, i64 k, double x, double y) {
    if (y < index.bottom[k]) return false;
    const i64 first = index.row_starts[k], last = index.row_starts[k + 1] - 1;
    const i64 row = min2(first + (i64)((y - index.bottom[k]) * index.scale[k]), last);
    bool within = false;
    for (i64 m = index.begins[row]; m < index.begins[row + 1]; ++m) {
        const Edge edge = index.listed[m];
        if (y < edge.y0 || y > edge.y1 || x > max2(edge.x0, edge.x1)) continue;
        if (x < min2(edge.x0, edge.x1)) {
            within ^= y < edge.y1;
            continue;
        }
        const double where = edge.y0 == edge.y1 ? 0.0 : side(edge, x, y);
        if (where == 0.0) return true;
        within ^= where > 0.0 && y < edge.y1;
    }
    return within;
}

// The polygons that a point is in, ascending: how many. They are written to `places`; where that is
// null, the first of them to `first`.
__device__ inline int polygons_of(const PolygonIndex& index, double x, double y, i64* places,
                                  int& first) {
    if (!(index.box[0] <= x && x <= index.box[2] && index.box[1] <= y && y <= index.box[3]))
        return 0;
    const i64 column = min2((i64)((x - index.grid[0]) * index.grid[2]), index.nx - 1);
    const i64 row = min2((i64)((y - index.grid[1]) * index.grid[3]), index.ny - 1);
    const int cell = index.cells[row * index.nx + column];
    if (cell == NOTHING) return 0;
    const int* codes = cell < NOTHING ? index.lists - 2 - cell : 0;
    const int several = codes ? *codes : 1;
    int found = 0;
    for (int n = 0; n < several; ++n) {
        const int code = codes ? codes[1 + n] : cell, k = code >> 1;
        if ((code & 1) && !is_within(index, k, x, y)) continue;
        if (places) places[found] = k;
        else if (found == 0) first = k;
        ++found;
    }
    return found;
}

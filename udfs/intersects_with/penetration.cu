// How far pairs of elements reach into each other: the search of penetration.py, operation by
// operation, with its cells (cells.py, cell_*.py, surface_cells.py, inside_cells.py, contraction.py).
// A warp searches a pair; the faces of an element, and the corners of a cell, are its lanes.
#include "intersects_with/point_in_solid.cuh"

typedef unsigned long long u64;

const int WARPS = 4;  // of a block
const int STACK = 256;
const int ROWS = 7;
const int PATCH = 32;  // also the lanes of a warp, each of which keeps one of them
const double ACCURATE = 0.9e-4;
const double ACCURATE_SHARE = 0.9e-2;
const double SLIGHT = 0.015625;
const double PULLED = 1e-4;
const double FLAT = 0.9999;
const double FLAT_METRES = 1e-6;
const double SHORT = 1e-5;
const i64 NO_FACE = -1, SEVERAL = -2;

// Three axes, and the box of something along them.
struct Frame {
    Vec axes[3];
    double low[3], high[3];
};

// What a warp looks at, in shared memory: a lane writes what is of its corner.
struct Cell {
    Vec corners[8];
    double rows[ROWS][8];  // distances of the corners from faces
    double mean[8];
    int n;  // of the corners: 3 of a triangle, 8 of a box
    int count;  // of the rows
};

// Let a lane write into the cell: not before all have read what was there, nor after they go on.
template <class T>
__device__ inline void put(T* places, int n, T value, int lane) {
    __syncwarp();
    if (lane < n) places[lane] = value;
    __syncwarp();
}

// What a search has found so far, and where it is.
struct Search {
    double reach, upper;
    i64 left;
    Vec last;  // of `distance_from`
    double last_distance;
};

__device__ inline double least_of_warp(double x) {
    for (int away = 16; away > 0; away /= 2) {
        double y = __shfl_xor_sync(ALL, x, away);
        x = y < x ? y : x;
    }
    return x;
}
__device__ inline double most_of_warp(double x) { return -least_of_warp(-x); }
__device__ inline Vec from_lane(Vec v, int from) {
    return {__shfl_sync(ALL, v.x, from), __shfl_sync(ALL, v.y, from), __shfl_sync(ALL, v.z, from)};
}

__device__ inline double accurate(double reach) {
    double part = ACCURATE_SHARE * reach;
    return reach + (part > ACCURATE ? part : ACCURATE);
}

__device__ inline Vec vertex(const Solids& s, i64 e, i64 f, int k) {
    return corner(s.vertices, s.vertex_starts[e] + s.faces[3 * f + k]);
}

__device__ inline Vec unit_normal(Vec a, Vec b, Vec c) {
    Vec n = cross(b - a, c - a);
    double size = sqrt(dot(n, n));
    return (size > 0.0 ? 1.0 / size : 0.0) * n;
}

// Call `visit` with the faces of the clusters whose boxes are wanted, in their order, one for each
// lane (-1 without one), until it says for the whole warp that this is enough.
template <class Wanted, class Visit>
__device__ inline void over_faces(const Solids& s, i64 e, int lane, Wanted wanted, Visit visit) {
    const i64 f0 = s.face_starts[e], f1 = s.face_starts[e + 1];
    const i64 first = s.cluster_starts[e], stop = s.cluster_starts[e + 1];
    for (i64 start = first; start < stop; start += 32) {
        bool near = start + lane < stop;
        if (near) near = wanted(box_at(s.clusters, start + lane));
        unsigned hits = __ballot_sync(ALL, near);
        while (hits) {
            i64 f = face_of_lane(hits, start, first, f0, f1, lane);
            if (visit(f < f1 ? f : -1)) return;
        }
    }
}

// ---------------------------------------------------------------- frames (cell_frames.py)

__device__ void along(const Solids& s, Vec u, i64 e, int lane, double& low, double& high) {
    low = INFINITE;
    high = -INFINITE;
    for (i64 v = s.vertex_starts[e] + lane; v < s.vertex_starts[e + 1]; v += 32) {
        double x = dot(u, corner(s.vertices, v));
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    low = least_of_warp(low);
    high = most_of_warp(high);
}

__device__ inline void upright(Frame& frame) {
    frame.axes[0] = {1.0, 0.0, 0.0};
    frame.axes[1] = {0.0, 1.0, 0.0};
    frame.axes[2] = {0.0, 0.0, 1.0};
}

__device__ __noinline__ void axes_of(const Solids& s, i64 e, int lane, Frame& frame) {
    double largest = 0.0;
    i64 at = s.face_starts[e + 1];
    for (i64 f = s.face_starts[e] + lane; f < s.face_starts[e + 1]; f += 32) {
        Vec a = vertex(s, e, f, 0), n = cross(vertex(s, e, f, 1) - a, vertex(s, e, f, 2) - a);
        double size = dot(n, n);
        if (size > largest) {
            largest = size;
            at = f;
        }
    }
    for (int away = 16; away > 0; away /= 2) {
        double size = __shfl_xor_sync(ALL, largest, away);
        i64 f = __shfl_xor_sync(ALL, at, away);
        if (size > largest || (size == largest && f < at)) {
            largest = size;
            at = f;
        }
    }
    const double* box = s.boxes + 6 * e;
    upright(frame);
    double room = 1.0, of_box = 1.0;
    if (largest > 0.0) {
        Vec a = vertex(s, e, at, 0), one = vertex(s, e, at, 1) - a, two = vertex(s, e, at, 2) - a;
        Vec n = cross(one, two), three = two - one, edge = one;
        double size = sqrt(dot(n, n));
        frame.axes[2] = {n.x / size, n.y / size, n.z / size};
        size = dot(one, one);
        if (dot(two, two) < size) {
            size = dot(two, two);
            edge = two;
        }
        if (dot(three, three) < size) {
            size = dot(three, three);
            edge = three;
        }
        size = sqrt(size);
        frame.axes[0] = {edge.x / size, edge.y / size, edge.z / size};
        frame.axes[1] = cross(frame.axes[2], frame.axes[0]);
        for (int k = 0; k < 3; ++k) {
            along(s, frame.axes[k], e, lane, frame.low[k], frame.high[k]);
            room *= frame.high[k] - frame.low[k];
            of_box *= box[3 + k] - box[k];
        }
    }
    if (largest == 0.0 || !(room < 0.99 * of_box)) {
        upright(frame);
        for (int k = 0; k < 3; ++k) {
            frame.low[k] = box[k];
            frame.high[k] = box[3 + k];
        }
    }
}

__device__ inline void shared_along(
    const Solids& s, Vec u, i64 a, i64 b, int lane, double& low, double& high) {
    double low_b, high_b;
    along(s, u, a, lane, low, high);
    along(s, u, b, lane, low_b, high_b);
    low = low_b > low ? low_b : low;
    high = high_b < high ? high_b : high;
}

__device__ __noinline__ void choose_frames(
    const Solids& s, i64 a, i64 b, int lane, Frame& common, Frame* own) {
    axes_of(s, a, lane, own[0]);
    axes_of(s, b, lane, own[1]);
    upright(common);
    double least = INFINITE;
    for (int choice = 0; choice < 3; ++choice) {
        const Frame& frame = choice == 0 ? common : own[choice - 1];
        double room = 1.0, low, high;
        for (int k = 0; k < 3; ++k) {
            shared_along(s, frame.axes[k], a, b, lane, low, high);
            room *= high > low ? high - low : 0.0;
        }
        if (choice == 0 || room < 0.99 * least) {
            least = room;
            for (int k = 0; k < 3; ++k) common.axes[k] = frame.axes[k];
        }
    }
    for (int k = 0; k < 3; ++k) {
        double low, high;
        shared_along(s, common.axes[k], a, b, lane, low, high);
        double slack = 1e-9 + 1e-12 * (fabs(low) + fabs(high));
        common.low[k] = low - slack;
        common.high[k] = high + slack;
    }
}

__device__ __noinline__ double distances_in_box(const Frame& own, Cell& cell, int lane) {
    double least = INFINITE, mine = 0.0;
    for (int axis = 0; axis < 3; ++axis) {
        const double low = own.low[axis], high = own.high[axis];
        double first = INFINITE, last = -INFINITE;
        for (int c = 0; c < cell.n; ++c) {
            double x = dot(own.axes[axis], cell.corners[c]);
            first = x < first ? x : first;
            last = x > last ? x : last;
        }
        int side = 0;
        double best = 0.5 * (high - low);
        if (last - low < best) {
            side = 1;
            best = last - low;
        }
        if (high - first < best) {
            side = 2;
            best = high - first;
        }
        if (best < least) {
            least = best;
            double x = dot(own.axes[axis], cell.corners[lane % 8]);
            mine = side == 0 ? best : (side == 1 ? x - low : high - x);
        }
    }
    put(cell.rows[0], cell.n, mine, lane);
    return least;
}

__device__ int cut(Vec* polygon, int n, const Frame& frame, int side) {
    Vec spare[10];
    const Vec u = frame.axes[side % 3];
    const double out = side < 3 ? -1.0 : 1.0;
    const double limit = out * (side < 3 ? frame.low[side] : frame.high[side - 3]);
    int kept = 0;
    for (int k = 0; k < n; ++k) {
        const Vec here = polygon[k], next = polygon[k + 1 < n ? k + 1 : 0];
        double p = out * dot(u, here) - limit, q = out * dot(u, next) - limit;
        if (p <= 0.0) spare[kept++] = here;
        if ((p <= 0.0) != (q <= 0.0)) spare[kept++] = here + (p / (p - q)) * (next - here);
    }
    for (int k = 0; k < kept; ++k) polygon[k] = spare[k];
    return kept;
}

// ---------------------------------------------------------------- triangles (cell_crossings.py)

__device__ inline Vec centre_of(const Cell& cell, double& radius) {
    Vec p = {0.0, 0.0, 0.0};
    for (int k = 0; k < cell.n; ++k) p = p + cell.corners[k];
    const double n = cell.n;
    p = {p.x / n, p.y / n, p.z / n};
    radius = 0.0;
    for (int k = 0; k < cell.n; ++k) {
        Vec d = cell.corners[k] - p;
        double size = dot(d, d);
        radius = size > radius ? size : radius;
    }
    radius = sqrt(radius);
    return p;
}

__device__ __noinline__ i64 longest_crossing(const Solids& s, const Cell& cell, i64 e, int lane) {
    const Vec* corners = cell.corners;
    Vec m = cross(corners[1] - corners[0], corners[2] - corners[0]);
    double size = sqrt(dot(m, m));
    if (size == 0.0) return -1;
    m = {m.x / size, m.y / size, m.z / size};
    double radius, most = 0.0;
    const Vec p = centre_of(cell, radius);
    const double slack = 1e-9 * (1.0 + radius);
    i64 found = s.face_starts[e + 1];
    bool any = false;
    auto wanted = [&](const Box& b) {
        return !(gap(p.x, b.low.x, b.high.x) > radius || gap(p.y, b.low.y, b.high.y) > radius ||
                 gap(p.z, b.low.z, b.high.z) > radius);
    };
    over_faces(s, e, lane, wanted, [&](i64 f) {
        if (f < 0) return false;
        const Vec face[3] = {vertex(s, e, f, 0), vertex(s, e, f, 1), vertex(s, e, f, 2)};
        const Vec n = unit_normal(face[0], face[1], face[2]);
        Vec u = cross(m, n);  // along the line of both planes
        double size = sqrt(dot(u, u));
        if (size < 1e-9) return false;
        u = {u.x / size, u.y / size, u.z / size};
        double begins = INFINITE, ends = -INFINITE, low = INFINITE, high = -INFINITE;
        for (int k = 0; k < 3; ++k) {
            Vec x = face[k] - p;
            double d = dot(m, x), at = dot(u, x);
            low = d < low ? d : low;
            high = d > high ? d : high;
            if (fabs(d) <= slack) {
                begins = at < begins ? at : begins;
                ends = at > ends ? at : ends;
            }
            x = face[k < 2 ? k + 1 : 0] - p;
            double there = dot(m, x);
            if ((d < 0.0) != (there < 0.0)) {
                at += d / (d - there) * (dot(u, x) - at);
                begins = at < begins ? at : begins;
                ends = at > ends ? at : ends;
            }
        }
        if (low > slack || high < -slack) return false;
        low = INFINITE;
        high = -INFINITE;
        double starts = INFINITE, stops = -INFINITE;
        for (int k = 0; k < 3; ++k) {
            const Vec next = corners[k < 2 ? k + 1 : 0];
            double d = dot(n, corners[k] - face[0]), at = dot(u, corners[k] - p);
            low = d < low ? d : low;
            high = d > high ? d : high;
            double there = dot(n, next - face[0]);
            if ((d < 0.0) != (there < 0.0)) {
                at += d / (d - there) * (dot(u, next - p) - at);
                starts = at < starts ? at : starts;
                stops = at > stops ? at : stops;
            }
        }
        if (low >= -slack || high <= slack) return false;
        double length = (ends < stops ? ends : stops) - (begins > starts ? begins : starts);
        if (length <= slack) return false;
        any = true;
        if (length > most && length > 0.5 * (stops - starts)) {
            most = length;
            found = f;
        }
        return false;
    });
    for (int away = 16; away > 0; away /= 2) {
        double length = __shfl_xor_sync(ALL, most, away);
        i64 f = __shfl_xor_sync(ALL, found, away);
        if (length > most || (length == most && f < found)) {
            most = length;
            found = f;
        }
    }
    if (most > 0.0) return found;
    return __any_sync(ALL, any) ? -2 : -1;
}

__device__ inline void push(Vec* stack, int at, Vec a, Vec b, Vec c, int lane) {
    if (lane != 0) return;
    stack[3 * at] = a;
    stack[3 * at + 1] = b;
    stack[3 * at + 2] = c;
}

__device__ int cut_triangle(
    const Solids& s, i64 f, i64 e, const Cell& cell, Vec* stack, int count, int lane) {
    const Vec origin = vertex(s, e, f, 0);
    const Vec n = unit_normal(origin, vertex(s, e, f, 1), vertex(s, e, f, 2));
    double d[3];
    for (int k = 0; k < 3; ++k) d[k] = dot(n, cell.corners[k] - origin);
    int at = 0;
    for (int k = 0; k < 3; ++k)
        if ((d[k] < 0.0) != (d[(k + 1) % 3] < 0.0) && (d[k] < 0.0) != (d[(k + 2) % 3] < 0.0)) at = k;
    const int j = (at + 1) % 3, k = (at + 2) % 3;
    const Vec x = cell.corners[at], one = cell.corners[j], two = cell.corners[k];
    const Vec y = x + (d[at] / (d[at] - d[j])) * (one - x);
    const Vec z = x + (d[at] / (d[at] - d[k])) * (two - x);
    push(stack, count, x, y, z, lane);
    push(stack, count + 1, y, one, two, lane);
    push(stack, count + 2, y, two, z, lane);
    return count + 3;
}

__device__ int divide_triangle(const Cell& cell, Vec* stack, int count, int lane) {
    double longest = -1.0;
    int at = 0;
    for (int k = 0; k < 3; ++k) {
        Vec edge = cell.corners[k < 2 ? k + 1 : 0] - cell.corners[k];
        double size = dot(edge, edge);
        if (size > longest) {
            longest = size;
            at = k;
        }
    }
    const Vec i = cell.corners[at], j = cell.corners[(at + 1) % 3], k = cell.corners[(at + 2) % 3];
    const Vec middle = 0.5 * (i + j);
    push(stack, count, i, middle, k, lane);
    push(stack, count + 1, middle, j, k, lane);
    return count + 2;
}

// ---------------------------------------------------------------- bounds (cell_bounds.py)

__device__ double distance_from(const Solids& s, Vec p, i64 e, Search& search, int lane, i64& f) {
    Vec way = p - search.last, q;
    double bound = (search.last_distance + sqrt(dot(way, way))) * (1.0 + 1e-9) + 1e-9;
    search.last = p;
    search.last_distance = sqrt(nearest(s, p, bound * bound, e, lane, q, f));
    return search.last_distance;
}

__device__ inline void forget(Search& search) {
    search.last = {0.0, 0.0, 0.0};
    search.last_distance = INFINITE;
}

__device__ __noinline__ int lower_mean(Cell& cell, int m, int lane) {
    const double* mean = cell.mean;
    const int n = cell.n, k = lane % 8;
    int at = 0;
    for (int turn = 0; turn < (m > 2 ? 3 : 1); ++turn)
        for (int r = m - 1; r >= 0; --r) {
            const double* row = cell.rows[r];
            double share_of = 0.0;
            at = 0;
            for (int k = 1; k < n; ++k)
                if (mean[k] > mean[at] ||
                    (mean[k] == mean[at] && row[k] - mean[k] > row[at] - mean[at]))
                    at = k;
            while (row[at] < mean[at] && share_of < 1.0) {
                double slope = row[at] - mean[at], step = 1.0;
                int then = at;
                for (int k = 0; k < n; ++k) {
                    double steeper = row[k] - mean[k] - slope;
                    if (steeper > 0.0) {
                        double there = (mean[at] - mean[k]) / steeper;
                        if (there < step ||
                            (there == step && row[k] - mean[k] > row[then] - mean[then])) {
                            step = there;
                            then = k;
                        }
                    }
                }
                share_of = step > share_of ? step : share_of;
                if (then == at) break;
                at = then;
            }
            put(cell.mean, n, mean[k] + share_of * (row[k] - mean[k]), lane);
        }
    at = 0;
    for (int k = 1; k < n; ++k)
        if (mean[k] > mean[at]) at = k;
    return at;
}

__device__ bool apart_in_plane(Vec i, Vec j, Vec n, const Cell& cell) {
    Vec u = j - i;
    double length = sqrt(dot(u, u));
    if (length == 0.0) return true;
    u = {u.x / length, u.y / length, u.z / length};
    Vec w = cross(n, u);  // to the left, where the face is
    double left = INFINITE, right = -INFINITE, low = INFINITE, high = -INFINITE;
    for (int c = 0; c < cell.n; ++c) {
        Vec x = cell.corners[c] - i;
        double across = dot(w, x), at = dot(u, x);
        left = across < left ? across : left;
        right = across > right ? across : right;
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
    double slack = 1e-9 * (1.0 + length);
    return left >= -slack || right <= slack || low >= length - slack || high <= slack;
}

__device__ inline bool same(Vec a, Vec b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

__device__ __noinline__ double covered(
    const Solids& s, i64 f, Vec n, const Cell& cell, i64 e, int lane) {
    const Vec origin = vertex(s, e, f, 0);
    Vec low = {INFINITE, INFINITE, INFINITE}, high = {-INFINITE, -INFINITE, -INFINITE};
    for (int c = 0; c < cell.n; ++c) {
        Vec x = cell.corners[c];
        x = x - dot(n, x - origin) * n;
        low = {x.x < low.x ? x.x : low.x, x.y < low.y ? x.y : low.y, x.z < low.z ? x.z : low.z};
        high = {x.x > high.x ? x.x : high.x, x.y > high.y ? x.y : high.y,
                x.z > high.z ? x.z : high.z};
    }
    const double loose =
        1e-9 + 1e-5 * max3(high.x - low.x, high.y - low.y, high.z - low.z);
    int count = 0;
    i64 near = 0;  // that of this lane
    double rough = 0.0;
    auto wanted = [&](const Box& b) {
        return !(b.low.x > high.x + loose || b.high.x < low.x - loose || b.low.y > high.y + loose ||
                 b.high.y < low.y - loose || b.low.z > high.z + loose || b.high.z < low.z - loose);
    };
    over_faces(s, e, lane, wanted, [&](i64 g) {
        double away = 0.0;
        bool is_flat = g >= 0;
        if (is_flat) {
            const Vec a = vertex(s, e, g, 0), b = vertex(s, e, g, 1), c = vertex(s, e, g, 2);
            double at = fabs(dot(n, a - origin));
            away = at > away ? at : away;
            at = fabs(dot(n, b - origin));
            away = at > away ? at : away;
            at = fabs(dot(n, c - origin));
            away = at > away ? at : away;
            is_flat = !(away > loose) && !(dot(unit_normal(a, b, c), n) < FLAT);
        }
        unsigned flats = __ballot_sync(ALL, is_flat);
        if (is_flat) rough = away > rough ? away : rough;
        if (count + __popc(flats) > PATCH) {
            count = PATCH + 1;
            return true;
        }
        for (; flats; flats &= flats - 1, ++count) {
            i64 taken = __shfl_sync(ALL, g, __ffs(flats) - 1);
            if (lane == count) near = taken;
        }
        return false;
    });
    if (count > PATCH) return -1.0;
    const bool mine = lane < count;
    for (int side = 0; side < 3; ++side) {
        Vec i = origin, j = origin;
        if (mine) {
            i = vertex(s, e, near, side);
            j = vertex(s, e, near, (side + 1) % 3);
        }
        bool needed = mine && !apart_in_plane(i, j, n, cell);
        for (int r = 0; r < count && __any_sync(ALL, needed); ++r) {
            const i64 h = __shfl_sync(ALL, near, r);
            const Vec face[3] = {vertex(s, e, h, 0), vertex(s, e, h, 1), vertex(s, e, h, 2)};
            for (int k = 0; k < 3; ++k)
                if (same(face[k], j) && same(face[(k + 1) % 3], i)) needed = false;
        }
        if (__any_sync(ALL, needed)) return -1.0;
    }
    return most_of_warp(rough);
}

__device__ __noinline__ void distances_from(
    const Solids& s, i64 f, Vec p, Cell& cell, double* row, i64 e, int lane) {
    const Vec a = vertex(s, e, f, 0), b = vertex(s, e, f, 1), c = vertex(s, e, f, 2);
    const Vec n = unit_normal(a, b, c);
    const bool mine = lane < cell.n;
    double high = 0.0, d = 0.0;
    Vec q;
    if (mine) {
        d = sqrt(distance_of_point(cell.corners[lane], a, b, c, q));
        high = fabs(dot(n, cell.corners[lane] - a));
    }
    const bool is_flat = __all_sync(ALL, !(mine && d > high * (1.0 + 1e-9) + 1e-9));
    if (!is_flat) {
        double d2 = distance_of_point(p, a, b, c, q);
        double of_p = fabs(dot(n, p - a));
        if (!(sqrt(d2) > of_p * (1.0 + 1e-9) + 1e-9)) {
            double rough = covered(s, f, n, cell, e, lane);
            if (!(rough < 0.0)) {
                high = rough + high;
                d = high < d ? high : d;
            }
        }
    }
    put(row, cell.n, d, lane);
}

__device__ __noinline__ double bound_in_cell(
    const Solids& s, Cell& cell, i64 e, i64 o, const Frame& own, Search& search, int lane) {
    const bool is_box = cell.n > 3;
    double radius;
    const Vec m = centre_of(cell, radius);
    Vec p = m;
    i64 f;
    double d = distance_from(s, p, e, search, lane, f);
    bool inside = is_inside(s, p, e, lane);
    if (!inside && d > radius) return -1.0;
    if (!inside && !is_box && longest_crossing(s, cell, e, lane) == -1)
        return d <= 1e-9 * (1.0 + radius) ? 0.0 : -1.0;
    if (is_box) inside = inside && is_inside(s, p, o, lane);
    if (inside && d > search.reach) search.reach = d;
    double upper = d + radius;
    const double most = distances_in_box(own, cell, lane);
    upper = most < upper ? most : upper;
    if (upper <= accurate(search.reach)) return upper;
    put(cell.mean, cell.n, cell.rows[0][lane % 8], lane);
    for (int r = 1; r < ROWS; ++r) {
        distances_from(s, f, p, cell, cell.rows[r], e, lane);
        const int at = lower_mean(cell, r + 1, lane);
        cell.count = r + 1;
        const double before = upper;
        if (cell.mean[at] < upper) upper = cell.mean[at];
        if (upper <= accurate(search.reach) || (r > 1 && upper > 0.75 * before)) break;
        // at the corner itself several faces may be nearest
        p = cell.corners[at] + PULLED * (m - cell.corners[at]);
        d = distance_from(s, p, e, search, lane, f);
        if (d > search.reach && is_inside(s, p, e, lane) && (!is_box || is_inside(s, p, o, lane)))
            search.reach = d;
        if (cell.mean[at] - d <= 0.1 * (accurate(search.reach) - search.reach)) break;
    }
    return upper;
}

// ---------------------------------------------------------------- surfaces (surface_cells.py)

__device__ inline int cut_face(const Solids& s, i64 o, i64 f, const Frame& frame, Vec* polygon) {
    for (int k = 0; k < 3; ++k) polygon[k] = vertex(s, o, f, k);
    int n = 3;
    for (int side = 0; side < 6 && n >= 3; ++side) n = cut(polygon, n, frame, side);
    return n;
}

__device__ __noinline__ void over_surface(
    const Solids& s, i64 e, i64 o, const Frame& own, const Frame& frame, double* box, Cell& cell,
    Search& search, Vec* stack, int lane) {
    forget(search);
    __syncwarp();
    cell.n = 3;
    Vec polygon[10];
    const i64 f0 = s.face_starts[o], f1 = s.face_starts[o + 1];
    for (i64 start = f0; start < f1; start += 32) {
        bool meets = start + lane < f1 && cut_face(s, o, start + lane, frame, polygon) >= 3;
        for (unsigned hits = __ballot_sync(ALL, meets); hits; hits &= hits - 1) {
            const int n = cut_face(s, o, start + __ffs(hits) - 1, frame, polygon);
            for (int last = n - 1; last > 1; --last) {  // a fan of triangles
                int count = 1;
                push(stack, 0, polygon[0], polygon[last - 1], polygon[last], lane);
                while (count > 0) {
                    --count;
                    __syncwarp();
                    put(cell.corners, 3, stack[3 * count + lane % 3], lane);
                    const double bound = bound_in_cell(s, cell, e, o, own, search, lane);
                    if (--search.left <= 0) return;
                    if (bound > accurate(search.reach)) {
                        const i64 face = longest_crossing(s, cell, e, lane);
                        if (count + 3 <= STACK) {
                            count = face >= 0 ? cut_triangle(s, face, e, cell, stack, count, lane)
                                              : divide_triangle(cell, stack, count, lane);
                            continue;
                        }
                        search.upper = bound > search.upper ? bound : search.upper;
                    }
                    if (bound >= 0.0)
                        for (int c = 0; c < 3; ++c)
                            for (int k = 0; k < 3; ++k) {
                                double x = dot(frame.axes[k], cell.corners[c]);
                                box[k] = x < box[k] ? x : box[k];
                                box[3 + k] = x > box[3 + k] ? x : box[3 + k];
                            }
                }
            }
        }
    }
}

// ---------------------------------------------------------------- boxes (contraction.py)

__device__ inline bool beyond(double one, double two, double three, double limit) {
    return (one >= limit && two >= limit && three >= limit) ||
           (one <= -limit && two <= -limit && three <= -limit);
}

__device__ inline bool line_apart(double px, double py, double rx, double ry, double dx, double dy,
                                  double hx, double hy, double slack) {
    double length = sqrt(dx * dx + dy * dy);
    if (length < SHORT) return false;
    double at = dx * py - dy * px, other = dx * ry - dy * rx;
    double limit = fabs(dx) * hy + fabs(dy) * hx - slack * length;
    return (at >= limit && other >= limit) || (at <= -limit && other <= -limit);
}

__device__ inline bool edge_apart(Vec p, Vec q, Vec r, const double* half, double slack) {
    Vec d = q - p;
    return line_apart(p.y, p.z, r.y, r.z, d.y, d.z, half[1], half[2], slack) ||
           line_apart(p.z, p.x, r.z, r.x, d.z, d.x, half[2], half[0], slack) ||
           line_apart(p.x, p.y, r.x, r.y, d.x, d.y, half[0], half[1], slack);
}

__device__ inline Vec in_frame(Vec v, Vec p, const Frame& frame) {
    Vec x = v - p;
    return {dot(frame.axes[0], x), dot(frame.axes[1], x), dot(frame.axes[2], x)};
}

__device__ __noinline__ i64 face_through(
    const Solids& s, Vec p, const double* half, i64 e, const Frame& frame, int lane, double& away) {
    const Vec* axes = frame.axes;
    const double hx = half[0] * fabs(axes[0].x) + half[1] * fabs(axes[1].x) + half[2] * fabs(axes[2].x);
    const double hy = half[0] * fabs(axes[0].y) + half[1] * fabs(axes[1].y) + half[2] * fabs(axes[2].y);
    const double hz = half[0] * fabs(axes[0].z) + half[1] * fabs(axes[1].z) + half[2] * fabs(axes[2].z);
    const double slack = 1e-9 + 1e-14 * (fabs(p.x) + fabs(p.y) + fabs(p.z));
    i64 found = NO_FACE;
    bool several = false;
    Vec normal = {0.0, 0.0, 0.0};
    double first_high = 0.0, farthest = slack;
    auto wanted = [&](const Box& b) {
        return !(b.low.x - p.x > hx || p.x - b.high.x > hx || b.low.y - p.y > hy ||
                 p.y - b.high.y > hy || b.low.z - p.z > hz || p.z - b.high.z > hz);
    };
    over_faces(s, e, lane, wanted, [&](i64 f) {
        Vec one = p, two = p, three = p, m = p;
        double high = 0.0;
        bool passes = f >= 0;
        if (passes) {
            const Vec a = vertex(s, e, f, 0), b = vertex(s, e, f, 1), c = vertex(s, e, f, 2);
            one = in_frame(a, p, frame);
            two = in_frame(b, p, frame);
            three = in_frame(c, p, frame);
            passes = !(beyond(one.x, two.x, three.x, half[0] - slack) ||
                       beyond(one.y, two.y, three.y, half[1] - slack) ||
                       beyond(one.z, two.z, three.z, half[2] - slack));
            if (passes) {
                const Vec n = unit_normal(a, b, c);
                m = {dot(axes[0], n), dot(axes[1], n), dot(axes[2], n)};
                high = dot(m, one);
                double size = half[0] * fabs(m.x) + half[1] * fabs(m.y) + half[2] * fabs(m.z);
                passes = !(fabs(high) >= size - slack || edge_apart(one, two, three, half, slack) ||
                           edge_apart(two, three, one, half, slack) ||
                           edge_apart(three, one, two, half, slack));
            }
        }
        const unsigned all = __ballot_sync(ALL, passes);
        if (found == NO_FACE && all) {
            const int from = __ffs(all) - 1;
            found = __shfl_sync(ALL, f, from);
            first_high = __shfl_sync(ALL, high, from);
            normal = from_lane(m, from);
            if (lane == from) passes = false;
        }
        bool is_far = false;
        if (passes) {
            double far = max3(fabs(dot(normal, one) - first_high), fabs(dot(normal, two) - first_high),
                              fabs(dot(normal, three) - first_high));
            is_far = far > FLAT_METRES;
            farthest = far + slack > farthest ? far + slack : farthest;
        }
        several = __any_sync(ALL, is_far);
        return several;
    });
    away = most_of_warp(farthest);
    return several ? SEVERAL : found;
}

// What of a box, low and high along the axes of the frame, is inside an element.
__device__ __noinline__ bool contract(
    const Solids& s, i64 e, double* box, const Frame& frame, int lane) {
    const Vec* axes = frame.axes;
    double middle[3], half[3], slope[3], place[3], away;
    for (int k = 0; k < 3; ++k) {
        middle[k] = 0.5 * (box[k] + box[3 + k]);
        half[k] = 0.5 * (box[3 + k] - box[k]);
    }
    auto point = [&](const double* at) {
        return Vec{at[0] * axes[0].x + at[1] * axes[1].x + at[2] * axes[2].x,
                   at[0] * axes[0].y + at[1] * axes[1].y + at[2] * axes[2].y,
                   at[0] * axes[0].z + at[1] * axes[1].z + at[2] * axes[2].z};
    };
    const Vec p = point(middle);
    const i64 f = face_through(s, p, half, e, frame, lane, away);
    if (f == NO_FACE) return is_inside(s, p, e, lane);
    if (f == SEVERAL) return true;
    const Vec origin = vertex(s, e, f, 0);
    const Vec n = unit_normal(origin, vertex(s, e, f, 1), vertex(s, e, f, 2));
    const double height_of = dot(n, p - origin);
    double reach = 0.0;
    for (int k = 0; k < 3; ++k) {
        slope[k] = dot(n, axes[k]);
        reach += fabs(slope[k]) * half[k];
    }
    for (int way = 0; way < 2; ++way) {
        const double side = way == 0 ? 1.0 : -1.0;
        const double far = side * height_of + reach - away;
        if (far <= away) continue;
        // half way from the plane to the corner that is farthest from it
        const double part = side * (1.0 - 0.5 * far / reach);
        for (int k = 0; k < 3; ++k) {
            double step = slope[k] >= 0.0 ? part * half[k] : -part * half[k];
            place[k] = middle[k] + step;
        }
        if (is_inside(s, point(place), e, lane)) continue;
        for (int k = 0; k < 3; ++k) {
            const double steep = side * slope[k];
            const double room = away - side * height_of + reach - fabs(steep) * half[k];
            if (steep > 1e-6) {
                double end = middle[k] + room / steep;
                box[3 + k] = end < box[3 + k] ? end : box[3 + k];
            } else if (steep < -1e-6) {
                double end = middle[k] + room / steep;
                box[k] = end > box[k] ? end : box[k];
            }
            if (box[3 + k] < box[k]) return false;
        }
    }
    return true;
}

// ---------------------------------------------------------------- insides (inside_cells.py)

__device__ int axis_to_divide(const Cell& cell, const double* box) {
    double most = -1.0;
    int axis = 0;
    for (int k = 0; k < 3; ++k) {
        double differs = SLIGHT * (box[3 + k] - box[k]);
        for (int r = 0; r < cell.count; ++r)
            for (int c = 0; c < 8; ++c)
                if ((c & (1 << k)) == 0) {
                    double d = fabs(cell.rows[r][c | (1 << k)] - cell.rows[r][c]);
                    differs = d > differs ? d : differs;
                }
        if (differs > most) {
            most = differs;
            axis = k;
        }
    }
    return axis;
}

__device__ __noinline__ bool has_no_maximum(
    const Solids& s, const Cell& cell, i64 e, double bound, Search& search, int lane) {
    double radius;
    i64 unused;
    const Vec p = centre_of(cell, radius);
    const double d = distance_from(s, p, e, search, lane, unused);
    double far = d + 2.0 * radius;
    if (bound + radius < far) far = bound + radius;
    far = far * (1.0 + 1e-9);
    Vec mine = {0.0, 0.0, 0.0};  // the normal that this lane keeps
    int count = 0;
    bool may_have = false;
    auto wanted = [&](const Box& b) {
        double x = gap(p.x, b.low.x, b.high.x), y = gap(p.y, b.low.y, b.high.y);
        double z = gap(p.z, b.low.z, b.high.z);
        return !(x * x + y * y + z * z > far * far);
    };
    over_faces(s, e, lane, wanted, [&](i64 f) {
        bool counts = f >= 0, faces_away = false;
        Vec n = p, q;
        if (counts) {
            const Vec a = vertex(s, e, f, 0), b = vertex(s, e, f, 1), c = vertex(s, e, f, 2);
            counts = !(distance_of_point(p, a, b, c, q) > far * far);
            if (counts) {
                const double inwards = -s.side[e];
                n = inwards * unit_normal(a, b, c);
                double highs[8], lowest = INFINITE;
                for (int k = 0; k < 8; ++k) {
                    highs[k] = dot(n, cell.corners[k] - a);
                    lowest = highs[k] < lowest ? highs[k] : lowest;
                }
                for (int r = 0; r <= cell.count && counts; ++r) {
                    const double* row = r < cell.count ? cell.rows[r] : cell.mean;
                    bool nearer = true;
                    for (int k = 0; k < 8; ++k)
                        if (highs[k] <= row[k] + 1e-7 * (1.0 + radius)) nearer = false;
                    counts = !nearer;
                }
                faces_away = counts && lowest < -1e-9 * (1.0 + radius);
            }
        }
        may_have = __any_sync(ALL, faces_away);
        if (may_have) return true;
        counts = counts && !(n.x == 0.0 && n.y == 0.0 && n.z == 0.0);
        for (unsigned left = __ballot_sync(ALL, counts); left; left &= left - 1) {
            const Vec other = from_lane(n, __ffs(left) - 1);
            if (__any_sync(ALL, lane < count && dot(mine, other) > 1.0 - 1e-14)) continue;
            may_have = count == PATCH;
            if (may_have) return true;
            if (lane == count) mine = other;
            ++count;
        }
        return false;
    });
    if (may_have) return false;
    // a direction that all of them have in common, by the perceptron's rule
    Vec u = {0.0, 0.0, 0.0};
    for (int turn = 0; turn < 2 * PATCH; ++turn) {
        const double at = lane < count ? dot(mine, u) : INFINITE;
        const double least = least_of_warp(at);
        if (least > 1e-3) return true;
        const int from = __ffs(__ballot_sync(ALL, lane < count && at == least)) - 1;
        u = u + from_lane(mine, from);
    }
    return false;
}

__device__ __noinline__ void over_inside(
    const Solids& s, i64 e, i64 o, const Frame& own, const Frame& frame, const double* whole,
    Cell& cell, Search& search, Vec* stack, int lane) {
    forget(search);
    for (int k = 0; k < 3; ++k)
        if (!(whole[3 + k] > whole[k])) return;
    __syncwarp();
    cell.n = 8;
    auto wait = [&](int at, const double* box) {
        const Vec low = {box[0], box[1], box[2]};
        push(stack, at, low, {box[3], box[4], box[5]}, low, lane);
    };
    wait(0, whole);
    int count = 1;
    while (count > 0) {
        --count;
        if (--search.left <= 0) return;
        __syncwarp();
        const Vec low = stack[3 * count], high = stack[3 * count + 1];
        __syncwarp();
        double box[6] = {low.x, low.y, low.z, high.x, high.y, high.z};
        if (!contract(s, e, box, frame, lane) || !contract(s, o, box, frame, lane)) continue;
        const double u = box[lane & 1 ? 3 : 0], v = box[lane & 2 ? 4 : 1], w = box[lane & 4 ? 5 : 2];
        const Vec *x = frame.axes, *y = x + 1, *z = x + 2;
        const Vec corner = {u * x->x + v * y->x + w * z->x, u * x->y + v * y->y + w * z->y,
                            u * x->z + v * y->z + w * z->z};
        put(cell.corners, 8, corner, lane);
        const double bound = bound_in_cell(s, cell, e, o, own, search, lane);
        if (bound <= accurate(search.reach) || has_no_maximum(s, cell, e, bound, search, lane))
            continue;
        if (count + 2 > STACK) {
            search.upper = bound > search.upper ? bound : search.upper;
            continue;
        }
        const int axis = axis_to_divide(cell, box);
        const double middle = 0.5 * (box[axis] + box[3 + axis]), end = box[3 + axis];
        box[3 + axis] = middle;
        wait(count, box);
        box[axis] = middle;
        box[3 + axis] = end;
        wait(count + 1, box);
        count += 2;
    }
}

// ---------------------------------------------------------------- pairs (penetration.py)

// Each warp takes one pair after the other and finds its penetration.
// thread   a lane of a warp; any number of blocks is right
// reads    the elements of the pair, ordered by `order_pairs`
// writes   found[p], the penetration and 1 where it may be larger; NaN where more than `most` cells
//          would be needed: there the host goes on
// races    none: a warp writes only what is of its pair, and its own stack
extern "C" __global__ void __launch_bounds__(32 * WARPS, 4) penetrations(
    const Solids* solids, const int* pairs_a, const int* pairs_b, i64 pairs, const double* measures,
    const double* floors, i64 most, u64* next, Vec* stacks, double* found) {
    __shared__ Cell cells[WARPS];
    const int lane = threadIdx.x % 32;
    Cell& cell = cells[threadIdx.x / 32];
    Vec* stack = stacks + (blockIdx.x * (i64)WARPS + threadIdx.x / 32) * (3 * STACK);
    const Solids& s = *solids;
    for (;;) {
        u64 p = 0;
        if (lane == 0) p = atomicAdd(next, 1ull);
        p = __shfl_sync(ALL, p, 0);
        if (p >= (u64)pairs) return;
        const i64 a = pairs_a[p], b = pairs_b[p];
        Frame common, own[2];
        choose_frames(s, a, b, lane, common, own);
        Search search = {floors[p], 0.0, most, {0.0, 0.0, 0.0}, 0.0};
        const Vec seed = {measures[5 * p + 2], measures[5 * p + 3], measures[5 * p + 4]};
        if (is_inside(s, seed, a, lane) && is_inside(s, seed, b, lane))
            for (int k = 0; k < 2; ++k) {
                Vec q;
                double d = sqrt(nearest(s, seed, INFINITE, k == 0 ? a : b, lane, q));
                if (d > search.reach) search.reach = d;
            }
        double box[6] = {INFINITE, INFINITE, INFINITE, -INFINITE, -INFINITE, -INFINITE};
        for (int way = 0; way < 4 && search.left > 0; ++way) {
            const i64 e = way % 2 == 0 ? a : b, o = way % 2 == 0 ? b : a;
            if (way < 2) over_surface(s, e, o, own[way], common, box, cell, search, stack, lane);
            else over_inside(s, e, o, own[way - 2], common, box, cell, search, stack, lane);
        }
        const double enough = accurate(search.reach);
        if (lane == 0) {
            found[2 * p] = search.left > 0 ? search.reach : __longlong_as_double(0x7FF8000000000000ll);
            found[2 * p + 1] = search.upper > enough ? 1.0 : 0.0;
        }
        __syncwarp();
    }
}

// The neighbours of points, exact: the searches of neighbours.py, one query by one thread.
#pragma once

typedef long long i64;

const int ROOM = 64;  // cells that wait in a stack

// Points in the order of a k-d tree, as `Neighbours` of neighbours.py has them.
struct Tree {
    const double* points;
    const int* order;
    const double* boxes;
    const int* lowest;
    i64 n, levels;
};

// The k nearest points of a query so far, by distance: entry j is at [j * stride].
struct Nearest {
    double* squared;
    int* at;  // places in the order of the tree, -1 for none
    i64 stride, k;
};

__device__ inline double larger(double a, double b) { return a > b ? a : b; }

// The squared distance of a box, which rounds to no more than that of a point in it.
__device__ inline double squared_to_box(const Tree& t, i64 node, const double* p) {
    const double* box = t.boxes + 6 * node;
    const double dx = larger(larger(box[0] - p[0], p[0] - box[3]), 0.0);
    const double dy = larger(larger(box[1] - p[1], p[1] - box[4]), 0.0);
    const double dz = larger(larger(box[2] - p[2], p[2] - box[5]), 0.0);
    return dx * dx + dy * dy + dz * dz;
}

__device__ inline double squared_to_point(const Tree& t, i64 i, const double* p) {
    const double* q = t.points + 3 * i;
    const double dx = q[0] - p[0], dy = q[1] - p[1], dz = q[2] - p[2];
    return dx * dx + dy * dy + dz * dz;
}

// Where the cell j of a level begins.
__device__ inline i64 first_of(i64 n, i64 level, i64 j) { return j * n >> level; }

// Finds the k nearest points; k is no more than n. A cell is left out if none of it can be nearer.
__device__ inline void find_nearest(const Tree& t, const double* p, Nearest& found) {
    const i64 leaves = (1ll << t.levels) - 1, stride = found.stride, last = (found.k - 1) * stride;
    const double NOTHING = __longlong_as_double(0x7FF0000000000000ll);  // infinity
    for (i64 j = 0; j <= last; j += stride) {
        found.squared[j] = NOTHING;
        found.at[j] = -1;
    }
    double limit = NOTHING;  // distance and row of the last in the list
    i64 limit_row = t.n;
    int waiting[ROOM], depth = 1;
    double distances[ROOM];
    waiting[0] = 0;
    distances[0] = 0.0;
    while (depth > 0) {
        --depth;
        i64 node = waiting[depth];
        double distance = distances[depth];
        for (;;) {
            if (distance > limit || (distance == limit && t.lowest[node] > limit_row)) break;
            if (node < leaves) {
                i64 other = 2 * node + 2;
                node = 2 * node + 1;
                distance = squared_to_box(t, node, p);
                double farther = squared_to_box(t, other, p);
                if (farther < distance ||
                    (farther == distance && t.lowest[other] < t.lowest[node])) {
                    const i64 before = node;
                    node = other;
                    other = before;
                    const double nearer = farther;
                    farther = distance;
                    distance = nearer;
                }
                waiting[depth] = (int)other;
                distances[depth] = farther;
                ++depth;
                continue;
            }
            const i64 stop = first_of(t.n, t.levels, node - leaves + 1);
            for (i64 i = first_of(t.n, t.levels, node - leaves); i < stop; ++i) {
                const double d = squared_to_point(t, i, p);
                if (d > limit) continue;
                const int row = t.order[i];
                if (d == limit && row > limit_row) continue;
                i64 j = last;
                while (j > 0) {
                    const double before = found.squared[j - stride];
                    const int at = found.at[j - stride];
                    if (!(before > d || (before == d && (at < 0 || t.order[at] > row)))) break;
                    found.squared[j] = before;
                    found.at[j] = at;
                    j -= stride;
                }
                found.squared[j] = d;
                found.at[j] = (int)i;
                limit = found.squared[last];
                if (found.at[last] >= 0) limit_row = t.order[found.at[last]];
            }
            break;
        }
    }
}

// Calls use(place, squared distance) for the points that were found, the nearest first.
struct EachNearest {
    const Nearest& found;

    template <typename Use>
    __device__ void operator()(Use use) const {
        for (i64 j = 0; j < found.k; ++j)
            use((i64)found.at[j * found.stride], found.squared[j * found.stride]);
    }
};

// The same for all points within a squared distance of a place, in the order of the tree.
struct EachWithin {
    const Tree& t;
    const double* p;
    double limit;

    template <typename Use>
    __device__ void operator()(Use use) const {
        const i64 leaves = (1ll << t.levels) - 1;
        int waiting[ROOM], depth = 1;
        waiting[0] = 0;
        while (depth > 0) {
            --depth;
            const i64 node = waiting[depth];
            if (squared_to_box(t, node, p) > limit) continue;
            if (node < leaves) {
                waiting[depth] = (int)(2 * node + 2);
                waiting[depth + 1] = (int)(2 * node + 1);
                depth += 2;
                continue;
            }
            const i64 stop = first_of(t.n, t.levels, node - leaves + 1);
            for (i64 i = first_of(t.n, t.levels, node - leaves); i < stop; ++i) {
                const double d = squared_to_point(t, i, p);
                if (d <= limit) use(i, d);
            }
        }
    }
};

// Whether a point has no more than so many in its voxel and the 26 around it, itself included.
__device__ inline bool is_alone(const Tree& t, const double* p, double size, i64 most) {
    const i64 leaves = (1ll << t.levels) - 1;
    const double x = floor(p[0] / size), y = floor(p[1] / size), z = floor(p[2] / size);
    int waiting[ROOM], depth = 1;
    waiting[0] = 0;
    i64 count = 0;
    while (depth > 0 && count <= most) {
        --depth;
        const i64 node = waiting[depth];
        const double* box = t.boxes + 6 * node;
        if (floor(box[0] / size) > x + 1.0 || floor(box[3] / size) < x - 1.0 ||
            floor(box[1] / size) > y + 1.0 || floor(box[4] / size) < y - 1.0 ||
            floor(box[2] / size) > z + 1.0 || floor(box[5] / size) < z - 1.0)
            continue;
        if (node < leaves) {
            waiting[depth] = (int)(2 * node + 2);
            waiting[depth + 1] = (int)(2 * node + 1);
            depth += 2;
            continue;
        }
        const i64 stop = first_of(t.n, t.levels, node - leaves + 1);
        for (i64 i = first_of(t.n, t.levels, node - leaves); i < stop; ++i) {
            const double* q = t.points + 3 * i;
            count += fabs(floor(q[0] / size) - x) <= 1.0 && fabs(floor(q[1] / size) - y) <= 1.0 &&
                     fabs(floor(q[2] / size) - z) <= 1.0;
        }
    }
    return count <= most;
}

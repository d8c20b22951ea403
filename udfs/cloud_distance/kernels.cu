// cloud_distance on the GPU: the loops of cpu.py, one thread per point.
#include "geometry/eigen.cuh"
#include "geometry/neighbours.cuh"

const double FLAT = 1e-12, SLACK = 1 + 1e-9;  // as in cpu.py

// How many points are in a cylinder; mean and sum of squares of their positions along its axis.
struct Inside {
    double count, mean, squares;
};

// Fits a plane to the points around one, and turns its normal upwards; NaN if they are none.
__device__ inline void fit(const Tree& t, const double* p, double radius, double* normal) {
    double count = 0.0, s[3] = {0.0, 0.0, 0.0}, m[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    EachWithin{t, p, radius * radius}([&](i64 at, double) {
        const double* o = t.points + 3 * at;
        const double dx = o[0] - p[0], dy = o[1] - p[1], dz = o[2] - p[2];
        count += 1.0;
        s[0] = s[0] + dx;
        s[1] = s[1] + dy;
        s[2] = s[2] + dz;
        m[0] = m[0] + dx * dx;
        m[1] = m[1] + dx * dy;
        m[2] = m[2] + dx * dz;
        m[3] = m[3] + dy * dy;
        m[4] = m[4] + dy * dz;
        m[5] = m[5] + dz * dz;
    });
    for (int k = 0; k < 3; ++k) normal[k] = __longlong_as_double(0x7FF8000000000000ll);
    if (count < 3.0) return;
    const double mx = s[0] / count, my = s[1] / count, mz = s[2] / count;
    m[0] = m[0] / count - mx * mx;
    m[1] = m[1] / count - mx * my;
    m[2] = m[2] / count - mx * mz;
    m[3] = m[3] / count - my * my;
    m[4] = m[4] / count - my * mz;
    m[5] = m[5] / count - mz * mz;
    double values[3], v[9];
    eigen(m, values, v);
    if (!(values[1] > FLAT * values[2])) return;
    const double nx = v[0], ny = v[1], nz = v[2];
    const bool is_down = nz < 0.0 || (nz == 0.0 && (ny < 0.0 || (ny == 0.0 && nx < 0.0)));
    normal[0] = is_down ? -nx : nx;
    normal[1] = is_down ? -ny : ny;
    normal[2] = is_down ? -nz : nz;
}

// The squared distance of a point from the axis, by the cross product.
__device__ inline double beside(double dx, double dy, double dz, const double* u) {
    const double cx = dy * u[2] - dz * u[1], cy = dz * u[0] - dx * u[2];
    const double cz = dx * u[1] - dy * u[0];
    return cx * cx + cy * cy + cz * cz;
}

// Measures the points in the cylinder around the line through p along the normal u.
__device__ inline Inside measure(const Tree& t, const double* p, const double* u, double radius,
                                 double length) {
    const i64 leaves = (1ll << t.levels) - 1;
    Inside found = {0.0, 0.0, 0.0};
    int waiting[ROOM], depth = 1;
    waiting[0] = 0;
    while (depth > 0) {
        --depth;
        const i64 node = waiting[depth];
        const double* box = t.boxes + 6 * node;
        // the cell's box is in a sphere, which is beside the cylinder or beyond its ends
        const double hx = 0.5 * (box[3] - box[0]), hy = 0.5 * (box[4] - box[1]);
        const double hz = 0.5 * (box[5] - box[2]);
        const double bx = box[0] - p[0] + hx, by = box[1] - p[1] + hy, bz = box[2] - p[2] + hz;
        const double middle = bx * u[0] + by * u[1] + bz * u[2];
        const double ends = length + hx * fabs(u[0]) + hy * fabs(u[1]) + hz * fabs(u[2]);
        if (fabs(middle) > ends * SLACK) continue;
        const double apart = (radius + sqrt(hx * hx + hy * hy + hz * hz)) * SLACK;
        if (beside(bx, by, bz, u) > apart * apart) continue;
        if (node < leaves) {
            waiting[depth] = (int)(2 * node + 2);
            waiting[depth + 1] = (int)(2 * node + 1);
            depth += 2;
            continue;
        }
        const i64 stop = first_of(t.n, t.levels, node - leaves + 1);
        for (i64 i = first_of(t.n, t.levels, node - leaves); i < stop; ++i) {
            const double* q = t.points + 3 * i;
            const double dx = q[0] - p[0], dy = q[1] - p[1], dz = q[2] - p[2];
            const double along = dx * u[0] + dy * u[1] + dz * u[2];
            if (fabs(along) <= length && beside(dx, dy, dz, u) <= radius * radius) {
                found.count += 1.0;
                const double step = along - found.mean;
                found.mean += step / found.count;
                found.squares += step * (along - found.mean);
            }
        }
    }
    return found;
}

// cloud_distance_nearest: the nearest points of the reference, whose tree it is.
// thread   one point of the cloud
// writes   row and distance of its nearest point, if that is within the limit
extern "C" __global__ void cloud_distance_nearest(const double* points, const int* order,
                                                  const double* boxes, const int* lowest, i64 n,
                                                  i64 levels, const double* x, const double* y,
                                                  const double* z, i64 queries, double limit,
                                                  i64* nearest, double* distance) {
    const Tree tree = {points, order, boxes, lowest, n, levels};
    const i64 q = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (q >= queries) return;
    const double p[3] = {x[q], y[q], z[q]};
    double squared;
    int at;
    Nearest found = {&squared, &at, 1, 1};
    find_nearest(tree, p, found);
    if (squared > limit) return;
    nearest[q] = order[at];
    distance[q] = sqrt(squared);
}

// cloud_distance_m3c2: both clouds along the normals of the points.
// thread   one point of the cloud, in the order of its tree
// reads    normals, unless nx is null and they are to be fitted
// writes   counts[k][row] and values[k][row] of its point
extern "C" __global__ void cloud_distance_m3c2(
    const double* points, const int* order, const double* boxes, const int* lowest, i64 n,
    i64 levels, const double* others, const int* rows, const double* other_boxes,
    const int* other_lowest, i64 m, i64 other_levels, const double* nx, const double* ny,
    const double* nz, double normal_radius, double radius, double length, double registration,
    i64 least, double quantile, int* counts, double* values) {
    const Tree own = {points, order, boxes, lowest, n, levels};
    const Tree other = {others, rows, other_boxes, other_lowest, m, other_levels};
    const i64 q = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (q >= n) return;
    const double* p = points + 3 * q;
    const i64 row = order[q];
    double normal[3];
    if (nx) {
        // whose square may be no number
        const double most = larger(larger(fabs(nx[row]), fabs(ny[row])), fabs(nz[row]));
        const double ux = nx[row] / most, uy = ny[row] / most, uz = nz[row] / most;
        const double size = sqrt(ux * ux + uy * uy + uz * uz);
        normal[0] = ux / size;
        normal[1] = uy / size;
        normal[2] = uz / size;
    } else {
        fit(own, p, normal_radius, normal);
    }
    const double sum = normal[0] + normal[1] + normal[2];
    if (!(sum - sum == 0.0)) return;  // not finite
    for (int k = 0; k < 3; ++k) values[(1 + k) * n + row] = normal[k];
    const Inside a = measure(own, p, normal, radius, length);
    const Inside b = measure(other, p, normal, radius, length);
    counts[row] = (int)a.count;
    counts[n + row] = (int)b.count;
    if (a.count > 0.0 && b.count > 0.0) values[row] = a.mean - b.mean;
    if (a.count > 1.0) values[4 * n + row] = sqrt(a.squares / (a.count - 1.0));
    if (b.count > 1.0) values[5 * n + row] = sqrt(b.squares / (b.count - 1.0));
    if (a.count >= least && b.count >= least) {
        const double error =
            a.squares / (a.count - 1.0) / a.count + b.squares / (b.count - 1.0) / b.count;
        values[6 * n + row] = quantile * (sqrt(error) + registration);
    }
}

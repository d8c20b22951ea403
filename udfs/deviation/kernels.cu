// deviation on the GPU: one thread per point, the search of nearest_faces.py and the rows of cpu.py.
#include "geometry/nearest_faces.cuh"

extern "C" __global__ void deviation_rows(
    const double* x, const double* y, const double* z, i64 n, double metres, double max_distance,
    double rounding, const int* nodes, const i64* leaf_starts, const int* leaf_faces,
    const double* triangles, const double* grid, const i64* shape, const double* vertices,
    const i64* corners, const int* mesh_of, const signed char* side, const double* normals,
    const unsigned char* reliable, const int* part, const signed char* turn,
    const i64* part_starts, const int* part_faces, const double* boxes, const i64* near_starts,
    const int* near, const i64* face_starts, i64 has_normals, const double* nx, const double* ny,
    const double* nz, i64* element, i64* face, double* distance, double* angle,
    signed char* orientation) {
    const NearestFaces meshes = {max_distance, rounding, nodes, leaf_starts, leaf_faces, triangles,
                                 grid, shape, vertices, corners, mesh_of, side, normals, reliable,
                                 part, turn, part_starts, part_faces, boxes, near_starts, near};
    const double PI = 3.141592653589793;
    const double NOTHING = __longlong_as_double(0x7FF8000000000000ll);
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n;
         i += (i64)gridDim.x * blockDim.x) {
        double away;
        const i64 f = nearest_face(meshes, {x[i] * metres, y[i] * metres, z[i] * metres}, away);
        distance[i] = away;
        double turned = NOTHING;
        i64 e = -1, own = -1;
        int kind = -1;
        if (f >= 0) {
            e = mesh_of[f];
            own = f - face_starts[e];
            kind = side[e] > 0 ? 0 : (side[e] == 0 ? 1 : 2);
            if (has_normals) {
                const double outwards = side[e] < 0 ? -1.0 : 1.0;
                const double* of_face = normals + 21 * f;
                Vec a = outwards * Vec{of_face[0], of_face[1], of_face[2]};
                Vec b = {nx[i], ny[i], nz[i]};
                Vec c = cross(a, b);
                turned = fabs(arc_tangent(sqrt(dot(c, c)), dot(a, b))) * (180.0 / PI);
            }
        }
        element[i] = e;
        face[i] = own;
        angle[i] = turned;
        orientation[i] = (signed char)kind;
    }
}

// Eigenvalues and eigenvectors of symmetric 3 x 3 matrices: the loop of eigen.py.

#pragma once

#define SWEEPS 8  // of Jacobi rotations

// Makes an off-diagonal 0, of the diagonals p and q; r and s are the others.
__device__ void rotate(double& p, double& q, double& off, double& r, double& s, double* u,
                       double* v) {
    double c = 1.0, sine = 0.0, t = 0.0;
    if (off != 0.0) {
        const double tau = (q - p) / (2.0 * off);
        t = 1.0 / (fabs(tau) + sqrt(1.0 + tau * tau));
        if (tau < 0.0) t = -t;
        c = 1.0 / sqrt(1.0 + t * t);
        sine = t * c;
    }
    p = p - t * off;
    q = q + t * off;
    off = 0.0;
    const double r_before = r;
    r = c * r_before - sine * s;
    s = sine * r_before + c * s;
    for (int k = 0; k < 3; ++k) {
        const double before = u[k];
        u[k] = c * before - sine * v[k];
        v[k] = sine * before + c * v[k];
    }
}

__device__ void exchange_rows(double& p, double& q, double* u, double* v) {
    double before = p;
    p = q;
    q = before;
    for (int k = 0; k < 3; ++k) {
        before = u[k];
        u[k] = v[k];
        v[k] = before;
    }
}

// Eigenvalues, ascending, and eigenvectors, a row each, of xx xy xz yy yz zz.
__device__ void eigen(const double* matrix, double* values, double* vectors) {
    double xx = matrix[0], xy = matrix[1], xz = matrix[2];
    double yy = matrix[3], yz = matrix[4], zz = matrix[5];
    double a[3] = {1.0, 0.0, 0.0}, b[3] = {0.0, 1.0, 0.0}, c[3] = {0.0, 0.0, 1.0};
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {
        if (xy == 0.0 && xz == 0.0 && yz == 0.0) break;
        rotate(xx, yy, xy, xz, yz, a, b);
        rotate(xx, zz, xz, xy, yz, a, c);
        rotate(yy, zz, yz, xy, xz, b, c);
    }
    if (yy < xx) exchange_rows(xx, yy, a, b);
    if (zz < yy) exchange_rows(yy, zz, b, c);
    if (yy < xx) exchange_rows(xx, yy, a, b);
    values[0] = xx > 0.0 ? xx : 0.0;
    values[1] = yy > 0.0 ? yy : 0.0;
    values[2] = zz > 0.0 ? zz : 0.0;
    for (int k = 0; k < 3; ++k) {
        vectors[k] = a[k];
        vectors[3 + k] = b[k];
        vectors[6 + k] = c[k];
    }
}

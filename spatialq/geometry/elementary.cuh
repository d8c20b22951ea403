// Logarithm and cube root, by sums, products and quotients only: the functions of elementary.py.
#pragma once

const double HALF_ROOT = 0.7071067811865476;
const double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
const int NEWTON_STEPS = 4;

// The natural logarithm of a finite number above 0.
__device__ inline double logarithm(double x) {
    int k;
    double m = frexp(x, &k);
    if (m < HALF_ROOT) {
        m = 2.0 * m;
        k = k - 1;
    }
    const double f = m - 1.0;
    const double s = f / (2.0 + f);
    const double z = s * s;
    const double w = z * z;
    const double odd =
        w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double even =
        z * (6.666666666666735130e-01 +
             w * (2.857142874366239149e-01 +
                  w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    const double half = 0.5 * f * f;
    return k * LN2_HIGH - ((half - (s * (half + (even + odd)) + k * LN2_LOW)) - f);
}

// The cube root of a number that is not negative.
__device__ inline double cube_root(double x) {
    if (!(0.0 < x && x - x == 0.0)) return x;
    int k;
    double m = frexp(x, &k);
    const int third = (k >= 0 ? k : k - 2) / 3;  // rounded down
    m = ldexp(m, k - 3 * third);
    double root = 0.7 + 0.25 * m;
    for (int step = 0; step < NEWTON_STEPS; ++step)
        root = root - (root * root * root - m) / (3.0 * root * root);
    return ldexp(root, third);
}

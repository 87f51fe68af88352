// float64: fma, division, square root, conversions and rounding, all correctly rounded.
extern "C" __global__ void double_math(const double* a, const double* b, double* y, long long* whole, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double p = a[i], q = b[i];
    y[6 * i] = fma(p, q, 1.0 / 3.0);
    y[6 * i + 1] = p / q;
    y[6 * i + 2] = sqrt(fabs(p));
    y[6 * i + 3] = (double)(float)p;
    y[6 * i + 4] = floor(q) - ceil(p);
    y[6 * i + 5] = fmin(p, q);
    whole[i] = llrint(p * 1000.0);
}

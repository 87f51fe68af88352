// Calls that stay calls: arguments and results by value, by struct and through pointers.
struct Fraction { int top, bottom; };

__device__ __noinline__ int gcd(int a, int b) {
    while (b) { int rest = a % b; a = b; b = rest; }
    return a;
}

__device__ __noinline__ Fraction add(Fraction a, Fraction b) {
    Fraction sum = {a.top * b.bottom + b.top * a.bottom, a.bottom * b.bottom};
    int common = gcd(sum.top, sum.bottom);
    sum.top /= common; sum.bottom /= common;
    return sum;
}

__device__ __noinline__ void split(int value, int unit, int* quotient, int* rest) {
    *quotient = value / unit;
    *rest = value % unit;
}

extern "C" __global__ void device_calls(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Fraction sum = add({x[2 * i], x[2 * i + 1]}, {1, 6});
    int whole, rest;
    split(sum.top, sum.bottom, &whole, &rest);
    y[3 * i] = whole; y[3 * i + 1] = rest; y[3 * i + 2] = sum.bottom;
}

// 64-bit products, quotients, rests, shifts and the high half of a product.
extern "C" __global__ void int64_math(const long long* a, const long long* b, long long* y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long p = a[i], q = b[i];
    unsigned long long u = p, v = q;
    y[8 * i] = p * q;
    y[8 * i + 1] = p / q;
    y[8 * i + 2] = p % q;
    y[8 * i + 3] = __mul64hi(p, q);
    y[8 * i + 4] = __umul64hi(u, v);
    y[8 * i + 5] = (u << (v & 63)) ^ (u >> (v & 31)) ^ (p >> (v & 15));
    y[8 * i + 6] = __popcll(u) * 1000 + __clzll(v);
    y[8 * i + 7] = max(p, q) - min(u, v);
}

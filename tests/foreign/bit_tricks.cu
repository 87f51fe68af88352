// Bit fields, byte permutation, dot products of bytes, SIMD within a word.
extern "C" __global__ void bit_tricks(const unsigned* a, const unsigned* b, unsigned* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned p = a[i], q = b[i];
    unsigned* r = y + 8 * i;
    r[0] = __popc(p) + 100 * __clz(q) + 10000 * __ffs(p);
    r[1] = __brev(p);
    r[2] = __byte_perm(p, q, 0x3175);
    r[3] = __funnelshift_l(p, q, q & 31);
    r[4] = __dp4a((int)p, (int)q, -7);
    r[5] = __dp4a(p, q, 9u);
    r[6] = __umulhi(p, q) ^ (unsigned)__mulhi((int)p, (int)q);
    r[7] = __sad((int)p, (int)q, 3u) + (p << 8 >> 20);
}

// Largest float by atomicCAS on its bits: there is no atomicMax for floats.
extern "C" __global__ void cas_max(const float* x, float* largest, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned* where = (unsigned*)largest;
    unsigned seen = *where;
    while (x[i] > __uint_as_float(seen)) {
        unsigned before = atomicCAS(where, seen, __float_as_uint(x[i]));
        if (before == seen) break;
        seen = before;
    }
}

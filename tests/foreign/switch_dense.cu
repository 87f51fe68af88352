// An interpreter with a dense switch, which nvcc turns into a tree of compares and branches.
extern "C" __global__ void switch_dense(const int* code, int* x, int steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = x[i], memory = 1;
    for (int step = 0; step < steps; step++) {
        switch (code[step]) {
            case 0: v += step; break;
            case 1: v *= memory; break;
            case 2: memory = v & 15; break;
            case 3: if (v % 3 == 0) step++; break;  // skips one
            case 4: v ^= i << 4; break;
            case 5: x[i] = v; break;
            case 6: v -= x[i]; break;
            case 7: v = v < 0 ? -v : v; break;
            case 8: v = v << 1 | v >> 31 & 1; break;
            case 9: memory++; // and on to the default
            default: v--;
        }
    }
    x[i] = v;
}

// A little stack machine: three opcodes, few enough that the switch becomes branches.
extern "C" __global__ void switch_branches(const int* code, const int* x, int* y, int steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int value = x[i];
    for (int step = 0; step < steps; step++) {
        switch (code[(i + step) % steps]) {
            case 0: value = value * 3 + 1; break;
            case 7: value ^= value >> 3; break;
            case 1000: if (value & 1) break; value /= 2; break;
            default: return;
        }
    }
    y[i] = value;
}

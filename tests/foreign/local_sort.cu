// Each thread sorts eight numbers in an array that is indexed at run time, so it lies in local memory.
extern "C" __global__ void local_sort(const int* x, int* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int v[8];
#pragma unroll 1
    for (int i = 0; i < 8; i++) v[i] = x[row * 8 + i];
#pragma unroll 1
    for (int i = 1; i < 8; i++) {
        int key = v[i], j = i - 1;
        while (j >= 0 && v[j] > key) { v[j + 1] = v[j]; j--; }
        v[j + 1] = key;
    }
#pragma unroll 1
    for (int i = 0; i < 8; i++) y[row * 8 + i] = v[i];
}

// Transpose through a 32x33 tile: the column of padding keeps the banks apart.
extern "C" __global__ void transpose_pad(const float* x, float* y, int rows, int columns) {
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x;
    for (int r = threadIdx.y; r < 32; r += blockDim.y) {
        int row = blockIdx.y * 32 + r;
        if (row < rows && column < columns) tile[r][threadIdx.x] = x[row * columns + column];
    }
    __syncthreads();
    int row = blockIdx.y * 32 + threadIdx.x;
    for (int c = threadIdx.y; c < 32; c += blockDim.y) {
        int to = blockIdx.x * 32 + c;
        if (row < rows && to < columns) y[to * rows + row] = tile[threadIdx.x][c];
    }
}

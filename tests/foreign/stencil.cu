// Five-point stencil on a tile with a halo; the parameters travel as one struct.
struct Grid { int rows, columns; float centre, side; };

extern "C" __global__ void stencil(const float* x, float* y, Grid g) {
    extern __shared__ float tile[];
    int pitch = blockDim.x + 2;
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    auto at = [&](int r, int c) {
        return r >= 0 && r < g.rows && c >= 0 && c < g.columns ? x[r * g.columns + c] : 0.0f;
    };
    float* here = &tile[(threadIdx.y + 1) * pitch + threadIdx.x + 1];
    *here = at(row, column);
    if (threadIdx.x == 0) here[-1] = at(row, column - 1);
    if (threadIdx.x == blockDim.x - 1) here[1] = at(row, column + 1);
    if (threadIdx.y == 0) here[-pitch] = at(row - 1, column);
    if (threadIdx.y == blockDim.y - 1) here[pitch] = at(row + 1, column);
    __syncthreads();
    if (row < g.rows && column < g.columns)
        y[row * g.columns + column] = g.centre * *here + g.side * (here[-1] + here[1] + here[-pitch] + here[pitch]);
}

// Softmax of one row a block: a maximum, a sum of exponentials, a division.
__device__ float over_warp(float v, bool maximum) {
    for (int offset = 16; offset > 0; offset /= 2) {
        float other = __shfl_xor_sync(~0u, v, offset);
        v = maximum ? fmaxf(v, other) : v + other;
    }
    return v;
}

extern "C" __global__ void softmax_row(const float* x, float* y, int columns) {
    extern __shared__ float row[];
    __shared__ float parts[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    auto over_block = [&](float v, bool maximum) {
        v = over_warp(v, maximum);
        if (lane == 0) parts[warp] = v;
        __syncthreads();
        v = over_warp(parts[lane % warps], maximum);
        __syncthreads();
        return maximum ? v : v * warps / 32.0f;  // each part was counted 32 / warps times
    };
    float largest = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        row[i] = x[blockIdx.x * columns + i];
        largest = fmaxf(largest, row[i]);
    }
    largest = over_block(largest, true);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i] = expf(row[i] - largest);
    sum = over_block(sum, false);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) y[blockIdx.x * columns + i] = row[i] / sum;
}

// Reverses rows of 64 floats through a three-stage ring of cp.async groups.
#include <cuda_pipeline.h>
constexpr int ROW = 64, STAGES = 3;

extern "C" __global__ void pipeline_copy(const float* x, float* y, int rows) {
    __shared__ alignas(16) float ring[STAGES][ROW];
    auto fetch = [&](int row) {
        if (row < rows && threadIdx.x < ROW / 4)
            __pipeline_memcpy_async(&ring[row % STAGES][threadIdx.x * 4], &x[row * ROW + threadIdx.x * 4], 16);
        __pipeline_commit();  // an empty group counts too
    };
    for (int row = 0; row < STAGES - 1; row++) fetch(row);
    for (int row = 0; row < rows; row++) {
        fetch(row + STAGES - 1);
        __pipeline_wait_prior(STAGES - 1);
        __syncthreads();
        y[row * ROW + threadIdx.x] = ring[row % STAGES][ROW - 1 - threadIdx.x];
        __syncthreads();
    }
}

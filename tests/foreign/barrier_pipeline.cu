// y[i] = 3 x[i] + 1 through a two-stage ring: memcpy_async signals a cuda::barrier a stage.
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init
using barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int CHUNK = 128;

extern "C" __global__ void barrier_pipeline(const int* x, int* y, int chunks) {
    __shared__ alignas(16) int stage[2][CHUNK];
    __shared__ barrier full[2];
    if (threadIdx.x < 2) init(&full[threadIdx.x], blockDim.x);
    __syncthreads();
    const int* mine = x + blockIdx.x * chunks * CHUNK;
    int* result = y + blockIdx.x * chunks * CHUNK;
    auto fetch = [&](int chunk) {
        cuda::memcpy_async(&stage[chunk % 2][threadIdx.x * 4], &mine[chunk * CHUNK + threadIdx.x * 4],
                           cuda::aligned_size_t<16>(16), full[chunk % 2]);
    };
    fetch(0);
    for (int chunk = 0; chunk < chunks; chunk++) {
        if (chunk + 1 < chunks) fetch(chunk + 1);
        full[chunk % 2].arrive_and_wait();
        for (int i = threadIdx.x; i < CHUNK; i += blockDim.x)
            result[chunk * CHUNK + i] = 3 * stage[chunk % 2][i] + 1;
        __syncthreads();  // the stage is free again
    }
}

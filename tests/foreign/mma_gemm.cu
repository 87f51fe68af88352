// D = A B^T for f16 inputs and f32 sums: cp.async, ldmatrix, mma.sync. 32x32 tile, 4 warps.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
constexpr int TILE = 32, TILE_K = 16, PITCH = TILE_K + 8;  // 8 halves of padding: no bank conflicts

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void mma_gemm(const __half* a, const __half* b, float* d, int n, int k) {
    __shared__ alignas(16) __half tile_a[2][TILE][PITCH], tile_b[2][TILE][PITCH];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = threadIdx.x / 4 % 32, half = threadIdx.x % 2 * 8;
    int m0 = blockIdx.y * TILE, n0 = blockIdx.x * TILE;
    auto fetch = [&](int stage, int k0) {
        if (threadIdx.x % 4 < 2) {
            __pipeline_memcpy_async(&tile_a[stage][row][half], &a[(m0 + row) * k + k0 + half], 16);
            __pipeline_memcpy_async(&tile_b[stage][row][half], &b[(n0 + row) * k + k0 + half], 16);
        }
        __pipeline_commit();
    };
    int warp_m = warp / 2 * 16, warp_n = warp % 2 * 16;
    float sum[2][4] = {};
    fetch(0, 0);
    for (int k0 = 0; k0 < k; k0 += TILE_K) {
        int stage = k0 / TILE_K % 2;
        if (k0 + TILE_K < k) fetch(stage ^ 1, k0 + TILE_K);
        else __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        unsigned fa[4], fb[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                     : "r"(shared_address(&tile_a[stage][warp_m + lane % 16][lane / 16 * 8])));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3])
                     : "r"(shared_address(&tile_b[stage][warp_n + lane % 16][lane / 16 * 8])));
        for (int j = 0; j < 2; j++)
            asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
                : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[j]), "r"(fb[j + 2]));
        __syncthreads();
    }
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 4; i++)
            d[(m0 + warp_m + lane / 4 + i / 2 * 8) * n + n0 + warp_n + j * 8 + lane % 4 * 2 + i % 2] = sum[j][i];
}

// Adds 1 to every element of a matrix: a 32x64 box by TMA in, and by TMA out.
#include <cuda.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/cstdint>
#pragma nv_diag_suppress static_var_with_dynamic_init
namespace ptx = cuda::ptx;
constexpr int ROWS = 32, COLUMNS = 64;

extern "C" __global__ void tma_copy(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out) {
    __shared__ alignas(128) float tile[ROWS][COLUMNS];
    __shared__ alignas(8) cuda::std::uint64_t full;
    int at[2] = {(int)blockIdx.x * COLUMNS, (int)blockIdx.y * ROWS};
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof(tile));
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &in, at, &full);
    }
    __syncthreads();
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {}
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) (&tile[0][0])[i] += 1.0f;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, at, tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}

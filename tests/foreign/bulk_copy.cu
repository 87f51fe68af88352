// Rotates each row by one: 1D bulk copies in and out, counted by a barrier.
#include <cuda/barrier>
#include <cuda/ptx>
#pragma nv_diag_suppress static_var_with_dynamic_init
namespace ptx = cuda::ptx;
using barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int ROW = 256;

extern "C" __global__ void bulk_copy(const int* x, int* y) {
    __shared__ alignas(16) int in[ROW], out[ROW];
    __shared__ barrier full;
    if (threadIdx.x == 0) init(&full, blockDim.x);
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(in, x + blockIdx.x * ROW, cuda::aligned_size_t<16>(sizeof(in)), full);
        token = cuda::device::barrier_arrive_tx(full, 1, sizeof(in));
    } else {
        token = full.arrive();
    }
    full.wait(cuda::std::move(token));
    for (int i = threadIdx.x; i < ROW; i += blockDim.x) out[i] = in[(i + 1) % ROW];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + blockIdx.x * ROW, out, sizeof(out));
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}

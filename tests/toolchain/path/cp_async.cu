// Global to shared memory by cp.async: LDGSTS, one 16-byte piece a thread.
#include <cstdint>

extern "C" __global__ void cp_async(float4 *out, const float4 *in) {
    __shared__ float4 tile[128];
    uint32_t at = (uint32_t)__cvta_generic_to_shared(&tile[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(in + threadIdx.x));
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = tile[127 - threadIdx.x];
}

// Copies by the TMA unit: a tensor tile in, a tensor tile out, and plain bytes (bulk).
// `tma_elected` lets elect.sync choose the thread; `tma_thread_0` tests threadIdx.x, from which
// ptxas cannot tell that one lane is left, and so wraps each copy in a loop over lanes.
#include <cstdint>
#include <cuda.h>

__device__ void copies(const CUtensorMap *map, const float *in, uint32_t tile, uint32_t full) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2048;" ::"r"(full) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %2}], [%3];" ::"r"(tile), "l"(map), "r"(0), "r"(full) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], 1024, [%2];" ::"r"(tile + 1024), "l"(in), "r"(full) : "memory");
}

__device__ void wait(uint32_t full) {
    asm volatile("{\n.reg .pred done;\nWAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@!done bra WAIT;\n}" ::"r"(full) : "memory");
}

extern "C" __global__ void tma_elected(const __grid_constant__ CUtensorMap map, const float *in) {
    __shared__ alignas(128) float tile[512];
    __shared__ alignas(8) uint64_t barrier;
    uint32_t at = (uint32_t)__cvta_generic_to_shared(tile);
    uint32_t full = (uint32_t)__cvta_generic_to_shared(&barrier);
    uint32_t leader;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(leader));
    if (leader) {
        copies(&map, in, at, full);
        wait(full);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
                     "[%0, {%1, %1}], [%2];" ::"l"(&map), "r"(8), "r"(at) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}

extern "C" __global__ void tma_thread_0(const __grid_constant__ CUtensorMap map, const float *in) {
    __shared__ alignas(128) float tile[512];
    __shared__ alignas(8) uint64_t barrier;
    uint32_t at = (uint32_t)__cvta_generic_to_shared(tile);
    uint32_t full = (uint32_t)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        copies(&map, in, at, full);
        wait(full);
    }
}

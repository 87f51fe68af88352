// Warp MMA on f16: HMMA. The second kernel is 2:4 sparse: HMMA.SP. Fragments by ldmatrix.
#include <cstdint>

extern "C" __global__ void mma_f16(float *out, const uint4 *in) {
    __shared__ uint4 tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    uint32_t a[4], b[2], at = (uint32_t)__cvta_generic_to_shared(&tile[threadIdx.x]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(b[0]), "=r"(b[1]) : "r"(at));
    float c[4] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = c[i];
}

extern "C" __global__ void mma_sparse_f16(float *out, const uint32_t *in) {
    uint32_t a[4], b[4], meta = in[threadIdx.x];
    for (int i = 0; i < 4; ++i) a[i] = in[32 * i + threadIdx.x], b[i] = in[32 * i + threadIdx.x + 128];
    float c[4] = {};
    asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]),
                   "r"(b[3]), "r"(meta));
    for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = c[i];
}

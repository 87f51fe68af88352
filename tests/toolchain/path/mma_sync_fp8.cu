// Warp MMA on fp8: Hopper has no such instruction, so ptxas unpacks to f16 and multiplies twice.
#include <cstdint>

extern "C" __global__ void mma_e4m3(float *out, const uint32_t *in) {
    uint32_t a[4], b[2];
    for (int i = 0; i < 4; ++i) a[i] = in[32 * i + threadIdx.x];
    for (int i = 0; i < 2; ++i) b[i] = in[32 * i + threadIdx.x + 128];
    float c[4] = {};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = c[i];
}

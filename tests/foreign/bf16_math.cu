// bfloat16: fma in pairs, rounding from f32, comparison.
#include <cuda_bf16.h>

extern "C" __global__ void bf16_math(const __nv_bfloat162* x, const float* scale, __nv_bfloat162* y,
                                     __nv_bfloat16* largest, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    __nv_bfloat162 s = __floats2bfloat162_rn(scale[2 * i], scale[2 * i + 1]);
    y[i] = __hfma2(x[i], s, __float2bfloat162_rn(0.5f));
    largest[i] = __hmax(__low2bfloat16(x[i]), __high2bfloat16(x[i]));
}

// y = max(a x + y, 0) on pairs of halves, and the number of lanes where x is the larger one.
#include <cuda_fp16.h>

extern "C" __global__ void half2_axpy(__half2 a, const __half2* x, __half2* y, unsigned* larger, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    __half2 before = y[i], value = x[i];
    y[i] = __hmax2(__hfma2(a, value, before), __float2half2_rn(0.0f));
    __half2 flags = __hgt2(value, before);
    larger[i] = (unsigned)(__low2float(flags) + __high2float(flags));
}

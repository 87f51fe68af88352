// More live values than registers: assembled with -maxrregcount=24, it spills to local memory.
extern "C" __global__ void spill(float *out, const float *in) {
    float x[48];
#pragma unroll
    for (int i = 0; i < 48; ++i) x[i] = in[i * 128 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 48; ++i) out[i * 128 + threadIdx.x] = x[i] * x[47 - i];
}

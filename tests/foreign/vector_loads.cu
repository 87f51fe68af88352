// Sum of squares of each float4, and its components in reverse: 16-byte loads and stores.
extern "C" __global__ void vector_loads(const float4* __restrict__ x, float4* y, float* squares, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = __ldg(&x[i]);
    y[i] = make_float4(v.w, v.z, v.y, v.x);
    squares[i] = v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
}

// Inclusive prefix sums of each block's part: shuffles within warps, then over the warps.
extern "C" __global__ void prefix_scan(const long long* x, long long* y, int n) {
    __shared__ long long totals[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    long long sum = i < n ? x[i] : 0;
    for (int offset = 1; offset < 32; offset *= 2) {
        long long below = __shfl_up_sync(~0u, sum, offset);
        if (lane >= offset) sum += below;
    }
    if (lane == 31) totals[warp] = sum;
    __syncthreads();
    for (int w = 0; w < warp; w++) sum += totals[w];
    if (i < n) y[i] = sum;
}

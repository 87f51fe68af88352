// Keeps the positive numbers, in order: a ballot a warp, a scan over the warps of the block.
extern "C" __global__ void ballot_compact(const int* x, int* y, int* counts, int n) {
    __shared__ int starts[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int value = i < n ? x[i] : 0;
    unsigned kept = __ballot_sync(~0u, value > 0);
    if (lane == 0) starts[warp] = __popc(kept);
    __syncthreads();
    if (threadIdx.x == 0) {
        int total = 0;
        for (int w = 0; w < blockDim.x / 32; w++) { int count = starts[w]; starts[w] = total; total += count; }
        counts[blockIdx.x] = total;
    }
    __syncthreads();
    unsigned below = kept & ((1u << lane) - 1);
    if (value > 0) y[blockIdx.x * blockDim.x + starts[warp] + __popc(below)] = value;
}

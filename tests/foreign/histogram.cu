// Counts of byte values: one histogram a block in shared memory, added to the global one.
extern "C" __global__ void histogram(const unsigned char* x, unsigned* counts, int n) {
    __shared__ unsigned mine[256];
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) mine[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[x[i]], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x)
        if (mine[bin]) atomicAdd(&counts[bin], mine[bin]);
}

// Counts keys: the lanes of a warp that hold the same key send one atomic.
extern "C" __global__ void warp_match(const int* keys, unsigned* counts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned here = __activemask();
    unsigned peers = __match_any_sync(here, keys[i]);
    if (__ffs(peers) - 1 == (int)(threadIdx.x % 32)) atomicAdd(&counts[keys[i]], __popc(peers));
}

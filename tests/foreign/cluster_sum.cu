// Sum over a cluster of four blocks: rank 0 reads the others' shared memory.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_sum(const int* x, int* out, int n) {
    __shared__ int block_total;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) block_total = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&block_total, x[i]);
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        int total = 0;
        for (unsigned rank = 0; rank < cluster.num_blocks(); rank++)
            total += *cluster.map_shared_rank(&block_total, rank);
        out[blockIdx.x / 4] = total;
    }
    cluster.sync();  // nobody leaves while rank 0 reads
}

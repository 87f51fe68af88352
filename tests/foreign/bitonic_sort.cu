// Sorts each block's 256 keys, with their values, in shared memory.
constexpr int N = 256;

extern "C" __global__ void bitonic_sort(const unsigned* keys, const unsigned short* values,
                                        unsigned* keys_out, unsigned short* values_out) {
    __shared__ unsigned k[N];
    __shared__ unsigned short v[N];
    int t = threadIdx.x, base = blockIdx.x * N;
    k[t] = keys[base + t];
    v[t] = values[base + t];
    for (int size = 2; size <= N; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            int other = t ^ stride;
            if (other > t && (k[t] > k[other]) == ((t & size) == 0)) {
                unsigned key = k[t]; k[t] = k[other]; k[other] = key;
                unsigned short value = v[t]; v[t] = v[other]; v[other] = value;
            }
        }
    __syncthreads();
    keys_out[base + t] = k[t];
    values_out[base + t] = v[t];
}

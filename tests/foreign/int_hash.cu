// MurmurHash3's 32-bit hash of rows of four words; rotations become funnel shifts.
__device__ unsigned rotate(unsigned x, int by) { return x << by | x >> (32 - by); }

extern "C" __global__ void int_hash(const unsigned* words, unsigned* hashes, unsigned seed, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    unsigned h = seed;
    for (int i = 0; i < 4; i++) {
        unsigned k = words[row * 4 + i] * 0xcc9e2d51u;
        h ^= rotate(k, 15) * 0x1b873593u;
        h = rotate(h, 13) * 5 + 0xe6546b64u;
    }
    h ^= 16;
    h ^= h >> 16; h *= 0x85ebca6bu;
    h ^= h >> 13; h *= 0xc2b2ae35u;
    hashes[row] = h ^ h >> 16;
}

// Polynomials: coefficients in constant memory, found through a table of pointers.
__constant__ int line[2] = {5, -3};
__constant__ int square[3] = {1, 0, 2};
__device__ int cube[4] = {7, 1, -1, 1};
struct Row { const int* coefficients; int count; };
__device__ Row rows[3] = {{line, 2}, {square, 3}, {cube, 4}};

extern "C" __global__ void constant_table(const int* which, const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Row row = rows[which[i]];
    int value = 0;
    for (int c = row.count - 1; c >= 0; c--) value = value * x[i] + row.coefficients[c];
    y[i] = value;
}

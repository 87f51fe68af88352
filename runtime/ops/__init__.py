"""Operations on arrays: pick a kernel, allocate the result where the inputs live, launch.

gemm(a, b)         a @ b, and what follows it: scales, bias, activation, residual, gated products
quantize_fp8(x)    x in fp8, with one scale or one a row
"""

from runtime.ops.gemm import gemm
from runtime.ops.quantize import quantize_fp8

__all__ = ["gemm", "quantize_fp8"]

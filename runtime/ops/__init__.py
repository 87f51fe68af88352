"""Operations on arrays: pick a kernel, allocate the result where the inputs live, launch.

gemm(a, b)    a @ b
"""

from runtime.ops.gemm import gemm

__all__ = ["gemm"]

"""Members of the GEMM family with an epilogue: one of each kind, for numbers and for SASS."""

from __future__ import annotations

# Nothing is rounded on integers: alpha is 2, beta -1.
EXACT = (
    "gemm:tile=64x64,stages=2,alpha=1",
    "gemm:tile=64x64,stages=2,bias=row,activation=relu",
    "gemm:tile=128x64,stages=2,bias=column,bias_dtype=out",
    "gemm:tile=128x64,stages=2,alpha=1,beta=1,bias=row,activation=relu",
    "gemm:tile=128x64,stages=2,consumers=1,out_dtype=f32,beta=1,bias=column",  # two row blocks
    "gemm:tile=64x24,cluster=1x1,dtype=f16,beta=1,bias=row,bias_dtype=out",  # boxes of 8 columns
    "gemm:batched=1,tile=64x64,beta=1,bias=column,alpha=1",
    "gemm:split_k=4,cluster=1x1,tile=64x64,beta=1,bias=row,alpha=1",
    "gemm:swap_ab=1,cluster=1x1,tile=64x16,beta=1,bias=row,activation=relu",
    "gemm:swap_ab=1,cluster=1x1,tile=64x16,out_dtype=f32,beta=1,bias=column,alpha=1",
    "gemm:swap_ab=1,split_k=2,cluster=1x1,tile=128x32,beta=1,bias=column,bias_dtype=out",
    "gemm:swap_ab=1,batched=1,dtype=f16,cluster=1x1,tile=64x16,beta=1,bias=row",
    "gemm:dtype=e4m3,tile=64x64,out_dtype=e4m3,beta=1,bias=row,bias_dtype=out",
    "gemm:dtype=e5m2,tile=64x64,out_dtype=e5m2,beta=1,bias=column,bias_dtype=out",
    "gemm:dtype=tf32,tile=64x64,cluster=1x2,beta=1,bias=column,activation=relu",
    "gemm:tile=192x48,cluster=2x2,stages=2,beta=1,bias=row",
)
ROUNDED = (
    "gemm:tile=64x64,stages=2,alpha=1,beta=1,bias=column,activation=gelu",
    "gemm:tile=64x64,stages=2,bias=row,activation=gelu_tanh,out_dtype=f32",
    "gemm:swap_ab=1,cluster=1x1,tile=64x16,bias=column,activation=silu",
    "gemm:split_k=2,cluster=1x1,tile=64x64,beta=1,activation=silu,out_dtype=f32",
    "gemm:batched=1,dtype=f16,tile=64x64,alpha=1,activation=gelu",
    "gemm:dtype=e4m3,tile=64x64,beta=1,activation=gelu_tanh",
)
# The widest accumulators, where registers are short.
LARGE = (
    "gemm:bias=row,activation=gelu",
    "gemm:alpha=1,beta=1,bias=row,activation=gelu",
    "gemm:out_dtype=f32,stages=3,alpha=1,beta=1,bias=column,activation=gelu_tanh",
    "gemm:tile=256x128,out_dtype=f32,stages=3,alpha=1,beta=1,bias=row,bias_dtype=out,activation=silu",
    "gemm:tile=192x128,store_n=128,stages=3,alpha=1,beta=1,bias=row,activation=gelu",
    "gemm:store_n=256,stages=3,alpha=1,beta=1,bias=column,activation=gelu",
    "gemm:dtype=f16,tile=128x256,store_n=256,stages=3,swap_ab=1,beta=1,bias=row,activation=silu",
)

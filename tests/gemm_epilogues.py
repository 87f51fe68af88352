"""Members of the GEMM family with an epilogue: one of each kind, for numbers and for SASS."""

from __future__ import annotations

# Scales are powers of two. One an operand, one a row and column; the largest result; two products.
SCALED = (
    "gemm:dtype=e4m3,tile=64x64,scales=tensor",
    "gemm:dtype=e4m3,b_dtype=e5m2,tile=128x64,scales=tensor,alpha=1,amax=1,out_scale=1,out_dtype=e4m3",
    "gemm:dtype=e5m2,tile=64x64,scales=row,out_dtype=f32",
    "gemm:dtype=e4m3,tile=128x64,consumers=1,scales=row,alpha=1,bias=column,beta=1,amax=1",
    "gemm:dtype=e4m3,b_dtype=e5m2,tile=64x64,scales=row,bias=row,out_dtype=e5m2,out_scale=1,amax=1",
    "gemm:dtype=e4m3,scales=row,swap_ab=1,cluster=1x1,tile=64x16,amax=1",
    "gemm:dtype=e4m3,scales=row,split_k=2,cluster=1x1,tile=64x64,out_dtype=f16",
    "gemm:dtype=e4m3,scales=row,batched=1,tile=64x64,amax=1",
    "gemm:tile=64x64,scales=row,amax=1,out_scale=1",
    "gemm:dtype=e4m3,tile=64x64,accumulate=promoted,wait_depth=0",
    "gemm:dtype=e5m2,tile=128x64,consumers=1,accumulate=promoted,wait_depth=0,scales=row,cluster=1x2",
    "gemm:dtype=e4m3,split_k=2,cluster=1x1,tile=64x64,accumulate=promoted,wait_depth=0,out_dtype=f32",
    "gemm:dtype=e4m3,batched=1,swap_ab=1,tile=64x16,cluster=1x1,accumulate=promoted,wait_depth=0,"
    "scales=tensor",
)
GATED = (
    "gemm:gated=1,tile=64x64,cluster=1x1,stages=2",
    "gemm:gated=1,activation=relu,tile=128x128,stages=2",
    "gemm:gated=1,tile=64x128,cluster=2x2,batched=1,alpha=1,out_dtype=f32",
    "gemm:gated=1,tile=128x64,consumers=1,stages=2,dtype=e4m3,scales=row",
    "gemm:gated=1,tile=64x128,dtype=e5m2,scales=tensor,out_dtype=e4m3,amax=1,out_scale=1",
    "gemm:gated=1,tile=64x64,cluster=1x2,dtype=e4m3,accumulate=promoted,wait_depth=0,scales=row",
    "gemm:gated=1,tile=64x96,dtype=tf32,cluster=1x1",
)
IN_TURNS = (
    "gemm:schedule=pingpong,tile=64x64,stages=3,gated=1,activation=relu,amax=1",
    "gemm:schedule=pingpong,tile=64x64,stages=3,dtype=e4m3,scales=row,bias=row,amax=1,out_scale=1,"
    "out_dtype=e4m3",
    "gemm:schedule=pingpong,tile=64x64,stages=3,dtype=e4m3,accumulate=promoted,wait_depth=0,"
    "scales=tensor",
)
# Consumers in turns and clusters that share tiles out: an epilogue runs once a tile.
SCHEDULED = (
    "gemm:schedule=pingpong,tile=128x64,stages=3,alpha=1,beta=1,bias=row,activation=relu",
    "gemm:schedule=pingpong,tile=64x64,dtype=e4m3,scales=row,amax=1,cluster=1x1",
    "gemm:schedule=pingpong,tile=64x64,gated=1,cluster=1x1",
    "gemm:schedule=stream_k,tile=64x64,stages=3,cluster=1x1,alpha=1,beta=1,bias=column",
    "gemm:schedule=stream_k,tile=64x64,dtype=e4m3,scales=row,amax=1,batched=1",
    "gemm:a_source=registers,wait_depth=0,tile=64x64,beta=1,bias=row",
)
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
    *SCALED,
    *GATED,
    *IN_TURNS,
    *SCHEDULED,
)
ROUNDED = (
    "gemm:tile=64x64,stages=2,alpha=1,beta=1,bias=column,activation=gelu",
    "gemm:tile=64x64,stages=2,bias=row,activation=gelu_tanh,out_dtype=f32",
    "gemm:swap_ab=1,cluster=1x1,tile=64x16,bias=column,activation=silu",
    "gemm:split_k=2,cluster=1x1,tile=64x64,beta=1,activation=silu,out_dtype=f32",
    "gemm:batched=1,dtype=f16,tile=64x64,alpha=1,activation=gelu",
    "gemm:dtype=e4m3,tile=64x64,beta=1,activation=gelu_tanh",
    "gemm:dtype=e4m3,tile=64x64,scales=row,bias=row,activation=silu,amax=1,out_dtype=e4m3,out_scale=1",
    "gemm:gated=1,tile=128x128,activation=silu,amax=1",
    "gemm:gated=1,tile=64x64,activation=gelu,dtype=e4m3,scales=row",
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
    "gemm:gated=1,activation=silu,amax=1,out_scale=1",
    "gemm:gated=1,activation=gelu,dtype=e4m3,scales=row,alpha=1,cluster=1x2",
    "gemm:dtype=e4m3,scales=row,bias=row,beta=1,activation=gelu,amax=1,out_dtype=e4m3,out_scale=1",
    "gemm:dtype=e4m3,tile=128x192,accumulate=promoted,wait_depth=0,scales=row,bias=row,activation=silu",
    "gemm:dtype=e4m3,tile=192x128,accumulate=promoted,wait_depth=0,cluster=1x1,consumers=3,stages=3",
)

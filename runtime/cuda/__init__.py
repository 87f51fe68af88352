"""Kernels on an NVIDIA GPU, through the driver. The only code that imports cuda.bindings.

driver       the driver's functions, its answers as exceptions
device       GPUs and contexts            module       loading, opt-ins, what fits
tensor_map   the driver's encoder         params       parameter values in memory
attributes   launch configurations        call         a launch that is cheap to repeat
order        order and lifetimes          memory       workspaces and copies
backend      all of it behind the protocol of runtime.backend
"""

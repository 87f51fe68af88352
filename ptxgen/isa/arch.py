"""Chip numbers. They live here only, each with its source.

Sources: [guide] CUDA C++ Programming Guide, compute capability tables; [ptxas] limits that ptxas
13.0 enforces; [attr] cuDeviceGetAttribute on the device; [sheet] vendor data sheet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

# Limits shared by every compute capability 9.0 part.
SMEM_PER_SM_BYTES = 233_472  # 228 KB [guide, attr]
SMEM_PER_CTA_BYTES = 232_448  # 227 KB [ptxas: one byte more is an error; attr opt-in limit]
SMEM_DEFAULT_BYTES = 49_152  # without the opt-in attribute [guide]
SMEM_RESERVED_BYTES = 1_024  # per CTA, at the bottom of the shared window [attr]
REGISTERS_PER_SM = 65_536  # [guide]
REGISTERS_PER_THREAD = 255  # [guide]
REGISTER_ALLOCATION_PER_WARP = 256  # allocation granularity, so 8 registers a thread [guide]
SM_PARTITIONS = 4  # each owns a quarter of the registers and schedules its own warps [guide]
SMEM_ALLOCATION_BYTES = 128  # allocation granularity of a CTA's shared memory [guide]
WARP_THREADS = 32
WARPGROUP_THREADS = 128  # PTX ISA 9.7.16: four contiguous warps
THREADS_PER_CTA = 1_024  # [guide]
THREADS_PER_SM = 2_048  # [guide]
CTAS_PER_SM = 32  # [guide]
NAMED_BARRIERS = 16  # PTX ISA 9.7.13.1
CLUSTER_PORTABLE = 8  # [guide]
CLUSTER_MAX = 16  # with the non-portable attribute [guide]
GRID_X_MAX = 2**31 - 1  # [guide]
GRID_YZ_MAX = 65_535  # [guide]
SETMAXNREG_MIN, SETMAXNREG_MAX, SETMAXNREG_STEP = 24, 256, 8  # PTX ISA 9.7.19.5
TENSOR_MAP_BYTES = 128
TENSOR_MAP_BOX_MAX = 256  # per axis [attr: driver refuses 257]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One product: what the calculators need beyond the limits above.

    Tensor rates are dense, with f32 accumulation; 0 means that the chip has no such unit.
    `clock_hz` is the clock of the data sheet's peak rates, not the highest that the chip reaches.
    """

    name: str
    title: str
    sms: int
    clock_hz: float
    hbm_bytes_per_s: float
    l2_bytes: int
    f16_flop_per_clk_sm: int  # f16 and bf16
    f8_flop_per_clk_sm: int = 0  # fp8
    f32_flop_per_clk_sm: int = 256  # CUDA cores; an FMA is two
    sfu_per_clk_sm: int = 16  # MUFU: ex2, rcp, rsqrt, tanh, ...
    smem_bytes_per_clk_sm: int = 128  # 32 banks of 4 bytes
    l2_bytes_per_clk: float = 0.0  # all SMs together; 0: not known


# Sources of the L2 rates: [sheet] for V100 and A100; 4,472 measured on an H800 by published
# microbenchmarks; 6,150 is the constant of a published GEMM cost model for H100, not a measurement.
CHIPS: Mapping[str, Chip] = MappingProxyType(
    {
        chip.name: chip
        for chip in (
            Chip(name="h200", title="NVIDIA H200", sms=132, clock_hz=1.83e9,
                 hbm_bytes_per_s=4.8e12, l2_bytes=60 * 2**20, f16_flop_per_clk_sm=4096,
                 f8_flop_per_clk_sm=8192, l2_bytes_per_clk=6150),  # [sheet, attr]
            Chip(name="h100_sxm", title="NVIDIA H100 SXM", sms=132, clock_hz=1.83e9,
                 hbm_bytes_per_s=3.35e12, l2_bytes=50 * 2**20, f16_flop_per_clk_sm=4096,
                 f8_flop_per_clk_sm=8192, l2_bytes_per_clk=6150),  # [sheet]
            Chip(name="h800_pcie", title="NVIDIA H800 PCIe", sms=114, clock_hz=1.62e9,
                 hbm_bytes_per_s=2.039e12, l2_bytes=50 * 2**20, f16_flop_per_clk_sm=4096,
                 f8_flop_per_clk_sm=8192, l2_bytes_per_clk=4472),  # [sheet]
            Chip(name="a100_sxm", title="NVIDIA A100 SXM 40 GB", sms=108, clock_hz=1.41e9,
                 hbm_bytes_per_s=1.555e12, l2_bytes=40 * 2**20, f16_flop_per_clk_sm=2048,
                 f32_flop_per_clk_sm=128, l2_bytes_per_clk=5120),  # [sheet]
            Chip(name="v100_sxm", title="NVIDIA V100 SXM2", sms=80, clock_hz=1.53e9,
                 hbm_bytes_per_s=0.9e12, l2_bytes=6 * 2**20, f16_flop_per_clk_sm=1024,
                 f32_flop_per_clk_sm=128, l2_bytes_per_clk=2048),  # [sheet]
            Chip(name="rtx_4090", title="NVIDIA GeForce RTX 4090", sms=128, clock_hz=2.52e9,
                 hbm_bytes_per_s=1.008e12, l2_bytes=72 * 2**20, f16_flop_per_clk_sm=512,
                 f8_flop_per_clk_sm=1024),  # [sheet]
            Chip(name="rtx_3090_ti", title="NVIDIA GeForce RTX 3090 Ti", sms=84, clock_hz=1.86e9,
                 hbm_bytes_per_s=1.008e12, l2_bytes=6 * 2**20, f16_flop_per_clk_sm=512),  # [sheet]
        )
    }
)  # fmt: skip
HOPPER = ("h200", "h100_sxm", "h800_pcie")  # the chips of compute capability 9.0

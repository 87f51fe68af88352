"""GEMM: what is fixed by the problem, and what we choose.

What follows from the two stands in `gemm_shape`, the rules that a choice must keep in `gemm_rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ptxgen.configs.base import extents, integer, one_of, option
from ptxgen.isa.dtypes import DType, dtype
from ptxgen.isa.wgmma import WGMMA_INPUTS, WgmmaInput

INPUTS = tuple(WGMMA_INPUTS)
ACCUMULATORS = ("f32", "f16", "s32")
# What each accumulator can be rounded to by the epilogue, once and without changing its kind.
ROUNDINGS = {"f32": ("bf16", "f16", "f32", "e4m3", "e5m2"), "f16": ("f16",), "s32": ("s32",)}
OUTPUTS = ("bf16", "f16", "f32", "s32", "e4m3", "e5m2")
MAJORS = ("k", "mn")
BIASES = ("none", "row", "column")
BIAS_TYPES = ("f32", "out")
ACTIVATIONS = ("none", "relu", "gelu", "gelu_tanh", "silu")
SCALES = ("none", "tensor", "row")
ACCUMULATIONS = ("fast", "promoted")
SWITCH = (0, 1)
PROMOTIONS = (0, 64, 128, 256)  # bytes: what a tensor map may ask of L2
SOURCES = ("smem", "registers")
LOADS = ("tma", "cp_async", "ld")
STORES = ("tma", "direct")
SCHEDULES = ("cooperative", "pingpong", "stream_k")
SPAN = 128  # bytes of a swizzle row: one row of a K-major box, and the unit of tile K

# D where nothing is said about it: 16-bit inputs keep their type.
_OUTPUT_OF_INPUT = {"tf32": "f32", "e4m3": "bf16", "e5m2": "bf16", "s8": "s32", "u8": "s32"}


def _name(*words: str) -> Callable[[str], str]:
    """Reads a dtype by any of its names, or one of the given words."""

    def parse(text: str) -> str:
        if text in words:
            return text
        try:
            return dtype(text).name
        except KeyError as error:
            raise ValueError(error.args[0]) from None

    return parse


def _output(text: str) -> str:
    return "auto" if text == "same" else _name("auto")(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmProblem:
    """D[m,n] = sum over k of A[m,k] B[n,k], summed in the tensor core.

    With an epilogue, D = activation(alpha sum + beta C + bias), in f32 and rounded once. Scales
    multiply alpha, and `out_scale` what is rounded. `gated` problems have two products, of the
    halves B[0] and B[1] of B [2,N,K]: D = activation(alpha sum0) * (alpha sum1).
    `batched` problems have one more axis in front of every array, and multiply matrix by matrix.
    """

    dtype: str = option(
        "bf16", parse=_name("tf32"), legal=", ".join(INPUTS),
        help="type of A and B; tf32 reads f32 arrays and ignores the low 13 bits of the mantissa",
    )  # fmt: skip
    b_dtype: str = option(
        "same", parse=_name("same"), legal="same; e4m3, e5m2 for fp8; s8, u8 for int8",
        help="type of B, where it is not that of A",
    )  # fmt: skip
    acc_dtype: str = option(
        "auto", parse=_name("auto"), legal=f"auto, {', '.join(ACCUMULATORS)}",
        help="type of the sums; auto: s32 for int8, else f32. f16 needs half the registers",
    )  # fmt: skip
    out_dtype: str = option(
        "auto", parse=_output, legal=f"auto, {', '.join(OUTPUTS)}",
        help="type of D; auto (or same): that of A and B, f32 of tf32, bf16 of fp8, s32 of int8",
    )  # fmt: skip
    a_major: str = option(
        "k", parse=one_of(*MAJORS), legal="k; mn for 16-bit types", help="contiguous axis of A"
    )
    b_major: str = option(
        "k", parse=one_of(*MAJORS), legal="k; mn for 16-bit types", help="contiguous axis of B"
    )
    batched: int = option(
        0, parse=integer(), legal="0, 1", help="1: every array has a batch axis in front"
    )
    alpha: int = option(
        0, parse=integer(), legal="0, 1; 1 with f32 sums",
        help="1: an f32 argument alpha multiplies the sums",
    )  # fmt: skip
    beta: int = option(
        0, parse=integer(), legal="0, 1; 1 with f32 sums",
        help="1: adds beta C, an f32 argument and an array like D that is not read where beta is 0",
    )  # fmt: skip
    bias: str = option(
        "none", parse=one_of(*BIASES), legal="none; row, column with f32 sums",
        help="vector that is added: row: [N], the same to every row of D; column: [M], to every "
        "column",
    )  # fmt: skip
    bias_dtype: str = option(
        "f32", parse=one_of(*BIAS_TYPES), legal="f32; out: the type of D", help="type of the bias"
    )
    activation: str = option(
        "none", parse=one_of(*ACTIVATIONS),
        legal="none; relu, gelu (by erf), gelu_tanh, silu with f32 sums",
        help="function of the result, before it is rounded",
    )  # fmt: skip
    scales: str = option(
        "none", parse=one_of(*SCALES), legal="none; tensor, row with f32 sums",
        help="f32 arrays that multiply the sums: tensor: scale_a [1] and scale_b [1]; row: "
        "scale_a [M], one a row of A, and scale_b [N], one a column of D",
    )  # fmt: skip
    gated: int = option(
        0, parse=integer(), legal="0, 1; 1 with f32 sums",
        help="1: B is [2,N,K], and D the activation of the first product times the second: SwiGLU "
        "with silu",
    )  # fmt: skip
    out_scale: int = option(
        0, parse=integer(), legal="0, 1; 1 with f32 sums",
        help="1: an f32 array out_scale [1] multiplies the result, before it is rounded",
    )  # fmt: skip
    amax: int = option(
        0, parse=integer(), legal="0, 1; 1 with f32 sums",
        help="1: an f32 array amax [1] becomes the maximum of itself and every |result| before "
        "out_scale; NaN where one is NaN",
    )  # fmt: skip
    accumulate: str = option(
        "fast", parse=one_of(*ACCUMULATIONS), legal="fast; promoted for fp8 with f32 sums",
        help="promoted: every 128 of K are summed by themselves and added in f32 registers, since "
        "fp8 sums in the tensor core keep 13 bits behind the point",
    )  # fmt: skip

    @property
    def a(self) -> WgmmaInput:
        """What the tensor core takes for A."""
        return WGMMA_INPUTS[self.dtype]

    @property
    def b(self) -> WgmmaInput:
        return WGMMA_INPUTS[self.dtype if self.b_dtype == "same" else self.b_dtype]

    @property
    def accumulator(self) -> str:
        return self.a.accumulators[0] if self.acc_dtype == "auto" else self.acc_dtype

    @property
    def output(self) -> DType:
        """The type of D in memory."""
        if self.out_dtype != "auto":
            return dtype(self.out_dtype)
        if self.accumulator == "f16":
            return dtype("f16")
        return dtype(_OUTPUT_OF_INPUT.get(self.dtype, self.dtype))

    @property
    def bias_type(self) -> DType:
        """The type of the bias in memory."""
        return dtype("f32") if self.bias_dtype == "f32" else self.output

    @property
    def finishes(self) -> bool:
        """Whether anything is done to the sums before they are rounded."""
        switches = self.alpha or self.beta or self.gated or self.out_scale or self.amax
        words = (self.bias, self.activation, self.scales)
        return bool(switches) or any(word != "none" for word in words)

    @property
    def halves(self) -> int:
        """Products that make one D."""
        return 2 if self.gated else 1

    @property
    def promoted(self) -> bool:
        """Whether sums leave the tensor core on the way."""
        return self.accumulate == "promoted"


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmConfig:
    """Our choice for a GEMM. 0 means "derive it": see `Gemm.resolved`."""

    tile: tuple[int, ...] = option(
        (128, 256), parse=extents(2, 3),
        legal="MxN or MxNxK; M: 64..384 step 64, N: 8..256 step 8, K: 1..4 rows of 128 bytes",
        help="elements of D a CTA computes, and of K a stage holds: one 128-byte row if not told",
    )  # fmt: skip
    stages: int | Literal["max"] = option(
        4, parse=integer("max"), legal="1.. as many as fit, or max", help="depth of the TMA ring"
    )
    cluster: tuple[int, int] = option(
        (2, 1), parse=extents(2), legal="1x1, 2x1, 1x2, 2x2",
        help="CTAs along M x N that share loads: along M they share B, along N they share A",
    )  # fmt: skip
    split_k: int = option(
        1, parse=integer(), legal="1, 2, 4, 8; above 1 with cluster=1x1",
        help="CTAs of a cluster that share the K of a tile and add up through shared memory",
    )  # fmt: skip
    swap_ab: int = option(
        0, parse=integer(), legal="0, 1",
        help="1: tile M runs along N of the problem and tile N along M, for products with few rows",
    )  # fmt: skip
    consumers: int = option(
        0, parse=integer(), legal="1..3; 0: derive",
        help="consumer warpgroups; each takes tile M / consumers rows, in turns all of them",
    )  # fmt: skip
    schedule: str = option(
        "cooperative", parse=one_of(*SCHEDULES), legal=", ".join(SCHEDULES),
        help="cooperative: all consumers share every tile; pingpong: two take whole tiles in "
        "turns, and one stores while the other multiplies; stream_k: shared tiles, and the last "
        "wave, where it is not full, is shared out among all clusters",
    )  # fmt: skip
    a_source: str = option(
        "smem", parse=one_of(*SOURCES), legal="smem; registers with wait_depth=0",
        help="where wgmma takes the rows of a tile from; registers: ldmatrix brings them",
    )  # fmt: skip
    wait_depth: int = option(
        1, parse=integer(), legal="0, 1",
        help="wgmma groups in flight while the next stage is awaited",
    )  # fmt: skip
    load: str = option(
        "tma", parse=one_of(*LOADS), legal="tma; cp_async, ld with cluster=1x1 and K-major A and B",
        help="how A and B come: tma, in rows whose pitch is a multiple of 16 bytes; cp_async: 4 "
        "bytes a thread, from rows whose pitch is a multiple of 4; ld: element by element, at any "
        "pitch and address; both slower",
    )  # fmt: skip
    store: str = option(
        "tma", parse=one_of(*STORES), legal=", ".join(STORES),
        help="how D leaves: tma through shared memory, in rows whose pitch is a multiple of 16 "
        "bytes; direct: element by element from registers, at any pitch and address; slower",
    )  # fmt: skip
    store_n: int = option(
        0, parse=integer(), legal="divisors of tile N / split_k; 0: derive, at most 64",
        help="columns of the tile finished and stored at once",
    )  # fmt: skip
    store_slabs: int = option(
        0, parse=integer(), legal="1.. ; 0: derive; 0 with store=direct",
        help="D slabs a consumer may have in flight",
    )  # fmt: skip
    l2_promotion: int = option(
        128, parse=integer(), legal="0, 64, 128, 256",
        help="bytes that L2 brings from memory for a load that misses; 256 suits rows of A and B "
        "whose pitch is a multiple of 256 bytes",
    )  # fmt: skip

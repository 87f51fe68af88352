"""The kernel of operands.ptx.j2: wgmma on operands in every layout, held against their product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from block_kernel import BlockKernel, block_kernel
from machines import Runner

from ptxgen.isa.dtypes import dtype
from ptxgen.isa.wgmma import WGMMA_INPUTS
from ptxgen.layout import fragments
from ptxgen.layout.smem_desc import OperandLayout, k_major, mn_major
from ptxgen.spec import PointerParam

PARAMS = (
    PointerParam(name="images", arg="images", dtype="u8", align=4),
    PointerParam(name="descriptors", arg="descriptors", dtype="u64", align=16),
    PointerParam(name="out", arg="out", dtype="u32", access="write"),
)
SPANS = (0, 32, 64, 128)
ROWS, K_BYTES = 64, 128
A_BYTES = ROWS * K_BYTES
ORDERS = tuple(product(("k", "mn"), repeat=2))


@dataclass(frozen=True)
class Form:
    """A wgmma of one type, width and pair of orders, as the template takes it."""

    name: str
    n: int
    orders: tuple[str, str]

    @property
    def type(self) -> str:
        math = WGMMA_INPUTS[self.name]
        return f"m64n{self.n}k{math.k}.{math.accumulators[0]}.{self.name}.{self.name}"

    @property
    def register(self) -> str:
        return "acc" if WGMMA_INPUTS[self.name].accumulators[0] == "s32" else "sum"

    @property
    def flags(self) -> str:
        math = WGMMA_INPUTS[self.name]
        transposes = "".join(f", {int(order == 'mn')}" for order in self.orders)
        return (", 1, 1" if math.scales else "") + (transposes if math.transposes else "")

    def layouts(self, span: int) -> Iterator[OperandLayout]:
        """Of A and B. MN-major rows are whole: what lies beside the N columns is not asked for."""
        storage = dtype(WGMMA_INPUTS[self.name].storage)
        k = K_BYTES // storage.bytes
        for order, mn in zip(self.orders, (ROWS, self.n), strict=True):
            if order == "k":
                yield k_major(storage.name, span, mn=mn, k=k)
            else:
                row = max(span, 16) // storage.bytes
                yield mn_major(storage.name, span, mn=-(-mn // row) * row, k=k)


def image(layout: OperandLayout, tile: np.ndarray, size: int) -> np.ndarray:
    """Bytes of shared memory with the tile in that layout, and elsewhere 0xFF: NaN, or -1."""
    out = np.full(size, 0xFF, np.uint8)
    mn, k = np.meshgrid(np.arange(len(tile)), np.arange(layout.k), indexing="ij")
    at = np.asarray(layout.address(mn, k))
    raw = np.ascontiguousarray(tile).view(np.uint8).reshape(*tile.shape, -1)
    for byte in range(raw.shape[-1]):
        out[at + byte] = raw[..., byte]
    return out


def kernel_of(forms: Sequence[Form]) -> BlockKernel:
    """Forms of one N, each in every swizzle."""
    b_bytes = bytes_of_b(forms)
    return block_kernel(
        "operands", PARAMS, block=128, grid=1, smem_bytes=A_BYTES + b_bytes, n=forms[0].n,
        forms=forms, cases=len(SPANS), accumulators=forms[0].n // 2,
        image_words=(A_BYTES + b_bytes) // 4,
    )  # fmt: skip


def bytes_of_b(forms: Sequence[Form]) -> int:
    """Of the largest layout."""
    return max(tuple(form.layouts(span))[1].bytes for form in forms for span in SPANS)


def assert_products(forms: Sequence[Form], runner: Runner) -> None:
    """All by one launch."""
    n = forms[0].n
    accumulators = n // 2
    rng = np.random.default_rng(n)
    b_bytes = bytes_of_b(forms)
    images, words, wants = [], [], []
    for form, span in product(forms, SPANS):
        a_layout, b_layout = form.layouts(span)
        low = 0 if form.name == "u8" else -3
        a, b = (
            rng.integers(low, 4, (rows, a_layout.k)).astype(a_layout.dtype.np_dtype)
            for rows in (ROWS, n)
        )
        images += [image(a_layout, a, A_BYTES), image(b_layout, b, b_bytes)]
        words += [
            (a_layout.template_bits + a_layout.k_units(step),
             b_layout.template_bits + b_layout.k_units(step) + A_BYTES // 16)
            for step in range(4)
        ]  # fmt: skip
        sums = a.astype(np.float64) @ b.astype(np.float64).T
        wants.append(sums.astype(np.int32 if form.register == "acc" else np.float32))
    out = runner.run(
        kernel_of(forms),
        {"images": np.concatenate(images), "descriptors": np.array(words, np.uint64)},
        {"out": ((len(wants), accumulators // 4, 128, 4), np.uint32)},
    )["out"]  # fmt: skip
    four, thread, one = np.indices((accumulators // 4, 128, 4))
    rows, columns = fragments.wgmma_d(thread, 4 * four + one)
    for (form, span), got, want in zip(product(forms, SPANS), out, wants, strict=True):
        wrong = got != want[rows, columns].view(np.uint32)
        assert not wrong.any(), f"{form}, swizzle {span}: {wrong.sum()} of {wrong.size} wrong"

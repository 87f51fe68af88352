"""Register fragments, drawn as the matrix they cover: which thread holds which element, and where.

Everything comes from the maps in `fragments` and `mma_fragments`; nothing is known here but how to
label it. A cell is what one thread holds side by side in a row, written thread:registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import WARP_THREADS, WARPGROUP_THREADS
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.layout import fragments as f
from ptxgen.layout.mma_fragments import MMA_N, mma_b_owner
from ptxgen.view import Cell, Grid, Stack, Tone, View

WARP_ROWS = 16  # rows of D and A that one warp holds
WARPS = 4
WGMMA_N = range(8, 257, 8)
_K_REGISTERS = 8  # registers side by side along k of a 16 x k A fragment: 4 threads, twice

_THREADS_A_ROW = 4  # lanes that share a row of eight columns

# (row, column) -> (thread, register, slot in the register)
Owner = Callable[[int, int], tuple[int, int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """One fragment as a matrix: `side` columns in a row of it belong to the same thread."""

    title: str
    rows: range
    columns: int
    side: int
    owner: Owner
    axes: str = "row\\col"
    notes: tuple[str, ...] = ()
    row_labels: tuple[str, ...] = ()

    def grid(self, thread: int | None = None) -> Grid:
        """The drawing. Hues tell registers apart; a given thread's cells are marked instead."""
        labels = [
            str(c) if self.side == 1 else f"{c}-{c + self.side - 1}"
            for c in range(0, self.columns, self.side)
        ]
        return Grid(
            title=self.title,
            rows=tuple(
                tuple(self._cell(r, c, thread) for c in range(0, self.columns, self.side))
                for r in self.rows
            ),
            row_labels=self.row_labels or tuple(map(str, self.rows)),
            column_labels=tuple(labels),
            corner=self.axes,
            group=_THREADS_A_ROW if self.side > 1 else 1,
            notes=("cells are thread:register", *self.notes),
        )

    def _cell(self, row: int, column: int, thread: int | None) -> Cell:
        owners = [self.owner(row, c) for c in range(column, column + self.side)]
        holder = owners[0][0]
        registers = sorted({register for _, register, _ in owners})
        label = "-".join(map(str, dict.fromkeys((registers[0], registers[-1]))))
        places = ", ".join(f"register {r} slot {s}" for _, r, s in owners)
        tone: Tone = registers[0] // len(registers)
        if thread is not None:
            tone = "mark" if holder == thread else "plain"
        return Cell(
            label=f"{holder}:{label}",
            tone=tone,
            tip=f"row {row}, columns from {column}: thread {holder}, {places}",
        )


def fragment(
    name: str,
    *,
    n: int = 64,
    dtype: str = "bf16",
    warp: int | None = 0,
    thread: int | None = None,
    trans: bool = False,
) -> View:
    """The drawing of a fragment of this name (`NAMES`).

    `n` is the width of a wgmma D, `dtype` the element type of an A or B fragment (tf32 is f32) and
    of D (f16: packed pairs). `warp` picks the 16 rows of one warp of the warpgroup; None draws all
    64. `thread` marks what one thread holds. `trans` is that of ldmatrix and stmatrix.
    Raises ConfigError for an unknown name, a width that wgmma does not have, or a dtype without
    such a fragment.
    """
    broken = _violations(name, n, dtype, warp, thread)
    if broken:
        raise ConfigError(f"no such fragment: {name}", broken)
    rows = range(64) if warp is None else range(WARP_ROWS * warp, WARP_ROWS * (warp + 1))
    return NAMES[name](n, dtype, rows, thread, trans)


def _wgmma_d(n: int, dtype: str, rows: range, thread: int | None, _: bool) -> View:
    packed = dtype_row(dtype).name == "f16"

    def owner(row: int, column: int) -> tuple[int, int, int]:
        if packed:
            return f.wgmma_d_f16_owner(row, column)
        return (*f.wgmma_d_owner(row, column), 0)

    count = n // 4 if packed else n // 2
    step = 2 if packed else 4
    return Fragment(
        title=f"wgmma D of m64n{n}, {'f16' if packed else 'f32 (s32 alike)'}: "
        f"{count} registers a thread, rows {rows.start}-{rows.stop - 1}",
        rows=rows,
        columns=n,
        side=2,
        owner=owner,
        notes=(
            f"every 8 columns the registers go up by {step}; warp w holds rows 16w..16w+15",
            "row = 16 warp + lane/4 + 8 (i>>1 & 1), column = 8 (i>>2) + 2 (lane%4) + (i&1)"
            + (", register i/2" if packed else ""),
        ),
    ).grid(thread)


def _a(title: str, dtype: str, rows: range, thread: int | None) -> View:
    bits = dtype_row(dtype).bits
    side = f.elements_per_register(bits)
    return Fragment(
        title=f"{title} A, {dtype}: 4 registers a thread, {side} elements each",
        rows=rows,
        columns=_K_REGISTERS * side,
        side=side,
        axes="row\\k",
        owner=lambda row, k: f.wgmma_a_owner(bits, row, k),
        notes=("the low bits of a register hold the lower k",),
    ).grid(thread)


def _wgmma_a(n: int, dtype: str, rows: range, thread: int | None, _: bool) -> View:
    return _a("wgmma", dtype, rows, thread)


def _mma_a(n: int, dtype: str, rows: range, thread: int | None, _: bool) -> View:
    k = _K_REGISTERS * f.elements_per_register(dtype_row(dtype).bits)
    return _a(f"mma m16n8k{k}", dtype, range(WARP_ROWS), thread)


def _mma_b(n: int, dtype: str, rows: range, thread: int | None, _: bool) -> View:
    """Drawn as B transposed, one row a column n, because a thread holds neighbours along k."""
    bits = dtype_row(dtype).bits
    side = f.elements_per_register(bits)
    return Fragment(
        title=f"mma m16n8k{_K_REGISTERS * side} B, {dtype}: 2 registers a thread",
        rows=range(MMA_N),
        columns=_K_REGISTERS * side,
        side=side,
        axes="n\\k",
        owner=lambda column, k: mma_b_owner(bits, k, column),
        notes=("rows of the drawing are columns n of B",),
    ).grid(thread)


def _mma_c(n: int, dtype: str, rows: range, thread: int | None, _: bool) -> View:
    return Fragment(
        title="mma m16n8k* C and D, f32: 4 registers a thread",
        rows=range(WARP_ROWS),
        columns=MMA_N,
        side=2,
        owner=lambda row, column: (*f.wgmma_d_owner(row, column), 0),
        notes=("the same as one warp of wgmma D with N = 8",),
    ).grid(thread)


def _ldmatrix(n: int, dtype: str, rows: range, thread: int | None, trans: bool) -> View:
    """Four matrices: register j of every lane belongs to matrix j."""

    def matrix(j: int) -> Grid:
        def owner(row: int, column: int) -> tuple[int, int, int]:
            lane, half = f.ldmatrix_owner(row, column, trans=trans)
            return lane, j, half

        return Fragment(
            title=f"ldmatrix{'.trans' if trans else ''} matrix {j}, in register {j}",
            rows=range(8),
            columns=8,
            side=1 if trans else 2,
            owner=owner,
            row_labels=tuple(f"{r} <- address of lane {8 * j + r}" for r in range(8)),
        ).grid(thread)

    return Stack(tuple(matrix(j) for j in range(4)))


def _stmatrix(n: int, dtype: str, rows: range, thread: int | None, trans: bool) -> View:
    """One stmatrix.x4 of a packed 16 x 16 block of D, as the epilogue stores it."""
    addressed: dict[int, list[int]] = {}
    for lane in range(WARP_THREADS):
        addressed.setdefault(f.stmatrix_d(lane)[0], []).append(lane)
    registers = {pair: j for j, pair in enumerate(f.d_to_a_registers(0))}

    def owner(row: int, column: int) -> tuple[int, int, int]:
        lane, element = f.wgmma_d_owner(row, column)
        low = element - element % 2
        return lane, registers[low, low + 1], element % 2

    return Fragment(
        title="stmatrix.x4 of 16 columns of D, packed to 16 bits: 4 registers a lane",
        rows=range(WARP_ROWS),
        columns=16,
        side=2,
        owner=owner,
        row_labels=tuple(
            f"{row} <- addresses of lanes {' and '.join(map(str, addressed[row]))}"
            for row in range(WARP_ROWS)
        ),
        notes=(
            "lane l addresses 16 bytes: row l & 15, columns 8 (l >> 4)..8 (l >> 4) + 7",
            "registers pack the elements "
            + ", ".join(f"{j}: ({low},{high})" for (low, high), j in registers.items()),
        ),
    ).grid(thread)


NAMES: Mapping[str, Callable[[int, str, range, int | None, bool], View]] = MappingProxyType(
    {
        "wgmma_d": _wgmma_d,
        "wgmma_a": _wgmma_a,
        "mma_a": _mma_a,
        "mma_b": _mma_b,
        "mma_c": _mma_c,
        "ldmatrix": _ldmatrix,
        "stmatrix": _stmatrix,
    }
)


def _violations(
    name: str, n: int, dtype: str, warp: int | None, thread: int | None
) -> list[Violation]:
    broken = []
    if name not in NAMES:
        broken.append(Violation(field="name", got=name, rule=f"must be one of {', '.join(NAMES)}"))
    if n not in WGMMA_N:
        nearest = min(max(-(-n // 8) * 8, WGMMA_N[0]), WGMMA_N[-1])
        broken.append(
            Violation(
                field="n", got=str(n), rule="must be 8..256 in steps of 8", fix=f"use {nearest}"
            )
        )
    try:
        dtype_row(dtype)
    except KeyError as error:
        broken.append(Violation(field="dtype", got=dtype, rule=error.args[0]))
    if warp is not None and not 0 <= warp < WARPS:
        broken.append(Violation(field="warp", got=str(warp), rule=f"must be 0..{WARPS - 1}"))
    if thread is not None and not 0 <= thread < WARPGROUP_THREADS:
        broken.append(
            Violation(field="thread", got=str(thread), rule=f"must be 0..{WARPGROUP_THREADS - 1}")
        )
    return broken

"""`ptxgen layout`: swizzles, register fragments, descriptors, tensor maps and accesses, drawn."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from ptxgen.app.output import Answer
from ptxgen.app.views import rich_text, save
from ptxgen.errors import ArgumentError, ConfigError, Violation
from ptxgen.isa.arch import TENSOR_MAP_BYTES
from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.layout.access import AccessPattern, access
from ptxgen.layout.draw_desc import desc_remarks, desc_view, tensor_map_of_hex, tensor_map_view
from ptxgen.layout.draw_fragments import fragment
from ptxgen.layout.draw_swizzle import column_conflict, swizzle_grid
from ptxgen.layout.smem_desc import SmemDesc
from ptxgen.layout.swizzle import CHUNK_BYTES, Swizzle
from ptxgen.spec import Dim3
from ptxgen.view import Grid, Stack, View


def swizzle(span: int, dtype: str, output: Path | None) -> Answer:
    """One atom of a swizzle as it lies in shared memory."""
    mode = Swizzle(span)
    _known_dtype(dtype)
    data = {
        "span": mode.span,
        "atom_bytes": mode.atom_bytes,
        "row_bytes": mode.row_bytes,
        "column_conflict": column_conflict(mode, mode.row_bytes),
        "chunks": [
            {"physical": mode.apply(a), "logical": a, "row": a // mode.row_bytes,
             "chunk": a % mode.row_bytes // CHUNK_BYTES}
            for a in range(0, mode.atom_bytes, CHUNK_BYTES)
        ],
    }  # fmt: skip
    return _answer(data, swizzle_grid(mode, dtype), output, f"swizzle {mode}")


def fragments(
    name: str,
    *,
    n: int,
    dtype: str,
    warp: int | None,
    thread: int | None,
    trans: bool,
    output: Path | None,
) -> Answer:
    """A register fragment as the matrix that it covers."""
    view = fragment(name, n=n, dtype=dtype, warp=warp, thread=thread, trans=trans)
    grids = view.parts if isinstance(view, Stack) else (view,)
    data = {"fragment": name, "grids": [_grid_data(g) for g in grids if isinstance(g, Grid)]}
    return _answer(data, view, output, f"fragment {name}")


def descriptor(text: str, output: Path | None) -> Answer:
    """A 64-bit wgmma matrix descriptor, field by field."""
    try:
        bits = int(text.replace("_", ""), 0)
    except ValueError:
        raise ConfigError(
            "not a wgmma matrix descriptor",
            [Violation(field="bits", got=text, rule="must be a number, like 0x4000004000010000")],
        ) from None
    view = desc_view(bits)
    desc = SmemDesc.decode(bits)
    data = {
        "bits": f"0x{bits:016x}",
        **{key: value for key, value in asdict(desc).items() if key != "swizzle"},
        "swizzle": desc.swizzle.span,
        "remarks": desc_remarks(bits),
    }
    return _answer(data, view, output, f"descriptor 0x{bits:016x}")


def tensor_map(text: str, output: Path | None) -> Answer:
    """The 128 bytes of a tensor map, from hex digits, a file (@FILE), or stdin (-)."""
    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        text = _hex_of_file(Path(text[1:]))
    spec = tensor_map_of_hex(text)
    data = {**asdict(spec), "box_bytes": spec.box_bytes}
    return _answer(data, tensor_map_view(spec), output, "tensor map")


def banks(
    expression: str,
    *,
    width: int,
    block: str,
    constants: Sequence[str],
    swizzle_span: int,
    base: int,
    output: Path | None,
) -> Answer:
    """What an index expression costs in global memory and in shared memory."""
    pattern: AccessPattern = access(
        expression,
        width=width,
        block=_block(block),
        constants=_constants(constants),
        swizzle=swizzle_span,
        base=base,
    )
    return _answer(pattern.to_dict(), pattern.view(), output, f"access {expression}")


def _answer(data: Mapping[str, object], view: View, output: Path | None, title: str) -> Answer:
    if output is not None:
        save(view, output, title)
    return Answer(data=data, view=rich_text(view))


def _grid_data(grid: Grid) -> dict[str, object]:
    return {
        "title": grid.title,
        "rows": [[cell.label for cell in row] for row in grid.rows],
        "row_labels": grid.row_labels,
        "column_labels": grid.column_labels,
    }


def _known_dtype(name: str) -> None:
    try:
        dtype_row(name)
    except KeyError as error:
        raise ConfigError(
            "unknown dtype", [Violation(field="dtype", got=name, rule=error.args[0])]
        ) from None


def _hex_of_file(path: Path) -> str:
    """Hex text, or the raw bytes themselves, which no text of a whole map is as short as."""
    raw = path.read_bytes()
    return raw.hex() if len(raw) == TENSOR_MAP_BYTES else raw.decode("ascii", errors="replace")


def _block(text: str) -> Dim3:
    parts = text.lower().split("x")
    if not 1 <= len(parts) <= 3 or not all(part.isdigit() for part in parts):
        raise ArgumentError(
            "no such block",
            [Violation(field="--block", got=text, rule="must be X, XxY or XxYxZ, like 32x8")],
        )
    return Dim3(*map(int, parts))


def _constants(texts: Sequence[str]) -> dict[str, int]:
    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            found[name.strip()] = int(value, 0)
        except ValueError:
            raise ArgumentError(
                "no such constant",
                [Violation(field="--let", got=text, rule="must be NAME=INTEGER, like K=64")],
            ) from None
    return found

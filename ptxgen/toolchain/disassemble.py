"""cubin -> SASS, by nvdisasm's JSON.

What the JSON holds for each instruction is opcode, operands, predicate and flags. Addresses are
implied (instructions of one size, in order, from "start"), branch targets are resolved addresses,
and source lines are absent; those come from the cubin's own line table.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ptxgen import env
from ptxgen.errors import ToolchainError
from ptxgen.toolchain import discover
from ptxgen.toolchain.assemble import Cubin
from ptxgen.toolchain.cache import Store, content_key, shared_store
from ptxgen.toolchain.discover import Tool
from ptxgen.toolchain.dump import dump
from ptxgen.toolchain.lineinfo import LineTable, line_tables
from ptxgen.toolchain.process import run_tool, scratch_folder
from ptxgen.toolchain.sass import Instruction, Sass, SassFunction

TIMEOUT_S = 300.0
INSTRUCTION_BYTES = 16  # of every chip since sm_70
_OPTIONS = ("-json",)
_INPUT = "kernel.cubin"
_MEMORY_ENTRIES = 256

_parsed: OrderedDict[str, Sass] = OrderedDict()
_parsed_lock = threading.Lock()


def disassemble(
    cubin: Cubin | bytes,
    *,
    nvdisasm: Tool | None = None,
    store: Store | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Sass:
    """The SASS of a cubin.

    Args:
        cubin: from `assemble`, or the bytes of a cubin from elsewhere.
        nvdisasm: the disassembler; `discover.nvdisasm()` when None.
        store: the cache; the shared one under PTXGEN_CACHE_DIR when None.
        timeout_s: seconds after which nvdisasm is stopped.

    Raises:
        ToolMissing: there is no nvdisasm.
        ToolchainError: nvdisasm cannot read the cubin (both versions are named), or did not end.
    """
    data = cubin if isinstance(cubin, bytes) else cubin.bytes
    tool = nvdisasm or discover.nvdisasm()
    digest = hashlib.sha256(data).hexdigest()
    key = content_key(
        [("nvdisasm", f"{tool.version_text} {tool.build}"), ("options", " ".join(_OPTIONS)),
         ("cubin", digest)]
    )  # fmt: skip
    with _parsed_lock:
        if key in _parsed:
            _parsed.move_to_end(key)
            return _parsed[key]
    store = store or shared_store("sass")
    cached = store.get(key)
    text = cached.decode() if cached is not None else run_nvdisasm(data, tool, _OPTIONS, timeout_s)
    sass = parse_json(text, line_tables(data), cubin_sha256=digest, nvdisasm=tool.version_text)
    if cached is None:
        store.put(key, text.encode())
    dump(_entry(cubin, sass), digest, {".sass": str(sass)})
    with _parsed_lock:
        _parsed[key] = sass
        while len(_parsed) > _MEMORY_ENTRIES:
            _parsed.popitem(last=False)
    return sass


def _entry(cubin: Cubin | bytes, sass: Sass) -> str:
    """The name under which `assemble` dumped this cubin: its first entry in ptxas's order."""
    if not isinstance(cubin, bytes) and cubin.report.entries:
        return cubin.report.entries[0].function
    return sass.functions[0].name if sass.functions else ""


def parse_json(
    text: str,
    lines: Mapping[str, LineTable] | None = None,
    *,
    cubin_sha256: str = "",
    nvdisasm: str = "",
) -> Sass:
    """Read the output of `nvdisasm -json`. Raises ToolchainError when it is not that."""
    try:
        header, functions = json.loads(text)
        notes = header.get(".note.nv.tkinfo", {})
        return Sass(
            functions=tuple(_function(f, lines or {}) for f in _whole(functions)),
            cubin_sha256=cubin_sha256,
            ptxas=notes.get("tki_toolVersion", "").rpartition("V")[2],
            nvdisasm=nvdisasm,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolchainError(
            f"nvdisasm {nvdisasm}: its JSON has a form that this reader does not know "
            f"({type(error).__name__}: {error}; it begins {text[:80]!r}). "
            f"Cure: set {env.NVDISASM.name} to another release; 13.0 to 13.5 are known to work."
        ) from error


def _whole(functions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Functions of whole sections.

    nvdisasm 13.0 lists the helpers of an entry (".func", division) as functions of their own behind
    it, while its length is that of them all; later ones list them as the entry's instructions.
    """
    whole: list[Mapping[str, Any]] = []
    end = missing = 0
    for raw in functions:
        rows = raw["sass-instructions"]
        if missing and int(raw["start"]) == end:
            whole[-1] = {**whole[-1], "sass-instructions": whole[-1]["sass-instructions"] + rows}
            missing -= len(rows)
        else:
            whole.append(raw)
            end, missing = int(raw["start"]), int(raw["length"]) // INSTRUCTION_BYTES - len(rows)
        end += len(rows) * INSTRUCTION_BYTES
    return whole


def _function(raw: Mapping[str, Any], lines: Mapping[str, LineTable]) -> SassFunction:
    name = str(raw["function-name"])
    rows = raw["sass-instructions"]
    start = int(raw["start"])
    table = lines.get(name, LineTable(rows=()))
    return SassFunction(
        name=name,
        instructions=tuple(
            Instruction(
                address=start + INSTRUCTION_BYTES * index,
                opcode=row["opcode"],
                operands=row.get("operands", ""),
                predicate=row.get("predicate", ""),
                function=name,
                line=table.line_at(start + INSTRUCTION_BYTES * index),
            )
            for index, row in enumerate(rows)
        ),
    )


def run_nvdisasm(
    data: bytes, tool: Tool, options: Sequence[str], timeout_s: float = TIMEOUT_S
) -> str:
    """What nvdisasm prints for a cubin. Raises ToolchainError when it cannot read it."""
    with scratch_folder() as folder:
        (Path(folder) / _INPUT).write_bytes(data)
        done = run_tool(tool, [*options, _INPUT], folder=folder, timeout_s=timeout_s)
    if done.exit_code != 0:
        how = f"crashed ({done.signal_name})" if done.signal_name else f"exit {done.exit_code}"
        said = "\n".join(f"  {line}" for line in (done.stderr or done.stdout).splitlines()[-10:])
        raise ToolchainError(
            f"{tool} cannot read this cubin of {len(data):,} B ({how}; the cubin was made by "
            f"{_maker(data)})\n{said}\n"
            f"Cure: use an nvdisasm at least as new as the ptxas that made the cubin "
            f"(pip install -U nvidia-cuda-nvdisasm, or {env.NVDISASM.name})."
        )
    return done.stdout


def _maker(cubin: bytes) -> str:
    """What the cubin says of the tool that made it, for messages."""
    at = cubin.find(b"Cuda compilation tools, release")
    if at < 0:
        return "an unknown tool"
    return cubin[at : cubin.find(b"\0", at)].decode("ascii", "replace")[:80]

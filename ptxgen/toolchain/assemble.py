"""PTX text -> cubin, by ptxas, cached by content.

    assemble(ptx) -> Cubin            raises AssembleError when ptxas refuses
    require_clean(cubin) -> Cubin     raises AdvisoryError when ptxas gave something up

The two are separate so that a caller can look at a cubin that is not clean. Two runs of one ptxas
on one text give the same bytes: the file name and folder do not enter the cubin.
"""

from __future__ import annotations

import builtins
import hashlib
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ptxgen import env
from ptxgen.errors import AdvisoryError, AssembleError
from ptxgen.toolchain import discover
from ptxgen.toolchain.cache import Store, content_key, shared_store
from ptxgen.toolchain.diagnostics import AssemblyReport, annotate, parse_log, render_all
from ptxgen.toolchain.discover import Tool
from ptxgen.toolchain.dump import dump
from ptxgen.toolchain.process import Finished, run_tool, scratch_folder
from ptxgen.view import Shown, View
from ptxgen.view.lexical import plain

Locate: TypeAlias = Callable[[int], str | None]

DEFAULT_TARGET = "sm_90a"
# -v reports resources. -lineinfo adds a PTX line to every instruction and changes none of them.
BASE_OPTIONS = ("-v", "-lineinfo")
# Our kernels are laid out by hand: ptxas makes the same SASS of them without its expensive passes,
# and takes 0.78 to 0.93 of the time for the largest. PTX of others is assembled with all of them.
HAND_WRITTEN = ("--allow-expensive-optimizations=false",)
TIMEOUT_S = 300.0
_FORMAT = "1"  # of the cached record; raise it when the record changes
_INPUT, _OUTPUT = "kernel.ptx", "kernel.cubin"


class AdvisoryWarning(UserWarning):
    """ptxas gave something up, and PTXGEN_ADVISORIES=warn asked to go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cubin(Shown):
    """A cubin and where it came from. `key` is its name in the cache.

    `options` are all of ptxas's options but the file names; `log` is its raw output, and `report`
    that output as data.
    """

    bytes: builtins.bytes
    sha256: str
    key: str
    ptxas: str  # "13.5.37"
    target: str
    options: tuple[str, ...]
    log: str
    report: AssemblyReport

    def to_dict(self) -> dict[str, object]:
        """For JSON: everything but the bytes."""
        return {
            "bytes": len(self.bytes),
            "sha256": self.sha256,
            "key": self.key,
            "ptxas": self.ptxas,
            "target": self.target,
            "options": list(self.options),
            "report": self.report.to_dict(),
        }

    def view(self) -> View:
        """Where it came from, and ptxas's report."""
        return plain(str(self))

    def __str__(self) -> str:
        head = f"cubin {self.sha256[:12]}  {len(self.bytes):,} B  ptxas {self.ptxas}  {self.target}"
        return f"{head}\n{self.report}"


def assemble(
    ptx: str,
    *,
    target: str = DEFAULT_TARGET,
    ptxas: Tool | None = None,
    options: Sequence[str] = (),
    locate: Locate | None = None,
    store: Store | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Cubin:
    """Assemble PTX for one chip, or take the cubin from the cache.

    Args:
        ptx: a whole module.
        target: ptxas's -arch. Code with wgmma or setmaxnreg needs "sm_90a".
        ptxas: the assembler; `discover.ptxas()` when None.
        options: further options of ptxas, e.g. ("-O1",).
        locate: PTX line (from 1) -> text that names its template line, for messages.
        store: the cache; the shared one under PTXGEN_CACHE_DIR when None.
        timeout_s: seconds after which ptxas is stopped.

    Raises:
        ToolMissing: there is no ptxas.
        AssembleError: ptxas refused the PTX (each refusal with its PTX and template line), crashed,
            or did not end in time.
    """
    tool = ptxas or discover.ptxas()
    flags = (*BASE_OPTIONS, f"-arch={target}", *options)
    store = store or shared_store("cubin")
    key = cubin_key(ptx, tool, flags)
    cached = store.get(key)
    record = _decode(cached) if cached is not None else None
    if record is None:
        record = _run(ptx, tool, flags, timeout_s, locate)
        store.put(key, _encode(*record))
    data, log = record
    report = parse_log(log)
    sha256 = hashlib.sha256(data).hexdigest()
    entry = report.entries[0].function if report.entries else ""
    dump(entry, sha256, {".ptx": ptx, ".cubin": data, ".log": log})
    return Cubin(
        bytes=data,
        sha256=sha256,
        key=key,
        ptxas=tool.version_text,
        target=target,
        options=flags,
        log=log,
        report=annotate(report, ptx, locate),
    )


def cubin_key(ptx: str, tool: Tool, flags: Sequence[str]) -> str:
    """The cache key: everything that the cubin depends on."""
    return content_key(
        [
            ("format", _FORMAT),
            ("ptx", ptx),
            ("ptxas", f"{tool.version_text} {tool.build}"),
            *(("flag", flag) for flag in flags),
        ]
    )


def require_clean(cubin: Cubin) -> Cubin:
    """The cubin itself if ptxas gave nothing up: no advisory, no spill, no stack frame.

    Otherwise raises AdvisoryError with every loss and its cure, or warns with AdvisoryWarning where
    PTXGEN_ADVISORIES=warn.
    """
    losses = cubin.report.losses
    if not losses:
        return cubin
    text = "\n".join(
        [
            f"ptxas {cubin.ptxas} made a cubin, but gave something up ({len(losses)}):",
            *(f"  {line}" for loss in losses for line in loss.splitlines()),
        ]
    )
    if env.ADVISORIES.get() == "error":
        cure = f"Set {env.ADVISORIES.name}=warn to go on with this cubin."
        raise AdvisoryError(f"{text}\n{cure}", log=cubin.log)
    warnings.warn(text, AdvisoryWarning, stacklevel=2)
    return cubin


def _encode(data: bytes, log: str) -> bytes:
    return json.dumps({"log": log}).encode() + b"\n" + data


def _decode(payload: bytes) -> tuple[bytes, str] | None:
    """None for a record that this version did not write: a miss, like a damaged entry."""
    try:
        head, _, data = payload.partition(b"\n")
        return data, str(json.loads(head)["log"])
    except (ValueError, KeyError, TypeError):
        return None


def _run(
    ptx: str, tool: Tool, flags: Sequence[str], timeout_s: float, locate: Locate | None
) -> tuple[bytes, str]:
    """Run ptxas in a folder of its own: (cubin, log)."""
    with scratch_folder(AssembleError) as folder:
        (Path(folder) / _INPUT).write_text(ptx, encoding="utf-8")
        done = run_tool(
            tool,
            [*flags, _INPUT, "-o", _OUTPUT],
            folder=folder,
            timeout_s=timeout_s,
            error=AssembleError,
            timeout_cure="unroll less, use a smaller tile, or pass a larger timeout_s",
        )
        output = Path(folder) / _OUTPUT
        data = output.read_bytes() if done.exit_code == 0 and output.is_file() else b""
    if not data:
        raise _refusal(ptx, tool, flags, done, locate)
    return data, done.stdout + done.stderr


def _refusal(
    ptx: str, tool: Tool, flags: Sequence[str], done: Finished, locate: Locate | None
) -> AssembleError:
    """The error for PTX that gave no cubin: each refusal with its lines, or what else happened."""
    log = done.stdout + done.stderr
    how = f"{tool}, options {' '.join(flags)}"
    if done.signal_name:
        head = f"ptxas crashed ({done.signal_name}) on {len(ptx):,} characters of PTX ({how})"
    elif done.exit_code:
        head = f"ptxas refused the PTX (exit {done.exit_code}; {how})"
    else:
        head = f"ptxas made no cubin ({how}). Cure: a real chip as target, {DEFAULT_TARGET!r} say"
    errors = annotate(parse_log(log), ptx, locate).errors
    # Where we can read nothing, show the end of what it said.
    body = render_all(errors) or "\n".join(log.splitlines()[-20:]) or "(it said nothing)"
    lines = [f"  {line}" for line in body.splitlines()]
    if any(e.advice is not None and e.advice.name == "version-unknown" for e in errors):
        lines += [
            f"  newer here: {other.version_text}, {env.PTXAS.name}={other.path}"
            for other in discover.all_ptxas()
            if other.version > tool.version
        ]
    return AssembleError("\n".join([head, *lines]), log=log)

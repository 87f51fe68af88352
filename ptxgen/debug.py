"""What PTXGEN_DEBUG says about a kernel, on stderr.

    1  choices            2  resources and timing      3  config and shared-memory map
    4  the PTX            5  the SASS                  6  the emulator's trace

Each level includes those below it. Levels 1 and 2 also speak at every launch that is not
remembered, and 6 speaks in the emulator; both read the knob themselves.
"""

from __future__ import annotations

import sys
from dataclasses import asdict

from ptxgen import env
from ptxgen.configs.base import spell
from ptxgen.kernels.base import KernelSource
from ptxgen.toolchain.assemble import Cubin
from ptxgen.toolchain.disassemble import disassemble


def chosen(what: str) -> None:
    """A config has been picked."""
    if env.DEBUG.get() >= 1:
        _say(what)


def rendered(source: KernelSource) -> None:
    """A kernel has been rendered."""
    level = env.DEBUG.get()
    if level >= 1:
        _say(f"rendered {source.spec.entry}, {source.rendered.count(chr(10)):,} lines of PTX")
    if level >= 3:
        fields = {**asdict(source.problem), **asdict(source.resolved)}  # type: ignore[call-overload]
        _say("config " + ", ".join(f"{name}={spell(value)}" for name, value in fields.items()))
        _say(f"shared memory\n{_indent(str(source.smem))}")
    if level >= 4:
        _say(f"PTX\n{source.rendered}")


def assembled(source: KernelSource, cubin: Cubin, seconds: float) -> None:
    """A kernel has been assembled, or its cubin was found in the cache."""
    level = env.DEBUG.get()
    if level >= 2:
        _say(f"cubin made, or found in the cache, in {seconds:.3f} s\n{_indent(str(cubin))}")
    if level >= 5:
        _say(f"SASS\n{disassemble(cubin)}")


def _say(text: str) -> None:
    print(f"ptxgen: {text}", file=sys.stderr)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())

"""Every error that ptxgen and its runtime raise on purpose.

    PtxgenError
    ├── ConfigError            a tile config breaks hardware rules (all of them are listed)
    ├── KernelReferenceError   a kernel reference (NAME:key=value,...) cannot be read
    ├── KnobError              an environment variable PTXGEN_... has a value that it cannot have
    ├── TemplateError          a template names something that it was not given, or is malformed
    ├── PtxSyntaxError         PTX text that our own parser cannot read
    ├── ToolchainError         an external tool is missing, too old, or failed
    │   ├── ToolMissing
    │   ├── AssembleError      ptxas refused the PTX
    │   └── AdvisoryError      ptxas accepted it, but gave something up (wgmma order, registers)
    ├── SassMismatch           the SASS is not what the kernel promises
    ├── ArgumentError          a launch argument is unusable (dtype, shape, stride, device, ...)
    │   └── TensorMapError     an array that a tensor map cannot describe
    ├── LaunchError            a launch cannot be made, or did not come back
    │   └── DriverError        the CUDA driver's own answer, with its name
    ├── CacheError             the on-disk cache is unusable
    └── EmulatorError          the emulator stopped
        ├── UnsupportedPtx     an instruction form that it does not execute (opcode, line, reason)
        ├── HazardError        the program broke a rule of the machine; carries its findings
        └── Deadlock           nothing can run any more; carries who waits for what

Messages say what was asked, what was got, the rule, why it exists, and the cure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule: the field, what it has, what the hardware wants, why, a legal choice."""

    field: str
    got: str
    rule: str
    why: str = ""
    fix: str = ""

    def __str__(self) -> str:
        lines = [f"{self.field}={self.got}  {self.rule}"]
        lines += [f"    {text}" for text in (self.why, self.fix) if text]
        return "\n".join(lines)


def render_violations(headline: str, violations: Sequence[Violation]) -> str:
    """The shared shape of a multi-rule message: a headline, then one indented entry a rule."""
    body = "\n".join(f"  {line}" for v in violations for line in str(v).splitlines())
    return f"{headline}\n{body}" if body else headline


class PtxgenError(Exception):
    """Base of every error below."""


class _ViolationError(PtxgenError):
    """An error that lists all the rules that were broken, not only the first."""

    def __init__(self, headline: str, violations: Iterable[Violation] = ()) -> None:
        self.violations: tuple[Violation, ...] = tuple(violations)
        super().__init__(render_violations(headline, self.violations))


class ConfigError(_ViolationError):
    """A config that the target cannot run. `violations` holds every broken rule."""


class KernelReferenceError(PtxgenError):
    """A kernel reference that cannot be read: unknown kernel, unknown key, or a bad value."""


class KnobError(PtxgenError, ValueError):
    """An environment variable of this project that cannot be read. Names it and what it may be."""


class TemplateError(PtxgenError):
    """A template that cannot be rendered. Names the template and the line."""


class PtxSyntaxError(PtxgenError):
    """PTX text that the parser cannot read. Names the line and shows it."""

    def __init__(self, message: str, *, line: int | None = None, source: str | None = None) -> None:
        self.line = line
        self.source = source
        where = f"PTX line {line}: " if line is not None else ""
        shown = f"\n    {source.strip()}" if source else ""
        super().__init__(f"{where}{message}{shown}")


class ToolchainError(PtxgenError):
    """An external tool failed."""


class ToolMissing(ToolchainError):
    """A tool was not found. The message lists where it was looked for and how to get it."""


class AssembleError(ToolchainError):
    """ptxas refused the PTX. Carries its log; lines are mapped to template lines when known."""

    def __init__(self, message: str, *, log: str = "") -> None:
        self.log = log
        super().__init__(message)


class AdvisoryError(ToolchainError):
    """ptxas produced a cubin but reported something that costs speed or drops an instruction."""

    def __init__(self, message: str, *, log: str = "") -> None:
        self.log = log
        super().__init__(message)


class SassMismatch(PtxgenError):
    """The disassembly does not hold what the kernel promises."""


class ArgumentError(_ViolationError):
    """A launch argument that cannot be used: its name, the value, the rule and the cure."""


class TensorMapError(ArgumentError):
    """An array or box that a tensor map cannot describe."""


class LaunchError(PtxgenError):
    """A launch that cannot be made or did not come back."""


class DriverError(LaunchError):
    """The CUDA driver refused. Carries the driver's error name, e.g. CUDA_ERROR_INVALID_VALUE."""

    def __init__(self, message: str, *, code: str = "") -> None:
        self.code = code
        super().__init__(message)


class CacheError(PtxgenError):
    """The on-disk cache cannot be used."""


class EmulatorError(PtxgenError):
    """Base of what the emulator reports about a program."""


class UnsupportedPtx(EmulatorError):
    """An instruction form that the emulator does not execute. It refuses rather than guess."""

    def __init__(self, message: str, *, line: int | None = None, opcode: str = "") -> None:
        self.line = line
        self.opcode = opcode
        where = f"PTX line {line}: " if line is not None else ""
        super().__init__(f"{where}{message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong with a running program, as data.

    `lines` are the PTX lines concerned (the later access first), `where` says which CTA, warp and
    lanes, `bytes_` the byte range or register, `cure` the missing or wrong instruction, and `isa`
    the PTX ISA section that states the rule.
    """

    code: str
    severity: str  # "error" | "advice"
    message: str
    lines: tuple[int, ...] = ()
    where: str = ""
    bytes_: str = ""
    reason: str = ""
    cure: str = ""
    isa: str = ""
    extra: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        head = f"{self.severity} {self.code}: {self.message}"
        rows = [
            ("at", ", ".join(f"PTX line {n}" for n in self.lines)),
            ("in", self.where),
            ("bytes", self.bytes_),
            ("why", self.reason),
            ("cure", self.cure),
            ("PTX ISA", self.isa),
        ]
        return "\n".join([head] + [f"  {name}: {text}" for name, text in rows if text])


class HazardError(EmulatorError):
    """The program broke a rule of the machine. `findings` holds what was seen."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = tuple(findings)
        super().__init__("\n".join(str(f) for f in self.findings))


class Deadlock(EmulatorError):
    """Nothing can make progress. The message lists every waiting warp and every barrier."""

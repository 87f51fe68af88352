"""The catalogue: kernel families by name, and the kernel references that name their members.

A kernel reference is NAME[:key=value,...], the same on the command line, in errors and in records.
Keys are the fields of the family's problem and config.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from ptxgen.configs.base import from_text, options, spell, to_text
from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_shape import Gemm
from ptxgen.configs.quantize import Quantize, QuantizeConfig, QuantizeProblem
from ptxgen.errors import KernelReferenceError
from ptxgen.kernels import gemm, quantize
from ptxgen.kernels.base import KernelSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A kernel family: `build(problem, config)` renders one of its members."""

    name: str
    summary: str
    problem: type[Any]
    config: type[Any]
    build: Callable[[Any, Any], KernelSource]

    def fields(self) -> Iterator[tuple[str, Field[Any]]]:
        """Every key of a reference: problem fields first."""
        yield from options(self.problem).items()
        yield from options(self.config).items()


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        family.name: family
        for family in (
            Family(
                name="gemm",
                summary="D = A B of 16-bit, tf32, fp8, int8: TMA ring, wgmma, clusters, persistent",
                problem=GemmProblem,
                config=GemmConfig,
                build=lambda problem, config: gemm.build(Gemm(problem, config)),
            ),
            Family(
                name="quantize",
                summary="fp8 with one scale or one a row, given or found; or only the amax",
                problem=QuantizeProblem,
                config=QuantizeConfig,
                build=lambda problem, config: quantize.build(
                    Quantize(problem=problem, config=config)
                ),
            ),
        )
    }
)


def family(name: str) -> Family:
    """The family of that name. Raises KernelReferenceError with the names there are."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise KernelReferenceError(
            f"no kernel {name!r}; kernels: {', '.join(FAMILIES)} (see `ptxgen list`)"
        ) from None


def build(name: str, values: Mapping[str, object]) -> KernelSource:
    """Render a member of a family from field values (Python values, or their spelling as text)."""
    kind = family(name)
    known = dict(kind.fields())
    for key in values:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f": did you mean {close[0]}?" if close else "."
            raise KernelReferenceError(
                f"{name} has no field {key!r}{hint} Fields: {', '.join(known)}"
            )
    texts = {key: spell(value) for key, value in values.items()}

    def part(cls: type[Any]) -> Any:
        return from_text(cls, {key: texts[key] for key in options(cls) if key in texts})

    return kind.build(part(kind.problem), part(kind.config))


def parse_reference(reference: str) -> tuple[str, dict[str, str]]:
    """NAME[:key=value,...] as a name and the texts of its fields."""
    name, _, rest = reference.partition(":")
    values: dict[str, str] = {}
    for item in filter(None, rest.split(",")):
        key, equals, text = item.partition("=")
        if not equals or not key.strip() or not text.strip():
            raise KernelReferenceError(
                f"{reference!r}: {item!r} is not key=value; "
                "a kernel reference looks like gemm:tile=128x256x64,stages=4"
            )
        if key.strip() in values:
            raise KernelReferenceError(f"{reference!r}: {key.strip()} is given twice")
        values[key.strip()] = text.strip()
    return name.strip(), values


def reference(source: KernelSource) -> str:
    """The reference that names this kernel, with every field that differs from its default."""
    parts = ",".join(filter(None, (to_text(source.problem), to_text(source.config))))
    return source.family + (f":{parts}" if parts else "")

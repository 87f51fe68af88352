"""The calculators by name, with what each asks for: what a command line or a notebook needs.

A calculator is a function with keyword arguments only. Its signature says everything: the type, the
default, and `Annotated[type, "meaning"]`. It returns a `Record`; over several values, a `Sweep`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ptxgen.errors import ConfigError, Violation
from ptxgen.models import (
    balance,
    concurrency,
    feed,
    gemm_work,
    moe,
    occupancy,
    rates,
    register_budget,
    registers,
    roofline,
    stage_time,
    stages,
    timeline,
    tma_box,
    waves,
)
from ptxgen.models.record import Record, Sweep

SWEEP_MAX = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One input of a calculator. `choices` are the legal words, if there are only some."""

    name: str
    type: type
    default: int | float | bool | str
    help: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculator:
    """A calculator: its name, its function, and its inputs."""

    name: str
    function: Callable[..., Record]

    @property
    def summary(self) -> str:
        """The first line of its documentation."""
        return self.help.split("\n", 1)[0]

    @property
    def help(self) -> str:
        """Its documentation without what it raises."""
        return (inspect.getdoc(self.function) or "").split("Raises", 1)[0].strip()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its inputs, in the order of its signature."""
        hints = get_type_hints(self.function, include_extras=True)
        return tuple(
            _parameter(name, hints[name], parameter.default)
            for name, parameter in inspect.signature(self.function).parameters.items()
        )

    def run(self, values: Mapping[str, Any]) -> Record:
        """The record of these inputs; of several, where an input is a list of values.

        Lists are combined, each with each. Raises ConfigError for more than 4,096 combinations, and
        whatever the function raises.
        """
        lists = {name: value for name, value in values.items() if isinstance(value, list)}
        if not lists:
            return self.function(**values)
        points = tuple(product(*lists.values()))
        if not 1 <= len(points) <= SWEEP_MAX:
            raise ConfigError(
                f"{self.name}: too many combinations",
                [
                    Violation(
                        field=" x ".join(lists), got=str(len(points)), rule=f"at most {SWEEP_MAX:,}"
                    )
                ],
            )
        return Sweep(
            name=self.name,
            axes=tuple(lists),
            points=points,
            records=tuple(
                self.function(**{**values, **dict(zip(lists, point, strict=True))})
                for point in points
            ),
        )


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    kind, help_ = get_args(hint)
    if get_origin(kind) is Literal:
        return Parameter(name=name, type=str, default=default, help=help_, choices=get_args(kind))
    return Parameter(name=name, type=kind, default=default, help=help_)


CALCULATORS: Mapping[str, Calculator] = MappingProxyType(
    {
        name: Calculator(name=name, function=function)
        for name, function in (
            ("rates", rates.rates),
            ("feed", feed.feed),
            ("occupancy", occupancy.occupancy),
            ("register-pool", registers.register_pool),
            ("register-budget", register_budget.register_budget),
            ("stages", stages.stage_capacity),
            ("smem-map", stages.smem_map),
            ("stage-time", stage_time.stage_time),
            ("attention-stage", stage_time.attention_stage),
            ("timeline", timeline.timeline),
            ("m-balance", balance.m_balance),
            ("gqa", balance.gqa),
            ("moe", moe.moe_rows),
            ("gemm", gemm_work.gemm_work),
            ("roofline", roofline.roofline),
            ("time", roofline.time_bound),
            ("waves", waves.wave_count),
            ("tma-box", tma_box.tma_box),
            ("concurrency", concurrency.concurrency),
        )
    }
)


def calculator(name: str) -> Calculator:
    """The calculator of that name. Raises ConfigError with the names there are."""
    found = CALCULATORS.get(name)
    if found is None:
        known = ", ".join(CALCULATORS)
        raise ConfigError(
            "unknown calculator",
            [Violation(field="name", got=name, rule=f"must be one of {known}")],
        )
    return found


def values_of(text: str, kind: type[int] | type[float]) -> Any:
    """A number, or a list of numbers: `64`, `8,16,32`, `8..256:8` (a range with a step, default 1).

    Raises ConfigError for text that is none of these.
    """
    try:
        parts = [_numbers(part, kind) for part in text.replace(" ", "").split(",")]
    except ValueError:
        raise ConfigError(
            "not a number",
            [
                Violation(
                    field="value",
                    got=text,
                    rule=f"must be of type {kind.__name__}, a list 8,16,32, or a range 8..256:8",
                )
            ],
        ) from None
    numbers = [number for part in parts for number in part]
    return numbers[0] if len(numbers) == 1 and ".." not in text else numbers


def _numbers(text: str, kind: type[int] | type[float]) -> list[int | float]:
    if ".." not in text:
        return [kind(text)]
    ends, _, step_text = text.partition(":")
    first, last = (kind(end) for end in ends.split(".."))
    step = kind(step_text) if step_text else kind(1)
    if step <= 0 or last < first:
        raise ValueError
    steps = int((last - first) / step + 1e-9)
    if steps >= SWEEP_MAX:
        raise ValueError
    return [first + i * step for i in range(steps + 1)]

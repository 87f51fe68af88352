"""Rules of the quantize kernel: the limit holds, one step beyond is refused with the cure."""

from __future__ import annotations

from typing import Any

import pytest

from ptxgen.configs.quantize import RULES, Quantize, QuantizeConfig, QuantizeProblem
from ptxgen.errors import ConfigError

pytestmark = pytest.mark.unit

# Fields at the limit, beyond it, and words of the text.
LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "dtype": ({"dtype": "f32"}, {"dtype": "s8"}, "use dtype=bf16"),
    "out_dtype": ({"out_dtype": "e5m2"}, {"out_dtype": "bf16"}, "use out_dtype=e4m3"),
    "scales": ({"scales": "tensor"}, {"scales": "column"}, "use scales=row"),
    "warps": ({"warps": 32}, {"warps": 33}, "1,024 threads"),
    "no warps": ({"warps": 1}, {"warps": 0}, "use warps=8"),
    "part": ({"part": 256}, {"part": 300}, "use part=512"),
    "no part": ({"part": 256}, {"part": 0}, "use part=256"),
}


def quantize(**fields: Any) -> Quantize:
    problem = {k: fields.pop(k) for k in ("dtype", "out_dtype", "scales") if k in fields}
    return Quantize(problem=QuantizeProblem(**problem), config=QuantizeConfig(**fields))


@pytest.mark.parametrize("name", LIMITS)
def test_at_the_limit_and_beyond(name: str) -> None:
    at, beyond, words = LIMITS[name]
    assert quantize(**at).check() == ()
    (violation,) = quantize(**beyond).check()
    assert {violation.field} == set(beyond)
    assert words in str(violation)
    with pytest.raises(ConfigError, match=f"1 of {len(RULES)} rules broken"):
        quantize(**beyond).require()


def test_every_rule_has_a_row() -> None:
    broken = {r.name for _, beyond, _ in LIMITS.values() for r in RULES
              if list(r.check(quantize(**beyond)))}  # fmt: skip
    assert broken == {rule.name for rule in RULES}

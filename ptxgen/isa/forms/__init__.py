"""One table of the instruction set, a row a form: what we emit, assemble, execute and compare.

    FORMS       every form, in the order of ISA.md
    cases()     every combination of their axes that the table tries

A form names its macro in ptx_templates/lib, the least `.version` and target that assemble it, and
how one case is executed alone. Data only: tests/isa has the four consumers.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxgen.isa.forms import (
    atomic,
    bits,
    bulk,
    cluster,
    compare,
    control,
    convert,
    cp_async,
    floating,
    half,
    integer,
    matrix,
    mbarrier,
    memory,
    refused,
    special,
    sync,
    tensor,
    warp,
    wgmma,
)
from ptxgen.isa.forms.base import (
    NEWEST,
    OLDEST,
    TARGETS,
    VERSIONS,
    Bound,
    Case,
    Form,
    Operand,
    Run,
)

__all__ = [
    "FORMS",
    "NEWEST",
    "OLDEST",
    "TARGETS",
    "VERSIONS",
    "Bound",
    "Case",
    "Form",
    "Operand",
    "Run",
    "cases",
]

_FAMILIES = (
    integer,
    bits,
    compare,
    floating,
    half,
    convert,
    memory,
    atomic,
    warp,
    control,
    special,
    sync,
    mbarrier,
    cp_async,
    bulk,
    tensor,
    cluster,
    matrix,
    wgmma,
    refused,
)

FORMS: tuple[Form, ...] = tuple(form for family in _FAMILIES for form in family.FORMS)


def cases() -> Iterator[Case]:
    """Every case of every form."""
    for form in FORMS:
        yield from form.cases()

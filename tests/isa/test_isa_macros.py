"""Column 1: each case comes out of its macro as the table spells it."""

from __future__ import annotations

import isa_columns
import pytest
from isa_columns import Record

from ptxgen.isa.forms import FORMS, Form
from ptxgen.templating import render_text

pytestmark = pytest.mark.unit


def rendered(form: Form) -> list[str]:
    """What the macro gives for every case, white space normalised."""
    cases = form.cases()
    names = [name for name in cases[0].names if name.isidentifier()]
    text = (
        f'# import "lib/{form.family}.ptx.j2" as {form.family}\n'
        f"# for {', '.join(['case_id', *names])} in cases\n"
        f"${{ {form.macro} }}\n"
        "// next\n"
        "# endfor\n"
    )
    numbers = {"cases": [(case.id, *(case.names[name] for name in names)) for case in cases]}
    return [_words(part) for part in str(render_text(text, form.id, numbers)).split("// next\n")]


def _words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
def test_macro_emits(form: Form, record_property: Record) -> None:
    cases = form.cases()
    assert cases
    texts = rendered(form)
    wrong = {
        case.id: (text, _words(case.text))
        for case, text in zip(cases, texts, strict=False)
        if text != _words(case.text)
    }
    isa_columns.record(record_property, "macro", form, len(cases) - len(wrong))
    assert wrong == {}
    assert len(texts) == len(cases) + 1  # the last is what follows the last mark: nothing

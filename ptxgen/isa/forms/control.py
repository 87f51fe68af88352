"""Control flow and hints (PTX ISA 9.7.12, 9.7.19, 9.7.13.15 griddepcontrol)."""

from __future__ import annotations

from ptxgen.isa.forms.base import Form, Run

_MARK = ("mov.b32 %mark, 1;",)
_LEFT_OUT = ("mov.b32 %mark, 2;", "$PAST:")
_TWICE = (
    ".func (.reg .b32 %y) twice (.reg .b32 %x) {{ add.u32 %y, %x, %x; ret; }}",
)  # fmt: skip
_STORE = (
    ".func store_word (.reg .b64 %at, .reg .b32 %x) {{ st.global.b32 [%at], %x; ret; }}",
)  # fmt: skip

FORMS = (
    Form(
        id="bra",
        text="bra{uni} $PAST;",
        macro='control.bra("$PAST", uni)',
        axes={"uni": ("", ".uni")},
        reads="x:b32",
        run=Run(before=_MARK, after=_LEFT_OUT, sees="mark:b32"),
    ),
    Form(
        id="bra.guarded",
        text="@{sign}{p} bra $PAST;",
        macro='control.bra_if(sign ~ p, "$PAST")',
        axes={"sign": ("", "!")},
        reads="p:pred",
        run=Run(before=_MARK, after=_LEFT_OUT, sees="mark:b32"),
    ),
    Form(
        id="call",
        text="call{uni} ({d}), twice, ({a});",
        macro='control.call(uni, d, "twice", a)',
        axes={"uni": ("", ".uni")},
        writes="d:b32",
        reads="a:b32",
        run=Run(globals=_TWICE),
    ),
    Form(
        id="call.procedure",
        text="call store_word, ({a}, {b});",
        macro='control.call_procedure("store_word", a ~ ", " ~ b)',
        reads="a:@global b:b32",
        run=Run(globals=_STORE),
    ),
    Form(
        id="ret.guarded",
        text="@{p} ret;",
        macro="control.ret_if(p)",
        reads="p:pred",
        run=Run(before=("st.global.b32 [%gmem], 1;",)),
    ),
    Form(
        id="exit.guarded",
        text="@{p} exit;",
        macro="control.exit_if(p)",
        reads="p:pred",
        run=Run(before=("st.global.b32 [%gmem], 1;",)),
    ),
    Form(
        id="trap",
        text="@%never trap;",
        macro='control.trap_if("%never")',
        reads="x:b32",
        run=Run(scratch=("pred %never",), before=("setp.ne.b32 %never, 0, 0;",)),
    ),
    Form(
        id="brkpt",
        text="@%never brkpt;",
        macro='control.brkpt_if("%never")',
        reads="x:b32",
        run=Run(scratch=("pred %never",), before=("setp.ne.b32 %never, 0, 0;",)),
    ),
    Form(
        id="nanosleep",
        text="nanosleep.u32 {time};",
        macro="control.nanosleep(time)",
        axes={"time": (0, 100)},
        reads="x:b32",
        ptx=(6, 2),
        semantic="runs",
    ),
    Form(
        id="griddepcontrol",
        text="griddepcontrol.{what};",
        macro="control.griddepcontrol(what)",
        axes={"what": ("wait", "launch_dependents")},
        reads="x:b32",
        ptx=(7, 8),
        target="sm_90",
        semantic="runs",
    ),
    Form(
        id="pmevent",
        text="pmevent {event};",
        macro="control.pmevent(event)",
        axes={"event": (0, 7)},
        reads="x:b32",
        semantic="runs",
    ),
)

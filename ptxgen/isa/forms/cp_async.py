"""cp.async, not bulk (PTX ISA 9.7.9.25.3)."""

from __future__ import annotations

from ptxgen.isa.forms.base import Axes, Form, Run

_WAIT = Run(after=("cp.async.wait_all;",))
_COPIED = ("cp.async.ca.shared.global [{s}], [{a}], 16;",)


def _sizes(axes: Axes) -> bool:
    return axes["cop"] == "ca" or axes["size"] == 16


FORMS = (
    Form(
        id="cp.async",
        text="cp.async.{cop}.{space}.global{prefetch} [{s}], [{a}], {size};",
        macro='cp_async.copy(cop ~ "." ~ space ~ ".global" ~ prefetch, s, a, size)',
        axes={
            "cop": ("ca", "cg"),
            "space": ("shared", "shared::cta"),
            "prefetch": ("", ".L2::64B", ".L2::128B", ".L2::256B"),
            "size": (4, 8, 16),
        },
        legal=_sizes,
        reads="s:@shared a:@global",
        ptx=(7, 0),
        target="sm_80",
        newer={("prefetch", f".L2::{n}B"): ((7, 4), "sm_80") for n in (64, 128, 256)},
        run=_WAIT,
    ),
    Form(
        id="cp.async.zfill",
        text="cp.async.{cop}.shared.global [{s}], [{a}], {size}, {n};",
        macro='cp_async.copy(cop ~ ".shared.global", s, a, size ~ ", " ~ n)',
        axes={"cop": ("ca", "cg"), "size": (4, 8, 16)},
        legal=_sizes,
        reads="s:@shared a:@global n:u32~upto4",
        ptx=(7, 0),
        target="sm_80",
        run=_WAIT,
    ),
    Form(
        id="cp.async.ignore",
        text="cp.async.{cop}.shared.global [{s}], [{a}], {size}, {p};",
        macro='cp_async.copy(cop ~ ".shared.global", s, a, size ~ ", " ~ p)',
        axes={"cop": ("ca", "cg"), "size": (4, 8, 16)},
        legal=_sizes,
        reads="s:@shared a:@global p:pred",
        ptx=(7, 5),
        target="sm_80",
        run=_WAIT,
    ),
    Form(
        id="cp.async.policy",
        text="cp.async.{cop}.shared.global.L2::cache_hint [{s}], [{a}], {size}, %policy;",
        macro=('cp_async.copy(cop ~ ".shared.global.L2::cache_hint", s, a, size ~ ", %policy")'),
        axes={"cop": ("ca", "cg"), "size": (4, 8, 16)},
        legal=_sizes,
        reads="s:@shared a:@global",
        ptx=(7, 4),
        target="sm_80",
        run=Run(
            scratch=("b64 %policy",),
            before=("createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;",),
            after=_WAIT.after,
        ),
    ),
    Form(
        id="cp.async.commit_group",
        text="cp.async.commit_group;",
        macro="cp_async.commit_group()",
        reads="s:@shared a:@global",
        ptx=(7, 0),
        target="sm_80",
        run=Run(before=_COPIED, after=("cp.async.wait_group 0;",)),
    ),
    Form(
        id="cp.async.wait_group",
        text="cp.async.wait_group {n};",
        macro="cp_async.wait_group(n)",
        axes={"n": (0, 1, 2)},
        reads="s:@shared a:@global",
        ptx=(7, 0),
        target="sm_80",
        run=Run(
            before=(*_COPIED, "cp.async.commit_group;"),
            after=("cp.async.wait_all;",),
        ),
    ),
    Form(
        id="cp.async.wait_all",
        text="cp.async.wait_all;",
        macro="cp_async.wait_all()",
        reads="s:@shared a:@global",
        ptx=(7, 0),
        target="sm_80",
        run=Run(before=_COPIED),
    ),
)

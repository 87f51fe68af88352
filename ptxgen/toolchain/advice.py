"""What ptxas's remarks mean, in plain words: a table.

A remark is recognised by its words, not by its number. The numbers move between releases:
"serialized ... compiler-inserted WG.AR" is C7520 in 13.0 and C7519 in 13.5, where C7519 used to be
"arrive is injected". Each row lists the numbers seen with its text, for people who search for one.

Every row was met with ptxas 13.0 or 13.5, except those marked (text only): their text is in the
binary, and no program of ours brought it out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One kind of remark: how to recognise it, what it means, what usually causes it, the cure."""

    name: str
    pattern: str
    codes: tuple[str, ...] = ()
    meaning: str
    cause: str
    cure: str
    regex: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", re.compile(self.pattern, re.IGNORECASE))


_SERIAL = (
    "wgmma is serialised: ptxas waits after every wgmma, so the tensor cores idle between them"
)
_IGNORED = "setmaxnreg is dropped: every warp keeps the register count of kernel entry"

ADVICE: tuple[Advice, ...] = (
    # --- setmaxnreg dropped --------------------------------------------------------------------
    Advice(
        name="setmaxnreg-relocatable", codes=("C7504",),
        pattern=r"'setmaxnreg' ignored to maintain compatibility across compilation units",
        meaning=_IGNORED,
        cause="relocatable code (-c, or a linker such as nvJitLink or cuLink)",
        cure="assemble a whole program without -c, and load the cubin without linking",
    ),
    Advice(
        name="setmaxnreg-debug", codes=("C7505",),
        pattern=r"'setmaxnreg' ignored to allow debugging",
        meaning=_IGNORED,
        cause="-g (device debugging)",
        cure="use -lineinfo, which changes no instruction",
    ),
    Advice(
        name="setmaxnreg-call", codes=("C7506",),
        pattern=r"'setmaxnreg' ignored to maintain compatibility into 'extern' call",
        meaning=_IGNORED,
        cause="an indirect call or a call to an extern function in the kernel",
        cure="remove the call (printf is one), or remove setmaxnreg",
    ),
    Advice(
        name="setmaxnreg-minimum", codes=("C7507",),
        pattern=r"'setmaxnreg' ignored to maintain minimum register requirements",
        meaning=_IGNORED,
        cause="the code after a setmaxnreg.dec needs more registers than its immediate",
        cure="raise the immediate of the dec, or move work out of that role; keep the roles in the "
        "two arms of one branch",
    ),
    Advice(
        name="setmaxnreg-entry", codes=("C7508",),
        pattern=r"'setmaxnreg' ignored; unable to determine register count at entry",
        meaning=_IGNORED,
        cause="the register count at entry is unknown",
        cure="declare .reqntid (or .maxntid) together with .minnctapersm 1, or .maxnreg",
    ),
    # --- wgmma serialised ----------------------------------------------------------------------
    Advice(
        name="serial-extern-call", codes=("C7509",),
        pattern=r"serialized.*extern calls",
        meaning=_SERIAL,
        cause="a call to an extern function in the kernel",
        cure="remove the call, or define the function in the same file without -c",
    ),
    Advice(
        name="serial-function-boundary", codes=("C7510",),
        pattern=r"serialized.*function boundary",
        meaning=_SERIAL,
        cause="a call between the first wgmma of a group and its wait",
        cure="inline the code, or move the call behind wgmma.wait_group",
    ),
    Advice(
        name="serial-pipeline-registers", codes=("C7511",),
        pattern=r"serialized.*insufficient register resources for the wgmma pipeline",
        meaning=_SERIAL,
        cause="accumulators and copies of them exceed the registers of a thread; also a load into "
        "an accumulator while its group is in flight, and any wgmma at -O0",
        cure="use a smaller tile_n or fewer accumulators in flight; touch accumulators only behind "
        "wgmma.wait_group",
    ),
    Advice(
        name="serial-function-registers", codes=("C7512",),  # (text only)
        pattern=r"serialized.*insufficient register resources for the function",
        meaning=_SERIAL,
        cause="the function needs more registers than its budget",
        cure="use a smaller tile, or give the role more registers",
    ),
    Advice(
        name="serial-input-defined", codes=("C7513",),
        pattern=r"serialized.*non wgmma instructions defining input registers",
        meaning=_SERIAL,
        cause="A registers are written while a wgmma that reads them may still run",
        cure="wait for the group before A registers are written, or alternate two sets of them",
    ),
    Advice(
        name="serial-accumulator-read", codes=("C7514",),
        pattern=r"serialized.*non wgmma instructions reading accumulator registers",
        meaning=_SERIAL,
        cause="an accumulator is read between the first wgmma of a group and its wait",
        cure="read accumulators only behind wgmma.wait_group 0",
    ),
    Advice(
        name="serial-accumulator-defined", codes=("C7515",),
        pattern=r"serialized.*non wgmma instructions defining accumulator registers",
        meaning=_SERIAL,
        cause="an accumulator is written between the first wgmma of a group and its wait",
        cure="set accumulators before wgmma.fence, or let the first wgmma clear them (scale-d 0)",
    ),
    Advice(
        name="serial-ill-formed", codes=("C7516",),  # (text only)
        pattern=r"serialized.*ill[- ]formed pipeline stage",
        meaning=_SERIAL,
        cause="fence, wgmma, commit and wait are not in one straight line or one uniform loop",
        cure="write fence, wgmma..., commit, wait in that order on every path",
    ),
    Advice(
        name="serial-divergent-wait", codes=("C7518",),
        pattern=r"serialized.*compiler-inserted WG\.DP in divergent path",
        meaning=_SERIAL,
        cause="a result of wgmma in a divergent branch is used without wgmma.wait_group",
        cure="write the wait, and make the branch uniform over the warpgroup (warp index through "
        "shfl.sync.idx)",
    ),
    Advice(
        name="serial-divergent-arrive", codes=("C7519", "C7520"),
        pattern=r"serialized.*compiler-inserted WG\.AR in divergent path",
        meaning=_SERIAL,
        cause="wgmma in a divergent branch or loop without wgmma.fence",
        cure="write the fence, and make the branch uniform over the warpgroup (warp index through "
        "shfl.sync.idx)",
    ),
    Advice(
        name="serial-other",
        pattern=r"wgmma\.mma_async instructions are serialized",
        meaning=_SERIAL,
        cause="see ptxas's own text",
        cure="write fence, wgmma..., commit, wait in one straight line; touch accumulators only "
        "behind the wait",
    ),
    # --- fences and waits that ptxas added -----------------------------------------------------
    Advice(
        name="wait-injected", codes=("C7517",),
        pattern=r"(warpgroup\.wait|wgmma\.wait_group) is injected",
        meaning="ptxas added a wait for wgmma; the result is right, the PTX is not",
        cause="an accumulator is used without wgmma.wait_group on some path",
        cure="write wgmma.wait_group before the first use",
    ),
    Advice(
        name="fence-injected", codes=("C7519",),
        pattern=r"(warpgroup\.arrive|wgmma\.fence) is injected",
        meaning="ptxas added a wgmma.fence; the result is right, the PTX is not",
        cause="registers of a wgmma are written with no wgmma.fence behind the write on some path",
        cure="write wgmma.fence.sync.aligned between the last register write and the first wgmma",
    ),
    # --- other losses --------------------------------------------------------------------------
    Advice(
        name="setmaxnreg-other",
        pattern=r"'setmaxnreg' ignored",
        meaning=_IGNORED,
        cause="see ptxas's own text",
        cure="declare .reqntid and .minnctapersm 1; no calls, no -c, no -g",
    ),
    Advice(
        name="target-advisory",
        pattern=r"^Advisory: .* should be used on \.target",
        meaning="the instruction is slow on this target",
        cause=".target sm_90 where sm_90a is meant",
        cure="write .target sm_90a and assemble with -arch=sm_90a",
    ),
    Advice(
        name="sparse-metadata",
        pattern=r"Modifier '\.sp::ordered_metadata' should be used",
        meaning="nothing is lost on sm_90a; later chips run plain .sp slowly",
        cause="mma.sp without ::ordered_metadata, whose index pairs may stand in any order",
        cure="sort the index pairs of the metadata and write mma.sp::ordered_metadata (PTX 8.5)",
    ),
    Advice(
        name="modifier-advisory",
        pattern=r"^Advisory: Modifier .* should be used (on|with)",
        meaning="the instruction is right; another spelling of it is faster on some chips",
        cause="a modifier that ptxas names is missing, or an old one stands in its place",
        cure="write the modifier in ptxas's text",
    ),
    Advice(
        name="minnctapersm-alone",
        pattern=r"\.minnctapersm is ignored when neither",
        meaning=".minnctapersm has no effect: registers are not limited for its sake, and "
        "setmaxnreg is dropped",
        cause="no .reqntid or .maxntid says how many threads a CTA has",
        cure="declare .reqntid with the number of threads",
    ),
    Advice(
        name="minnctapersm-range",
        pattern=r"Value of minnctapersm .* is out of range",
        meaning=".minnctapersm has no effect: so many CTAs do not fit on one SM",
        cause="an SM holds 32 CTAs and 2,048 threads",
        cure="lower .minnctapersm, or launch fewer threads a CTA",
    ),
    Advice(
        name="register-limit",
        pattern=r"Too big maxrregcount|adjusting per thread register count",
        meaning="the register limit that was asked for is not the one that was used",
        cause="-maxrregcount or .maxnreg outside 24..255",
        cure="ask for 24 to 255 registers",
    ),
    Advice(
        name="deprecated",
        pattern=r"\bdeprecated\b",
        meaning="the code is right; a later ptxas may refuse it",
        cause="an instruction, modifier or option that a newer one replaced",
        cure="write what ptxas names in its place",
    ),
    # --- refusals ------------------------------------------------------------------------------
    Advice(
        name="setmaxnreg-above-entry", codes=("C7406",),
        pattern=r"setmaxnreg\.dec has register count",
        meaning="setmaxnreg.dec asks for more registers than a warp has at entry",
        cause="65,536 registers over all threads leave fewer than the immediate",
        cure="lower the immediate, or launch fewer threads",
    ),
    Advice(
        name="instruction-registers", codes=("C7602",),
        pattern=r"Insufficient registers .* to compile instruction",
        meaning="one instruction alone needs more registers than a thread may have",
        cause="an n-wide f32 accumulator takes n/2 registers, and 26 more around it",
        cure="use a smaller tile_n, fewer threads, or setmaxnreg.inc with a larger value",
    ),
    Advice(
        name="version-unknown",
        pattern=r"Unsupported \.version",
        meaning="this ptxas is older than the PTX",
        cause="the .version directive is newer than the assembler",
        cure="lower .version to what the instructions need, or use a newer ptxas "
        "(pip install -U nvidia-cuda-nvcc, or PTXGEN_PTXAS)",
    ),
    Advice(
        name="version-too-low",
        pattern=r"(requires PTX ISA \.version|PTX \.version .* does not support)",
        meaning="the instruction or target is newer than the declared .version",
        cause="the .version directive is too low",
        cure="raise .version to the number in ptxas's text",
    ),
    Advice(
        name="target-mismatch",
        pattern=r"PTX with \.target .* cannot be compiled for|SM version specified by \.target|"
        r"Program with \.target .* cannot be compiled to",
        meaning="the PTX is for another chip than -arch says",
        cause=".target sm_90a builds with -arch=sm_90a only",
        cure="assemble with target=\"sm_90a\"",
    ),
    Advice(
        name="target-too-low",
        pattern=r"not supported on \.target|cannot be compiled for architecture|requires \.target",
        meaning="the declared target does not have this instruction",
        cause="wgmma and setmaxnreg exist on sm_90a only, not on sm_90 and not on other chips",
        cure="write .target sm_90a and assemble with -arch=sm_90a",
    ),
    Advice(
        name="target-unknown",
        pattern=r"is not defined for option 'gpu-name'",
        meaning="this ptxas does not know the chip",
        cause="a spelling mistake, or a ptxas older than the chip",
        cure="use target=\"sm_90a\", or a newer ptxas",
    ),
    Advice(
        name="shared-memory",
        pattern=r"uses too much shared data",
        meaning="static shared memory exceeds what a CTA can have",
        cause="0x38c00 = 232,448 bytes is the limit of sm_90",
        cure="use fewer stages or a smaller tile",
    ),
)  # fmt: skip


def advice_for(text: str) -> Advice | None:
    """The row whose words are in this remark; None for a remark that the table does not know."""
    return next((row for row in ADVICE if row.regex.search(text)), None)

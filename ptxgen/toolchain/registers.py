"""Which registers an instruction writes and reads, as far as its text tells.

SASS puts results first: usually one register, and with it one or two predicates where the opcode
makes some (a comparison and its complement, the carries of an addition). Names stand for
themselves: R24 of an HGMMA is R24, although it stands for 128 registers. RZ, PT and their uniform
kin are constants and no registers here.
"""

from __future__ import annotations

import re

from ptxgen.toolchain.sass import Instruction

REGISTER = re.compile(r"\b(?:UR|R|UP|P|B)\d+\b")
_PREDICATE = re.compile(r"^U?P(?:\d+|T)$")
_RESULT = re.compile(r"^(?:UR|R|UP|P|B)(?:\d+|Z|T)(?:\.\w+)*$")
_ALL_PREDICATES = frozenset(f"P{n}" for n in range(7))  # what PR stands for in R2P and P2R

# Opcodes that write no register; their first operand is read.
_NO_RESULT = frozenset(
    "ST STG STS STL STSM STAS RED REDG REDAS BRA BRX JMP EXIT RET CALL BAR BSYNC BREAK UTMALDG "
    "UTMASTG UTMAREDG UTMAPF UTMACCTL UBLKCP UBLKRED UBLKPF LDGSTS WARPSYNC NANOSLEEP MEMBAR "
    "CCTL ARRIVES R2P".split()
)
# Opcodes with two results where the first is a predicate: P0, PT or PT, R4.
_PREDICATE_FIRST = frozenset(
    "ISETP UISETP FSETP DSETP HSETP2 PSETP UPSETP PLOP3 UPLOP3 LOP3 ULOP3 SHFL MATCH ATOM ATOMG "
    "ELECT R2UR FCHK".split()
)
# Opcodes that may write carries behind their first result.
_CARRIES = frozenset("IADD3 UIADD3 LEA ULEA IMAD UIMAD".split())


def written(instruction: Instruction) -> frozenset[str]:
    """Names of the registers that the instruction writes."""
    if instruction.base == "R2P":
        return _ALL_PREDICATES
    operands = instruction.operand_list[: result_count(instruction)]
    return frozenset(REGISTER.findall(" ".join(operands)))


def read(instruction: Instruction) -> frozenset[str]:
    """Names of the registers that it reads, its predicate among them."""
    operands = " ".join(instruction.operand_list[result_count(instruction) :])
    named = frozenset(REGISTER.findall(f"{instruction.predicate} {operands}"))
    return named | _ALL_PREDICATES if instruction.base == "P2R" else named


def result_count(instruction: Instruction) -> int:
    """How many of the operands, from the first on, are results."""
    operands, base = instruction.operand_list, instruction.base
    if not operands or base in _NO_RESULT or not _RESULT.match(operands[0]):
        return 0
    if base in ("VOTE", "VOTEU"):  # VOTE.ANY R0, PT, P0 and VOTEU.ANY UP0, P0
        return len(operands) - 1
    if base in _PREDICATE_FIRST and _PREDICATE.match(operands[0]):
        return min(2, len(operands))
    results = 1
    if base in _CARRIES:
        while results < min(3, len(operands)) and _PREDICATE.match(operands[results]):
            results += 1
    return results

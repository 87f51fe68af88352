"""What the two offsets of a wgmma descriptor step over, in every layout.

Each 16-byte unit of shared memory holds its own number, in all eight of its f16 elements; B is the
identity. So D[m, k] is the number of the unit that wgmma took A[m, k] from. A second run with the
place in the unit instead of its number tells the rest.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from lab import Array, Fact, Lab, Seen, main
from wgmma_probe import ROWS, Wgmma, k_major, probe

from ptxgen.layout.smem_desc import SmemDesc
from ptxgen.layout.swizzle import SWIZZLES

UNITS = 2048  # f16 holds their numbers exactly
A_BYTES = 16 * UNITS
MASKS = {0: 0, 32: 0x10, 64: 0x30, 128: 0x70}  # address bits 4-6 that bits 7-9 are XORed into
K = 16
OFFSETS = {0: ((2176, 3072), (3072, 2176), (128, 1024)), 32: ((4096, 256), (256, 4096)),
           64: ((8192, 512), (512, 2048)), 128: ((8192, 1024), (1024, 2048))}  # fmt: skip


def read_map(lab: Lab, desc: SmemDesc, *, mn_major: bool) -> Array:
    """The byte that A[m, k] is read from, relative to shared memory's start: `[64, 16]`."""
    op = Wgmma(input="f16", n=K, a_mn_major=mn_major)
    b = k_major(np.eye(K, dtype=np.float16))
    numbers = np.repeat(np.arange(UNITS, dtype=np.float16), 8)
    places = np.tile(np.arange(8, dtype=np.float16), UNITS)
    read = []
    for values in (numbers, places):
        image = np.concatenate([values.view(np.uint8), b])
        read.append(probe(lab, op, image, desc, SmemDesc(start=A_BYTES, sbo=1024)))
    return (16 * read[0] + 2 * read[1]).astype(np.int32)


def linear(swizzle: int, mn_major: bool, first: int, second: int) -> Array:
    """Offsets of A[m, k] before the swizzle, where `first` steps over the outer unit of k without
    swizzle and along MN with it (the leading offset, by the book), and `second` over the other."""
    m, k = np.arange(ROWS)[:, None], np.arange(K)[None, :]
    span = max(swizzle, 16)
    if not mn_major and not swizzle:
        return m // 8 * second + m % 8 * 16 + k // 8 * first + k % 8 * 2
    if not mn_major:
        return m // 8 * second + m % 8 * span + k * 2
    if not swizzle:
        return m // 8 * second + m % 8 * 2 + k // 8 * first + k % 8 * 16
    wide = span // 2
    return m // wide * first + m % wide * 2 + k // 8 * second + k % 8 * span


def swizzled(address: Array, swizzle: int) -> Array:
    return address ^ (address >> 3 & MASKS[swizzle])


def layouts() -> list[tuple[bool, int, int, int]]:
    """(MN-major, swizzle, LBO, SBO)."""
    return [
        (mn, swizzle, *pair)
        for mn, swizzle in product((False, True), MASKS)
        for pair in OFFSETS[swizzle]
    ]


def name(mn_major: bool, swizzle: int, lbo: int, sbo: int) -> str:
    return f"{'MN' if mn_major else 'K'}-major, swizzle {swizzle}, LBO {lbo}, SBO {sbo}"


def observe(lab: Lab) -> Seen:
    seen = {}
    for mn_major, swizzle, lbo, sbo in layouts():
        desc = SmemDesc(lbo=lbo, sbo=sbo, swizzle=SWIZZLES[swizzle])
        key = name(mn_major, swizzle, lbo, sbo)
        seen[key] = read_map(lab, desc, mn_major=mn_major)
    return seen


def finding(seen: Seen) -> tuple[str, object]:
    verdicts = {}
    for mn_major, swizzle, lbo, sbo in layouts():
        found = seen[name(mn_major, swizzle, lbo, sbo)]
        matches = [
            word
            for word, pair in (("by the book", (lbo, sbo)), ("swapped", (sbo, lbo)))
            if np.array_equal(found, swizzled(linear(swizzle, mn_major, *pair), swizzle))
        ]
        verdicts[name(mn_major, swizzle, lbo, sbo)] = " = ".join(matches) or (
            "neither; row 0: "
            + str(found[0].tolist())
            + ", column 0: "
            + str(found[::8, 0].tolist())
        )
    told = sum("book" in v for v in verdicts.values())
    swapped = [k for k, v in verdicts.items() if v == "swapped"]
    words = f"{told} of {len(verdicts)} layouts are by the book; swapped: {swapped or 'none'}"
    return words, verdicts


if __name__ == "__main__":
    question = "What do LBO and SBO step over, K-major and MN-major, with each swizzle?"
    main(Fact(id="descriptor_roles", question=question), observe, finding)

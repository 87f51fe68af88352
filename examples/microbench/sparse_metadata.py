"""Which lane's metadata bits say where an element of a 2:4 sparse A lies.

B is the identity and every kept element of a row has its own value, so D shows the whole of A. With
two dozen random metadata words a thread, only one (lane, bits) pair explains each group of A.
"""

from __future__ import annotations

import numpy as np
from lab import Array, Fact, Lab, Seen, main
from wgmma_probe import ROWS, Wgmma, product

RUNS = 24
PAIRS = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110], np.uint32)  # two of four
HALVES = np.array([0b0100, 0b1110], np.uint32)  # tf32: which of two
FORMS = {"f16.0": ("f16", "f32", 0), "f16.1": ("f16", "f32", 1), "tf32.0": ("tf32", "f32", 0),
         "tf32.1": ("tf32", "f32", 1), "e4m3.0": ("e4m3", "f32", 0),
         "s8.0": ("s8", "s32", 0)}  # fmt: skip


def group_size(input_: str) -> int:
    return 2 if input_ == "tf32" else 4


def kept_row(count: int) -> Array:
    return np.arange(count) % 8 + 1


def metadata(input_: str) -> Array:
    """`[runs, threads, nibbles]`."""
    choices = HALVES if input_ == "tf32" else PAIRS
    return np.random.default_rng(3).choice(choices, (RUNS, 128, 8))


def observe(lab: Lab) -> Seen:
    seen = {}
    for name, (input_, d, selector) in FORMS.items():
        op = Wgmma(input=input_, d=d, sparse=True, selector=selector, n=64)
        kept = np.broadcast_to(kept_row(op.k // 2), (ROWS, op.k // 2))
        b = np.zeros((64, op.k))
        b[: min(64, op.k)] = np.eye(op.k)[:64]
        shifts = np.arange(0, 32, 4, dtype=np.uint32)
        results = []
        for nibbles in metadata(input_):
            words = (nibbles << shifts).sum(axis=1).astype(np.uint32)
            results.append(product(lab, op, kept, b, metadata=words)[:, : op.k])
        seen[name] = np.array(results).astype(np.int8)
    return seen


def nibbles_of(d: Array, size: int) -> Array:
    """Which elements of each group are there, as nibbles `[runs, rows, groups]`; 0: none fits."""
    there = d.reshape(*d.shape[:2], -1, size) != 0
    mask = (there << np.arange(size)).sum(axis=-1)
    table = np.zeros(16, np.uint32)
    if size == 2:
        table[0b01], table[0b10] = HALVES
    else:
        for nibble in PAIRS:
            table[1 << (nibble & 3) | 1 << (nibble >> 2)] = nibble
    return table[mask]


def expected(input_: str, selector: int, row: int, group: int) -> tuple[int, int]:
    """(thread, nibble) by CuTe's layouts."""
    warp, high, g = row // 16, row % 16 // 8, row % 8
    if input_ in ("f16", "tf32"):
        return 32 * warp + 4 * g + 2 * selector + group // 4, 4 * high + group % 4
    return 32 * warp + 4 * g + high + 2 * (group // 8), group % 8


def finding(seen: Seen) -> tuple[str, object]:
    numbers, words = {}, []
    for name, (input_, _, selector) in FORMS.items():
        told = metadata(input_).reshape(RUNS, -1)  # [runs, threads * nibbles]
        found = nibbles_of(seen[name], group_size(input_))
        rows, groups = found.shape[1:]
        right, sources = 0, {}
        for row in range(rows):
            for group in range(groups):
                same = np.flatnonzero((told == found[:, row, group, None]).all(axis=0))
                where = [(int(i) // 8, int(i) % 8) for i in same]
                right += where == [expected(input_, selector, row, group)]
                if row in (0, 1, 8, 16):
                    sources[f"row {row} group {group}"] = where
        values = seen[name].reshape(RUNS * rows, -1)
        in_order = [np.array_equal(x[x != 0], kept_row((x != 0).sum())) for x in values]
        numbers[name] = {
            "rows whose kept elements are in order": f"{sum(in_order)} of {len(values)}",
            "as expected": f"{right} of {rows * groups}",
            "(thread, nibble)": sources,
        }
        words.append(f"{name} {right} of {rows * groups}")
    return "groups whose metadata lies where CuTe says: " + ", ".join(words), numbers


if __name__ == "__main__":
    question = "Which lanes and bits hold the metadata of a sparse wgmma?"
    main(Fact(id="sparse_metadata", question=question), observe, finding)

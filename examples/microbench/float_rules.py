"""What f32 and packed 16-bit arithmetic gives for NaN, signed zeros, infinities and subnormals."""

from __future__ import annotations

from collections import Counter

import numpy as np
from lab import Array, Fact, Lab, Seen, kernel, main

OPERATIONS = {
    **dict.fromkeys(
        ("add.rn.f32", "sub.rn.f32", "mul.rn.f32", "div.rn.f32", "min.f32", "max.f32",
         "min.NaN.f32", "max.NaN.f32", "add.rn.ftz.f32", "min.ftz.f32",
         "copysign.f32", "min.f16x2", "max.NaN.f16x2", "min.bf16x2", "max.NaN.bf16x2",
         "add.rn.f16x2", "mul.rn.bf16x2", "cvt.rn.f16x2.f32", "cvt.rn.bf16x2.f32",
         "cvt.rn.relu.bf16x2.f32"),
        "%a, %b",
    ),
    **dict.fromkeys(("fma.rn.f32", "fma.rn.sat.f32", "fma.rn.bf16x2", "fma.rn.relu.f16x2"),
                    "%a, %b, %c"),
    **dict.fromkeys(
        ("abs.f32", "neg.f32", "abs.ftz.f32", "sqrt.rn.f32", "rcp.rn.f32", "ex2.approx.ftz.f32",
         "lg2.approx.f32", "rsqrt.approx.f32", "tanh.approx.f32", "sin.approx.f32",
         "cvt.rni.f32.f32", "cvt.rzi.s32.f32", "cvt.rna.tf32.f32", "cvt.sat.f32.f32"),
        "%a",
    ),
}  # fmt: skip
VALUES = {
    "quiet 1": 0x7FC00001, "-quiet 12345": 0xFFC12345, "signalling 1": 0x7F800001,
    "-signalling": 0xFFA00001, "inf": 0x7F800000, "-inf": 0xFF800000, "0": 0, "-0": 0x80000000,
    "1": 0x3F800000, "subnormal": 1,
}  # fmt: skip


def inputs() -> tuple[Array, Array, Array]:
    """All pairs, and a third operand that walks through the values, too."""
    values = np.array(list(VALUES.values()), np.uint32)
    a, b = (x.ravel() for x in np.meshgrid(values, values, indexing="ij"))
    c = values[np.arange(len(a)) * 3 % len(values)]
    fill = np.zeros(128 - len(a), np.uint32)
    return np.concatenate([a, fill]), np.concatenate([b, fill]), np.concatenate([c, fill])


def observe(lab: Lab) -> Seen:
    a, b, c = inputs()
    out = np.zeros((len(OPERATIONS), len(a)), np.uint32)
    text = kernel(
        "float_rules", threads=len(a), operations=list(OPERATIONS),
        operands=list(OPERATIONS.values()),
    )  # fmt: skip
    lab.run(text, a=a, b=b, c=c, out=out)
    return dict(zip(OPERATIONS, out, strict=True))


def is_nan(x: Array) -> Array:
    return (x & 0x7FFFFFFF) > 0x7F800000


def finding(seen: Seen) -> tuple[str, object]:
    a, b, _ = inputs()
    count = len(VALUES) ** 2
    some = is_nan(a[:count]) | is_nan(b[:count])
    numbers: dict[str, object] = {}
    for operation in OPERATIONS:
        d = seen[operation][:count]
        results = Counter(f"{int(x):08x}" for x in d[some])
        numbers[operation] = {"of NaN inputs": dict(results.most_common(6))}
    zeros = {}
    for operation in ("min.f32", "max.f32", "min.NaN.f32", "add.rn.f32"):
        place = {name: i for i, name in enumerate(VALUES)}
        pairs = (("0", "-0"), ("-0", "0"), ("-0", "-0"))
        d = seen[operation]
        zeros[operation] = {
            f"{x}, {y}": f"{int(d[place[x] * len(VALUES) + place[y]]):08x}" for x, y in pairs
        }
    numbers["signed zeros"] = zeros
    f32 = [seen[o][:count][some] for o in ("add.rn.f32", "mul.rn.f32", "fma.rn.f32", "div.rn.f32")]
    made = Counter(f"{int(x):08x}" for d in f32 for x in d)
    words = (
        f"add, mul, fma, div of a NaN give {dict(made)}; min(0, -0) = {zeros['min.f32']['0, -0']}"
    )
    words += f", min(-0, 0) = {zeros['min.f32']['-0, 0']}, max(0, -0) = {zeros['max.f32']['0, -0']}"
    return words, numbers


if __name__ == "__main__":
    question = "Which bits come out of float operations on NaN and signed zeros?"
    main(Fact(id="float_rules", question=question), observe, finding)

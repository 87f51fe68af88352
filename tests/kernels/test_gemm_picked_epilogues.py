"""What is picked for a product with an epilogue keeps every promise: ops.gemm meets no spill."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from batches import verify_all

from ptxgen.configs.gemm import GemmProblem
from ptxgen.configs.gemm_pick import pick
from ptxgen.kernels import registry

pytestmark = pytest.mark.asm

# Those that take most registers, one of each kind.
EPILOGUES: tuple[dict[str, Any], ...] = (
    {"beta": 1, "bias": "row", "activation": "gelu", "alpha": 1},
    {"bias": "row", "activation": "gelu_tanh"},
    {"gated": 1, "activation": "silu"},
    {"dtype": "e4m3", "scales": "row", "accumulate": "promoted"},
    {"dtype": "e4m3", "scales": "row", "alpha": 1, "beta": 1, "bias": "column",
     "activation": "gelu_tanh", "amax": 1, "out_scale": 1},
)  # fmt: skip
# Large and square; short K; few rows, deep: swapped, split, small tiles.
SHAPES = ((8192, 8192, 8192), (16384, 8192, 512), (64, 2112, 7168), (128, 7168, 16384))


def test_picked_kernels_verify() -> None:
    sources = {}
    for fields in EPILOGUES:
        problem = GemmProblem(**fields)
        for shape in SHAPES:
            config = pick(problem, *shape)
            source = registry.build("gemm", {**asdict(problem), **asdict(config)})
            sources[registry.reference(source)] = source
    by_version = sorted(sources.items(), key=lambda x: x[1].spec.ptx_version, reverse=True)
    found = verify_all({text: (s.rendered, s.expectation) for text, s in by_version})
    for text, report in found.items():
        assert report.ok, f"{text}\n{report}"

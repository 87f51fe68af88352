"""The members of the catalogue that `ptxgen prove` checks."""

from __future__ import annotations

from ptxgen.kernels import gemm_proof

QUANTIZE = (
    "quantize",
    "quantize:scales=tensor",
    "quantize:scales=none",
    "quantize:dtype=f32,out_dtype=e5m2,scales=row_given",
)
PROOFS = (*gemm_proof.PROOFS, *QUANTIZE)

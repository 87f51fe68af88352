"""Columns 3 and 4: the emulator executes every case, and agrees with what the H200 has answered.

A refused case must be refused: UnsupportedPtx with its line, never a result. The H200's answers are
read from tests/golden/isa/, where tests/gpu/record_isa.py has put them.
"""

from __future__ import annotations

import case_kernel
import compare_results
import goldens
import isa_columns
import pytest
from case_kernel import CaseKernel, Launchable
from isa_columns import Record

import runtime
from ptxgen.errors import PtxgenError, UnsupportedPtx
from ptxgen.isa.forms import FORMS, Form
from runtime.emulator.backend import EmulatorBackend

pytestmark = pytest.mark.emu

BACKEND = EmulatorBackend()


def execute(kernel: CaseKernel, ptx: str) -> tuple[bytes, str]:
    """Run one case on the emulator: its result, and the digest of its inputs."""
    arrays = kernel.arrays(goldens.SEED)
    inputs = goldens.inputs_digest(arrays)
    args = {**arrays, "image": runtime.padded(arrays["image"])} if kernel.has_map else arrays
    runtime.launch(Launchable(kernel, ptx), backend=BACKEND, args=args)
    return kernel.result(arrays), inputs


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
def test_emulator_executes(form: Form, record_property: Record) -> None:
    kernels = case_kernel.kernels(form)
    texts = case_kernel.entries(kernels)
    answers = goldens.recorded(goldens.path_of(form))
    wrong: dict[str, str] = {}
    executed = agreed = 0
    for kernel in kernels:
        ptx = case_kernel.module([kernel], texts)
        if kernel.case.refused:
            wrong |= not_refused(kernel, ptx)
            continue
        try:
            result, inputs = execute(kernel, ptx)
        except PtxgenError as error:
            wrong[kernel.id] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            continue
        executed += 1
        golden = answers.get(kernel.id)
        if golden is not None:
            difference = compare_results.difference(kernel, result, inputs, golden)
            agreed += not difference
            wrong |= {kernel.id: difference} if difference else {}
    isa_columns.record(record_property, "emulator", form, executed)
    if answers:
        isa_columns.record(record_property, "h200", form, agreed)
    assert wrong == {}


def not_refused(kernel: CaseKernel, ptx: str) -> dict[str, str]:
    """What is wrong where a case that the table refuses does not raise UnsupportedPtx."""
    try:
        execute(kernel, ptx)
    except UnsupportedPtx as error:
        return {} if error.line else {kernel.id: f"refused without a line: {error}"}
    except PtxgenError as error:
        return {kernel.id: f"not UnsupportedPtx but {type(error).__name__}: {error}"}
    return {kernel.id: f"runs, but the table refuses it: {kernel.case.refused}"}

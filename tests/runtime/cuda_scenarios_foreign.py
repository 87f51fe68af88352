"""Foreign PTX on a GPU: what its open parameters become. Run by test_cuda_backend.py."""

from __future__ import annotations

import numpy as np
import pytest
from fake_cuda import Kernel, bf16, f32, spec

import runtime
from ptxgen.errors import ArgumentError
from ptxgen.spec import ANY_DTYPE, Dim3, PointerParam, ScalarParam, TensorMapParam

pytestmark = pytest.mark.unit

KNOWN = {"dtype": ANY_DTYPE, "access": "read_write", "align": 1}


def foreign() -> Kernel:
    """A map, two 64-bit parameters, a structure of 12 bytes and a number."""
    params = (
        TensorMapParam(name="tmap", arg="tmap", dtype=ANY_DTYPE, axes=(), box=(), use="reduce"),
        PointerParam(name="x", arg="x", **KNOWN),
        PointerParam(name="length", arg="length", **KNOWN),
        ScalarParam(name="shape", ptx_type="b8[12]"),
        ScalarParam(name="n", ptx_type="b32"),
    )
    return Kernel(spec(*params, cluster=Dim3(2)))


def test_open_parameters_become_what_is_passed(driver, torch):
    kernel, tiled, x = foreign(), bf16(96, 72), f32()
    driver.expect(kernel.spec)
    mapped = runtime.tensor_map(tiled, box=(32, 64), swizzle=128)
    shape = np.array([1, 2, 3], np.int32)
    runtime.launch(kernel, mapped, x, 2**40, shape, -5, grid=(6, 1, 1))
    seen, asked = driver.launch, driver.map
    assert list(seen.grid) == [6, 1, 1]
    assert list(asked.dims)[:2] == [72, 96]  # the driver's encoder, with the map's box
    assert list(asked.box)[:2] == [64, 32]
    values = [bytes(seen.params[i]) for i in range(5)]
    assert int.from_bytes(values[0][:8], "little") == tiled.data_ptr()
    assert int.from_bytes(values[1][:8], "little") == x.data_ptr()
    assert int.from_bytes(values[2][:8], "little") == 2**40
    assert values[3][:12] == shape.tobytes()
    assert values[4][:4] == (-5).to_bytes(4, "little", signed=True)


def test_two_calls_of_one_kernel_may_differ(driver, torch):
    """The kernel is loaded once; nothing of one call's parameters stays for the next."""
    kernel, x = foreign(), f32()
    driver.expect(kernel.spec)
    raw = bytes(range(128))
    for value, held in ((x, x.data_ptr()), (0, 0)):
        runtime.launch(kernel, raw, value, 1, bytes(12), 0, grid=2, backend="cuda")
        assert bytes(driver.launch.params[0])[:128] == raw
        assert int.from_bytes(bytes(driver.launch.params[1])[:8], "little") == held


def test_a_prepared_call_keeps_its_parameters(driver, torch):
    kernel, x = foreign(), f32()
    driver.expect(kernel.spec)
    again = runtime.prepare(kernel, bytes(128), x, 9, bytes(12), 0, grid=4)
    again()
    assert list(driver.launch.grid) == [4, 1, 1]
    assert int.from_bytes(bytes(driver.launch.params[1])[:8], "little") == x.data_ptr()


def test_an_array_is_no_tensor_map(driver, torch):
    with pytest.raises(ArgumentError, match=r"tmap=runtime\.tensor_map\("):
        runtime.launch(foreign(), bf16(), f32(), 1, bytes(12), 0, grid=2)

"""Fixtures of the scenarios that run against the fake driver."""

from __future__ import annotations

import fake_cuda
import pytest
from fake_cuda import Driver

from runtime.backend import BACKENDS
from runtime.cuda.backend import CudaBackend


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.busy = driver.capturing = driver.static_smem = driver.num_params = 0
    driver.capability, driver.clusters, driver.registers = 90, 66, 168
    driver.fail("", 0, 0)
    driver.make_current(0)
    driver.jit_says("")
    return driver


@pytest.fixture
def torch() -> fake_cuda.FakeTorch:
    return fake_cuda.install_torch()


@pytest.fixture(autouse=True)
def backend(driver: Driver) -> CudaBackend:
    backend = CudaBackend()
    BACKENDS.register("cuda", lambda: backend)
    return backend

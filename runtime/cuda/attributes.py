"""Launch configurations: grid, block, shared memory, stream, attributes in the driver's struct."""

from __future__ import annotations

from typing import Any

from ptxgen.spec import Dim3, KernelSpec
from runtime.cuda.driver import api


def launch_config(spec: KernelSpec, grid: Dim3, *, stream: int, pdl: bool) -> Any:
    """A CUlaunchConfig. `grid` is counted in CTAs; `pdl` lets the launch overlap the one before it.

    The driver reads it during each launch; nothing writes to it after this.
    """
    driver = api()
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = spec.block
    config.sharedMemBytes = spec.smem_bytes
    config.hStream = driver.CUstream(stream)
    attributes = []
    if spec.cluster.size > 1:
        attributes.append(_cluster(spec.cluster))
    if pdl:
        attributes.append(_programmatic())
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return config


def _cluster(cluster: Dim3) -> Any:
    driver = api()
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    dimension = attribute.value.clusterDim
    dimension.x, dimension.y, dimension.z = cluster
    return attribute


def _programmatic() -> Any:
    driver = api()
    which = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute = driver.CUlaunchAttribute()
    attribute.id = which
    attribute.value.programmaticStreamSerializationAllowed = 1
    return attribute

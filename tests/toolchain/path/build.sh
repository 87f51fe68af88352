#!/bin/sh
# Makes the cubins beside this file again (CUDA 13.0 or newer). The tests need the cubins only.
# -lineinfo writes the folder of the source into a cubin, so they are built in one that says nothing.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
build=/tmp/path_check
mkdir -p "$build" && cd "$build"
cp "$here"/*.cu .
for name in wgmma mma_sync mma_sync_fp8 cp_async tma plain; do
    nvcc -cubin -arch=sm_90a -lineinfo -o "$name.cubin" "$name.cu"
done
nvcc -cubin -arch=sm_90a -lineinfo -maxrregcount=24 -o spill.cubin spill.cu
nvcc -cubin -arch=sm_90a -o mma_sync_fp8_stripped.cubin mma_sync_fp8.cu  # no PTX inside
cp ./*.cubin "$here"

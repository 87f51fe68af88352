"""Whether ptxgen's model of occupancy gives what the driver answers, over a grid of kernels.

A kernel with setmaxnreg and .maxnreg N enters with exactly N registers, whatever it does.
"""

from __future__ import annotations

import numpy as np
from lab import Fact, Lab, Seen, main

from ptxgen.models.occupancy import occupancy
from ptxgen.toolchain.assemble import assemble

REGISTERS = (24, 25, 32, 33, 37, 40, 48, 56, 63, 64, 65, 72, 80, 84, 96, 104, 112, 120, 127, 128,
             129, 136, 152, 160, 168, 176, 192, 200, 208, 224, 232, 240, 248, 255)  # fmt: skip
THREADS = (1, 32, 33, 64, 96, 100, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480, 512,
           544, 576, 608, 640, 672, 704, 736, 768, 800, 832, 864, 896, 928, 960, 992,
           1024)  # fmt: skip
SMEM = (0, 1, 127, 128, 1000, 1024, 3072, 6272, 8192, 10000, 16384, 28000, 37888, 45000, 49152,
        57344, 65536, 76800, 76801, 100_000, 113_664, 115_712, 115_713, 116_736, 131_072, 196_608,
        230_000, 232_448)  # fmt: skip
REFUSED = -1  # the driver gave an error instead of a count


def text() -> str:
    entries = [
        f".visible .entry r{count}()\n.maxnreg {count}\n"
        "{\nsetmaxnreg.dec.sync.aligned.u32 24;\nret;\n}"
        for count in REGISTERS
    ]
    return ".version 8.0\n.target sm_90a\n.address_size 64\n" + "\n".join(entries) + "\n"


def observe(lab: Lab) -> Seen:
    """The driver's CTAs an SM, `[registers, threads, shared memory]`, and its register counts."""
    from runtime.cuda.driver import api, check

    driver = api()
    module = check(driver.cuModuleLoadData(assemble(text()).bytes), "loading the module")
    names = driver.CUfunction_attribute
    answers = np.zeros((len(REGISTERS), len(THREADS), len(SMEM)), np.int32)
    counts = np.zeros(len(REGISTERS), np.int32)
    for i, registers in enumerate(REGISTERS):
        function = check(driver.cuModuleGetFunction(module, f"r{registers}".encode()), "finding it")
        which = names.CU_FUNC_ATTRIBUTE_NUM_REGS
        counts[i] = check(driver.cuFuncGetAttribute(which, function), "registers")
        which = names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(driver.cuFuncSetAttribute(function, which, max(SMEM)), "asking for shared memory")
        for j, threads in enumerate(THREADS):
            for k, smem in enumerate(SMEM):
                code, ctas = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    function, threads, smem
                )
                answers[i, j, k] = REFUSED if code else ctas
    return {"driver": answers, "registers": counts}


def finding(seen: Seen) -> tuple[str, object]:
    driver = seen["driver"]
    wrong = []
    for i, registers in enumerate(seen["registers"].tolist()):
        for j, threads in enumerate(THREADS):
            for k, smem in enumerate(SMEM):
                ours = occupancy(threads=threads, registers=registers, smem_bytes=smem).ctas
                if ours != max(driver[i, j, k], 0):
                    wrong.append((registers, threads, smem, ours, int(driver[i, j, k])))
    as_asked = bool((seen["registers"] == np.array(REGISTERS)).all())
    words = f"the model differs from the driver in {len(wrong)} of {driver.size:,} kernels"
    return words, {
        "kernels": driver.size,
        "of them refused, counted as 0 CTAs": int((driver == REFUSED).sum()),
        "register counts as asked for": as_asked,
        "(registers, threads, smem, model, driver)": wrong[:40],
    }


if __name__ == "__main__":
    question = "Is models.occupancy what cuOccupancyMaxActiveBlocksPerMultiprocessor says?"
    main(Fact(id="occupancy", question=question, emulated=False), observe, finding)

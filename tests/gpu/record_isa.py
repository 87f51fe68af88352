"""Record what the GPU answers to every case of the ISA table, into tests/golden/isa/.

    PYTHONPATH=. python tests/gpu/record_isa.py [--only PREFIX ...] [--missing] [--limit SECONDS]
        [--answers FILE] [--save FOLDER] [--dry-run]
    PYTHONPATH=. python tests/gpu/record_isa.py --merge FILE

A module a form, so one load serves all of its cases. Forms run in child processes, a few at a time
in each: a case that faults, or that hangs, ends its child alone. It is written down as a fault, and
a new child goes on behind it. `--answers` keeps what was answered in one file, on a machine whose
checkout is lost; `--merge` takes it into the records here.
"""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "isa")]

import case_kernel  # noqa: E402
import goldens  # noqa: E402
from case_kernel import CaseKernel  # noqa: E402
from goldens import SEED, Golden  # noqa: E402

from ptxgen.errors import DriverError, PtxgenError  # noqa: E402
from ptxgen.isa.forms import FORMS, Form  # noqa: E402
from ptxgen.layout.tensor_map import from_array  # noqa: E402
from ptxgen.spec import TensorMapParam  # noqa: E402
from ptxgen.toolchain import discover  # noqa: E402
from ptxgen.toolchain.assemble import assemble  # noqa: E402
from runtime.buffers import borrow  # noqa: E402
from runtime.cuda import tensor_map  # noqa: E402
from runtime.cuda.driver import api, check, driver_version  # noqa: E402
from runtime.cuda.params import ParamBlock  # noqa: E402

SILENCE_S = 20.0  # of a child, after which its case counts as hanging
START_S = 120.0  # a child may take this long to its first case
CHILDREN = 8
FORMS_PER_CHILD = 8


# ---------------------------------------------------------------------------- one child: the GPU


class Gpu:
    """The first GPU: buffers that grow, modules, launches that are waited for."""

    def __init__(self) -> None:
        driver = api()
        device = check(driver.cuDeviceGet(0), "opening the GPU")
        context = check(driver.cuDevicePrimaryCtxRetain(device), "making a context")
        check(driver.cuCtxSetCurrent(context), "using the context")
        self._buffers: dict[str, tuple[int, int]] = {}
        name = check(driver.cuDeviceGetName(128, device), "asking for the GPU's name")
        self.name = name.split(b"\0")[0].decode()

    def module(self, cubin: bytes) -> Any:
        return check(api().cuModuleLoadData(cubin), "loading a module")

    def buffer(self, name: str, size: int) -> int:
        """The address of a buffer of at least `size` bytes."""
        address, held = self._buffers.get(name, (0, 0))
        if held < size:
            held = max(size, 1 << 20)
            address = int(check(api().cuMemAlloc(held), f"allocating {name}"))
            self._buffers[name] = (address, held)
        return address

    def run(self, kernel: CaseKernel, module: Any, arrays: dict[str, np.ndarray]) -> None:
        """Launch one case and wait. The arrays hold the results afterwards."""
        driver = api()
        function = check(driver.cuModuleGetFunction(module, kernel.entry.encode()), "finding it")
        where: dict[str, int] = {}
        for name, array in arrays.items():
            where[name] = self.buffer(name, array.nbytes)
            check(driver.cuMemcpyHtoD(where[name], array.ctypes.data, array.nbytes), "copying in")
        values = [where["inputs"].to_bytes(8, "little"), where["outputs"].to_bytes(8, "little")]
        for param in kernel.spec.params:
            if isinstance(param, TensorMapParam):
                meta = borrow("image", arrays["image"]).meta
                meta = replace(meta, address=where["image"], padded=True)
                values.append(tensor_map.encode(from_array(meta, param), name="image"))
        block = ParamBlock(values)
        check(
            driver.cuLaunchKernel(
                function, kernel.cluster, 1, 1, kernel.threads, 1, 1, 0, 0,
                block.address, 0,
            ),
            f"launching {kernel.id}",
        )  # fmt: skip
        check(driver.cuCtxSynchronize(), f"running {kernel.id}")
        for name in ("outputs", "image"):
            if name in arrays:
                array = arrays[name]
                check(driver.cuMemcpyDtoH(array.ctypes.data, where[name], array.nbytes), "back")


def answer(kernel: CaseKernel, gpu: Gpu, module: Any, save: Path | None) -> Golden:
    """Run one case. A fault is an answer, too."""
    arrays = kernel.arrays(SEED)
    inputs = goldens.inputs_digest(arrays)
    gpu.run(kernel, module, arrays)
    result = kernel.result(arrays)
    if save is not None:
        save.mkdir(parents=True, exist_ok=True)
        np.savez(save / f"{kernel.entry}.npz", case=kernel.id, result=np.frombuffer(result, "u1"))
    semantic = kernel.case.form.semantic
    if semantic == "runs":
        return Golden(case=kernel.id, inputs=inputs)
    values = kernel.registers(result).tobytes().hex() if semantic != "bits" else ""
    return Golden(
        case=kernel.id, inputs=inputs, digest=case_kernel.digest(result), values=values
    )  # fmt: skip


def child(form_ids: Sequence[str], skipped: set[str], save: Path | None) -> int:
    """Run forms, and say on stdout which case is next and what came of it. The cases that are
    skipped come on stdin."""
    gpu = Gpu()
    say({"gpu": gpu.name})
    for form in (form for form in FORMS if form.id in form_ids):
        kernels = [k for k in case_kernel.kernels(form) if k.id not in skipped]
        if not kernels:
            continue
        module = gpu.module(assemble(module_text(form)).bytes)
        for kernel in kernels:
            say({"next": kernel.id})
            try:
                say(asdict(answer(kernel, gpu, module, save)))
            except DriverError as error:
                say(asdict(Golden(case=kernel.id, fault=error.code)))
                return 3  # the context is lost
    return 0


def say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


# ---------------------------------------------------------------------------- the parent


def module_text(form: Form) -> str:
    kernels = case_kernel.kernels(form)
    return case_kernel.module(kernels, case_kernel.entries(kernels))


def chosen(prefixes: Sequence[str]) -> list[Form]:
    """The forms to run: refused ones have no answer of the emulator to compare."""
    return [
        form
        for form in FORMS
        if not form.refused and (not prefixes or any(form.id.startswith(p) for p in prefixes))
    ]


def known(forms: Sequence[Form]) -> set[str]:
    """The cases with an answer that is still one to their inputs."""
    found: set[str] = set()
    for form in forms:
        answers = goldens.recorded(goldens.path_of(form))
        for kernel in case_kernel.kernels(form):
            golden = answers.get(kernel.id)
            if golden and golden.inputs == goldens.inputs_digest(kernel.arrays(SEED)):
                found.add(kernel.id)
    return found


def lines_of(process: subprocess.Popen[str]) -> Iterator[dict[str, Any] | None]:
    """What a child says; None once it has been silent for too long."""
    said: queue.Queue[str | None] = queue.Queue()
    assert process.stdout is not None
    stdout = process.stdout

    def read() -> None:
        for line in stdout:
            said.put(line)
        said.put(None)

    threading.Thread(target=read, daemon=True).start()
    patience = START_S
    while True:
        try:
            line = said.get(timeout=patience)
        except queue.Empty:
            yield None
            return
        if line is None:
            return
        try:
            message = json.loads(line)
        except ValueError:
            print(line, end="", file=sys.stderr)
            continue
        patience = SILENCE_S if "next" in message else START_S
        yield message


def supervise(
    forms: Sequence[Form], skipped: set[str], save: Path | None, deadline: float
) -> tuple[list[Golden], str]:
    """Run some forms in as many children as it takes; none starts after the deadline."""
    answers: list[Golden] = []
    gpu = ""
    while time.monotonic() < deadline:
        done = skipped | {golden.case for golden in answers}
        command = [sys.executable, __file__, "--child", json.dumps([f.id for f in forms])]
        command += ["--save", str(save)] if save else []
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None
        mine = {case.id for form in forms for case in form.cases()}
        process.stdin.write(json.dumps(sorted(done & mine)))
        process.stdin.close()
        current = ""
        hung = False
        for message in lines_of(process):
            if message is None or time.monotonic() > deadline + SILENCE_S:
                hung = True
                process.kill()
                break
            if "gpu" in message:
                gpu = message["gpu"]
            elif "next" in message:
                current = message["next"]
            else:
                answers.append(Golden(**message))
                current = ""
        code = process.wait()
        if current:
            fault = "HANG" if hung else f"CHILD_EXIT_{code}"
            answers.append(Golden(case=current, fault=fault))
        elif code == 0:
            break
        elif skipped | {golden.case for golden in answers} == done:
            raise PtxgenError(f"a child failed before its first case (exit {code}): {command}")
    return answers, gpu


def record(
    forms: Sequence[Form], skipped: set[str], save: Path | None, limit_s: float
) -> tuple[list[Golden], dict[str, object]]:
    """Ask for all cases but those skipped: the answers, and where they come from."""
    deadline = time.monotonic() + limit_s
    groups = [forms[i : i + FORMS_PER_CHILD] for i in range(0, len(forms), FORMS_PER_CHILD)]
    with ThreadPoolExecutor(CHILDREN) as pool:
        parts = list(pool.map(lambda group: supervise(group, skipped, save, deadline), groups))
    about = {
        "gpu": next((gpu for _, gpu in parts if gpu), "none"),
        "driver": ".".join(str(n) for n in driver_version()),
        "ptxas": discover.ptxas().version_text,
        "date": datetime.now(UTC).date().isoformat(),
        "seed": SEED,
    }
    return [golden for part, _ in parts for golden in part], about


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of form ids")
    parser.add_argument("--missing", action="store_true", help="only cases without an answer")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds, then no child starts")
    parser.add_argument("--answers", type=Path, help="write there, not into tests/golden/isa")
    parser.add_argument("--merge", type=Path, help="take in what --answers wrote; no GPU needed")
    parser.add_argument("--dry-run", action="store_true", help="assemble everything, run nothing")
    parser.add_argument("--save", type=Path, help="keep every result there, as .npz")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        return child(options.child, set(json.load(sys.stdin)), options.save)
    if options.merge is not None:
        keep(*goldens.read_answers(options.merge))
        return 0

    forms = chosen(options.only)
    skipped = known(forms) if options.missing else set()
    forms = [form for form in forms if any(case.id not in skipped for case in form.cases())]
    start = time.perf_counter()
    with ThreadPoolExecutor() as pool:  # into the cache, where the children find them
        list(pool.map(lambda form: assemble(module_text(form)), forms))
    print(f"{len(forms)} forms assembled in {time.perf_counter() - start:.1f} s")
    if options.dry_run:
        return 0
    answers, about = record(forms, skipped, options.save, options.limit)
    if options.answers is not None:
        goldens.write_answers(options.answers, answers, about)
    else:
        keep(answers, about)
    print(f"{len(answers)} cases, {time.perf_counter() - start:.1f} s")
    return 0


def keep(answers: Sequence[Golden], about: dict[str, object]) -> None:
    """Write answers into the records, and say which were faults. A fault is no record."""
    faults = [golden for golden in answers if golden.fault]
    for path in goldens.write([g for g in answers if not g.fault], about):
        print(f"wrote {path.relative_to(ROOT)}")
    for golden in faults:
        print(f"FAULT {golden.case}: {golden.fault}")
    print(f"{len(faults)} faults", Counter(golden.fault for golden in faults))


if __name__ == "__main__":
    raise SystemExit(main())

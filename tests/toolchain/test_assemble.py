"""Assembling with every ptxas of this machine: results, refusals, remarks, caching."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ptxgen.errors import AdvisoryError, AssembleError
from ptxgen.toolchain.assemble import (
    AdvisoryWarning,
    assemble,
    cubin_key,
    require_clean,
)
from ptxgen.toolchain.cache import Store
from ptxgen.toolchain.discover import Tool, all_ptxas, tool_at
from ptxgen.toolchain.elf import sections_of

pytestmark = pytest.mark.asm


def small(body: str = "", *, head: str = ".reqntid 128 .minnctapersm 1") -> str:
    """A kernel around `body`; its first line is PTX line 10."""
    return f""".version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{head}
{{
    .reg .f32 %d<32>; .reg .u64 %out, %desc; .reg .b32 %t, %r<4>;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
{body}
    ret;
}}
"""


def wgmma(before: str = "    wgmma.fence.sync.aligned;", between: str = "", after: str = "") -> str:
    registers = ", ".join(f"%d{i}" for i in range(32))
    mma = (
        f"    wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{registers}}}, "
        "%desc, %desc, 1, 1, 1, 0, 0;"
    )
    zeros = [f"    mov.f32 %d{i}, 0f00000000;" for i in range(32)]
    stores = [f"    st.global.f32 [%out+{4 * i}], %d{i};" for i in range(32)]
    return "\n".join(
        ["    mov.b64 %desc, 0x4000004000010000;", *zeros, before, mma, between, mma,
         "    wgmma.commit_group.sync.aligned;", "    wgmma.wait_group.sync.aligned 0;",
         after, *stores]
    )  # fmt: skip


def test_clean_kernel(assembler: Tool, ring_ptx: str, store: Store) -> None:
    cubin = require_clean(assemble(ring_ptx, ptxas=assembler, store=store))
    assert cubin.bytes.startswith(b"\x7fELF")
    assert cubin.ptxas == assembler.version_text
    assert cubin.options == ("-v", "-lineinfo", "-arch=sm_90a")
    entry = cubin.report.entry("wgmma_ring")
    # 65,536 / 256 threads would be 256; ptxas takes the smallest setmaxnreg.inc below that.
    assert entry.registers == 232
    assert entry.smem_bytes == 32_768 + 32
    assert json.loads(json.dumps(cubin.to_dict()))["sha256"] == cubin.sha256
    assert "232 registers" in str(cubin)


def test_same_bytes_every_time(assembler: Tool, ring_ptx: str) -> None:
    # Each run has a scratch folder of its own, whose name must not get into the cubin.
    first, second = (assemble(ring_ptx, ptxas=assembler, store=Store(None)) for _ in range(2))
    assert first.bytes == second.bytes
    assert first.report == second.report  # the logs differ: they tell the compile time


def test_line_information_changes_no_instruction(
    assembler: Tool, ring_ptx: str, tmp_path: Path, store: Store
) -> None:
    with_lines = assemble(ring_ptx, ptxas=assembler, store=store).bytes
    (tmp_path / "k.ptx").write_text(ring_ptx)
    subprocess.run(
        [assembler.path, "-arch=sm_90a", "k.ptx", "-o", "k.cubin"], cwd=tmp_path, check=True
    )
    assert code_of(with_lines) == code_of((tmp_path / "k.cubin").read_bytes())


def code_of(cubin: bytes) -> bytes:
    section = sections_of(cubin)[".text.wgmma_ring"]
    return cubin[section.offset : section.end]


def test_syntax_error_names_ptx_and_template_line(assembler: Tool, store: Store) -> None:
    ptx = small("    mov.u33 %t, 1;\n    add.f32 %t, %t, 1;")
    with pytest.raises(AssembleError) as caught:
        assemble(ptx, ptxas=assembler, store=store, locate=lambda n: f"gemm.ptx.j2:{n + 100}")
    message = str(caught.value)
    assert "PTX line 10: error: Unknown modifier '.u33'" in message
    assert "ptx   mov.u33 %t, 1;" in message
    assert "from  gemm.ptx.j2:110" in message
    assert "PTX line 11: error" in message  # all of them, not the first
    assert str(assembler.path) in message
    assert "Unknown modifier" in caught.value.log


def test_error_in_a_wrapped_statement_shows_its_opcode(assembler: Tool, store: Store) -> None:
    ptx = small("    st.global.v4.f32 [%out],\n        {%d0, %d1,\n         %d2, %nope};")
    with pytest.raises(AssembleError, match=r"st\.global\.v4\.f32 \[%out\], \{%d0, .* %nope\};"):
        assemble(ptx, ptxas=assembler, store=store)


@pytest.mark.parametrize(
    ("edit", "target", "says"),
    [
        ((".version 8.0", ".version 99.0"), "sm_90a", "this ptxas is older than the PTX"),
        ((".version 8.0", ".version 7.8"), "sm_90a", "raise .version"),
        ((".target sm_90a", ".target sm_90"), "sm_90a", "write .target sm_90a"),
        (("", ""), "sm_90", 'assemble with target="sm_90a"'),
        (("", ""), "sm_100a", "wgmma and setmaxnreg exist on sm_90a only"),
        (("", ""), "sm_9a", "does not know the chip"),
        (("", ""), "compute_90a", "made no cubin"),  # exit 0 and no file: parsed only
        ((".version 8.0", ""), "sm_90a", "Missing .version directive"),
    ],
)
def test_wrong_version_or_target(
    assembler: Tool, store: Store, edit: tuple[str, str], target: str, says: str
) -> None:
    ptx = small(wgmma()).replace(*edit, 1)
    with pytest.raises(AssembleError, match=re.escape(says)):
        assemble(ptx, ptxas=assembler, store=store, target=target)


def test_too_old_tool_points_to_a_newer_one(store: Store) -> None:
    tools = sorted(all_ptxas(), key=lambda t: t.version)
    if len(tools) < 2 or tools[0].version >= (13, 1):
        pytest.skip("needs ptxas 13.0 or older, and a newer one")
    with pytest.raises(AssembleError, match=re.escape(f"PTXGEN_PTXAS={tools[-1].path}")):
        assemble(small().replace("8.0", "9.1", 1), ptxas=tools[0], store=store)


@pytest.mark.parametrize(
    ("ptx", "kind"),
    [
        (small("    setmaxnreg.dec.sync.aligned.u32 40;", head=".maxntid 384"),
         "setmaxnreg-entry"),
        (small("    setmaxnreg.dec.sync.aligned.u32 24;\n" + wgmma()), "setmaxnreg-minimum"),
        (small(wgmma(between="    st.global.f32 [%out], %d0;")), "serial-accumulator-read"),
    ],
    ids=["entry", "minimum", "read"],
)  # fmt: skip
def test_advisories_are_errors(assembler: Tool, store: Store, ptx: str, kind: str) -> None:
    cubin = assemble(ptx, ptxas=assembler, store=store)  # a cubin there is, for inspection
    kinds = [d.advice.name for d in cubin.report.advisories if d.advice]
    assert kind in kinds
    with pytest.raises(AdvisoryError, match="Potential Performance Loss") as caught:
        require_clean(cubin)
    assert "cure" in str(caught.value)
    assert caught.value.log == cubin.log


def test_spills_are_errors(assembler: Tool, store: Store) -> None:
    loads = "\n".join(f"    ld.volatile.global.f32 %d{i}, [%out+{4 * i}];" for i in range(32))
    stores = "\n".join(f"    st.volatile.global.f32 [%out+{4 * i}], %d{31 - i};" for i in range(32))
    ptx = small(f"{loads}\n    bar.sync 0;\n{stores}", head=".maxnreg 24")
    cubin = assemble(ptx, ptxas=assembler, store=store)
    assert cubin.report.entry().spills
    with pytest.raises(AdvisoryError, match="spill stores"):
        require_clean(cubin)


def test_advisories_as_warnings(
    assembler: Tool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTXGEN_ADVISORIES", "warn")
    ptx = small("    setmaxnreg.dec.sync.aligned.u32 40;", head=".maxntid 384")
    cubin = assemble(ptx, ptxas=assembler, store=store)
    with pytest.warns(AdvisoryWarning, match=r"\.minnctapersm 1"):
        assert require_clean(cubin) is cubin


def test_warm_cache_needs_no_ptxas(assembler: Tool, ring_ptx: str, tmp_path: Path) -> None:
    first = assemble(ring_ptx, ptxas=assembler, store=Store(tmp_path))
    gone = replace(assembler, path=tmp_path / "gone")  # would fail if it were run
    again = assemble(ring_ptx, ptxas=gone, store=Store(tmp_path))
    assert again == first


def test_damaged_cache_is_assembled_anew(assembler: Tool, tmp_path: Path) -> None:
    first = assemble(small(), ptxas=assembler, store=Store(tmp_path))
    path = Store(tmp_path).path(first.key)
    assert path is not None
    path.write_bytes(path.read_bytes()[:100])
    assert assemble(small(), ptxas=assembler, store=Store(tmp_path)).bytes == first.bytes
    assert Store(tmp_path).get(first.key) is not None


def test_refusals_are_not_cached(assembler: Tool, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(AssembleError):
            assemble(small("    nonsense;"), ptxas=assembler, store=Store(tmp_path))
    assert list(tmp_path.rglob("*.entry")) == []


def test_options_reach_ptxas_and_the_key(assembler: Tool, store: Store) -> None:
    ptx = small(wgmma())
    fast = assemble(ptx, ptxas=assembler, store=store)
    slow = assemble(ptx, ptxas=assembler, store=store, options=("-O0",))
    assert fast.key != slow.key
    # -O0 always serialises wgmma; that is how to see that the option arrived.
    assert fast.report.advisories == ()
    assert slow.report.advisories != ()


def test_key_depends_on_everything() -> None:
    tool = Tool(name="ptxas", path=Path("p"), version=(13, 0, 88), build="b", source="s")
    keys = [
        cubin_key("text", tool, ("-v", "-arch=sm_90a")),
        cubin_key("text ", tool, ("-v", "-arch=sm_90a")),
        cubin_key("text", replace(tool, version=(13, 5, 37)), ("-v", "-arch=sm_90a")),
        cubin_key("text", replace(tool, build="c"), ("-v", "-arch=sm_90a")),
        cubin_key("text", tool, ("-v", "-arch=sm_90")),
        cubin_key("text", tool, ("-v -arch=sm_90a",)),
    ]
    assert len(set(keys)) == len(keys)
    # The same tool at another place makes the same cubin.
    assert cubin_key("t", replace(tool, path=Path("q")), ()) == cubin_key("t", tool, ())


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("kill -SEGV $$", r"crashed \(SIGSEGV\)"),
        ("exit 0", "made no cubin"),
        ("echo strange words; exit 3", "strange words"),
        ("exit 3", "it said nothing"),
    ],
)
def test_tool_that_misbehaves(
    fake_tool: Callable[..., Path], store: Store, body: str, says: str
) -> None:
    with pytest.raises(AssembleError, match=says):
        assemble(small(), ptxas=tool_at("ptxas", fake_tool(body=body)), store=store)


def test_tool_that_hangs_is_stopped_with_its_children(
    fake_tool: Callable[..., Path], store: Store, tmp_path: Path
) -> None:
    mark = tmp_path / "still alive"
    path = fake_tool(body=f"(sleep 2; touch '{mark}') & wait")
    with pytest.raises(AssembleError, match=r"did not end within 0\.3 s"):
        assemble(small(), ptxas=tool_at("ptxas", path), store=store, timeout_s=0.3)
    time.sleep(2.2)
    assert not mark.exists()


def test_tool_that_is_gone(fake_tool: Callable[..., Path], store: Store) -> None:
    tool = tool_at("ptxas", fake_tool())
    tool.path.unlink()
    with pytest.raises(AssembleError, match="cannot be started"):
        assemble(small(), ptxas=tool, store=store)


def test_no_room_for_temporary_files(
    assembler: Tool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(AssembleError, match="TMPDIR"):
        assemble(small(), ptxas=assembler, store=Store(None))


COLD_START = """
import sys
from pathlib import Path
from ptxgen.toolchain.assemble import assemble
from ptxgen.toolchain.cache import Store
from ptxgen.toolchain.discover import tool_at
print("ready", flush=True)
sys.stdin.readline()
cubin = assemble(Path(sys.argv[2]).read_text(), ptxas=tool_at("ptxas", sys.argv[3]),
                 store=Store(Path(sys.argv[1])))
print(cubin.sha256)
"""


def test_sixteen_processes_assemble_the_same_kernel(
    assembler: Tool, data: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", COLD_START, str(tmp_path / "cold"),
               str(data / "wgmma_ring.ptx"), str(assembler.path)]  # fmt: skip
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(16)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    hashes = {worker.communicate("go\n", timeout=100)[0] for worker in workers}
    assert [worker.returncode for worker in workers] == [0] * 16
    assert len(hashes) == 1
    assert len([p for p in (tmp_path / "cold").rglob("*") if p.is_file()]) == 1

"""The contract block on top of a GEMM speaks the truth: its numbers against the PTX below it.

The comments are read back as text, the PTX through the parser. Neither side sees the config.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import prod

import pytest
from gemm_epilogues import EXACT, LARGE, ROUNDED
from gemm_family import MEMBERS, cover
from gemm_pitches import COPIED, DIRECT, LOADED

import ptxgen
from ptxgen.isa.dtypes import dtype
from ptxgen.kernels import registry
from ptxgen.kernels.base import KernelSource
from ptxgen.ptx import ast, parse, signature
from ptxgen.spec import PointerParam, TensorMapParam

pytestmark = pytest.mark.unit

REFERENCES = (
    "gemm", "gemm:cluster=1x2,stages=3", "gemm:cluster=1x1,wait_depth=0,stages=1",
    "gemm:tile=64x64x64,stages=max,cluster=1x1", "gemm:tile=192x128x64,out_dtype=f32,stages=2",
    "gemm:tile=256x72x128,stages=2,dtype=f16,cluster=1x2,store_n=24,store_slabs=3",
    "gemm:cluster=2x2", "gemm:batched=1,a_major=mn,b_major=mn,cluster=1x2",
    "gemm:split_k=4,cluster=1x1,tile=128x64,stages=max",
    "gemm:swap_ab=1,cluster=1x1,tile=64x16,stages=max", "gemm:dtype=tf32,tile=128x128",
    "gemm:dtype=e4m3,b_dtype=e5m2,cluster=2x2,tile=64x128", "gemm:dtype=u8,b_dtype=s8",
    "gemm:schedule=pingpong,tile=128x128", "gemm:schedule=pingpong,tile=64x256,cluster=1x1",
    "gemm:a_source=registers,wait_depth=0", "gemm:schedule=stream_k,stages=3",
    "gemm:schedule=stream_k,tile=64x32,cluster=1x1,batched=1",
    "gemm:dtype=f16,acc_dtype=f16", "gemm:alpha=1,beta=1,bias=row,activation=gelu",
)  # fmt: skip


class Contract:
    """What the comments of one kernel say."""

    def __init__(self, source: KernelSource) -> None:
        self.source = source
        self.ptx = str(source.rendered)
        self.text = self.ptx[: self.ptx.index(".version")]
        self.module = parse(self.ptx)
        self.entry = self.module.entry()

    def numbers(self, pattern: str) -> list[int]:
        """The groups of the only match in the comments."""
        matches = re.findall(pattern, self.text)
        assert len(matches) == 1, (pattern, matches)
        groups = matches[0] if isinstance(matches[0], tuple) else (matches[0],)
        return [int(group.replace(",", ""), 0) for group in groups]

    @property
    def tile(self) -> list[int]:
        """M, N, K, stages."""
        return self.numbers(r"Tile +(\d+) x (\d+) of D a CTA, (\d+) of K a stage, (\d+) stages")

    @property
    def consumers(self) -> list[int]:
        """Warpgroups, rows of each."""
        return self.numbers(r"each of (\d+) warpgroups multiplies (\d+) rows")

    @property
    def readers(self) -> int:
        """Warpgroups that multiply one stage: all, or one at a time."""
        return 1 if "They take turns" in self.text else self.consumers[0]

    def instructions(self, prefix: str) -> Iterator[ast.Instruction]:
        return (i for i in self.entry.instructions() if i.mnemonic.startswith(prefix))

    def immediates(self, prefix: str, operand: int) -> Counter[int]:
        """How often each value of an operand appears in instructions of that name."""
        values: Counter[int] = Counter()
        for instruction in self.instructions(prefix):
            value = instruction.operands[operand]
            assert isinstance(value, ast.Immediate)
            values[value.value] += 1
        return values


@pytest.fixture(params=REFERENCES)
def contract(request: pytest.FixtureRequest) -> Contract:
    return Contract(registry.build(*registry.parse_reference(request.param)))


def test_signature(contract: Contract) -> None:
    """The spec that a launch goes by against the entry that the driver sees."""
    spec, found = contract.source.spec, signature(contract.module)
    assert (found.entry, found.target, found.ptx_version) == (
        spec.entry, spec.target, spec.ptx_version,
    )  # fmt: skip
    assert found.block == spec.block
    assert (found.cluster.size if found.cluster else 1) == spec.cluster.size
    assert [p.name for p in found.params] == [p.name for p in spec.params]
    for given, want in zip(found.params, spec.params, strict=True):
        if isinstance(want, TensorMapParam):
            assert given.is_tensor_map
        elif isinstance(want, PointerParam):
            assert (given.type, given.count) == ("u64", None)
        else:
            assert (given.type, given.count) == (want.ptx_type, None)


@pytest.mark.parametrize("text", [*MEMBERS, *cover(), *EXACT, *ROUNDED])
def test_signature_of_every_kind(text: str) -> None:
    """Order and types of parameters, whatever batches and splits add to them."""
    test_signature(Contract(registry.build(*registry.parse_reference(text))))


def test_title_and_roles(contract: Contract) -> None:
    """Warps by role fill the block; rows by role fill the tile."""
    (block,) = {contract.entry.dim3("reqntid")}
    assert block is not None
    producer, first, last = contract.numbers(r"warps 0-(\d+) +producer[^$]*?warps (\d+)-(\d+)")
    assert first == producer + 1
    assert (last + 1) * 32 == block[0]
    groups, rows = contract.consumers
    assert groups == (last - producer) // 4
    tile_m, tile_n, _, _ = contract.tile
    assert contract.readers * rows == tile_m
    (n,) = contract.numbers(r"rows by (\d+)\n")
    assert n == tile_n
    assert f"// {contract.entry.name}\n" == contract.text.splitlines(keepends=True)[0]
    assert contract.entry.dim3("minnctapersm") == (1, 1, 1)  # or setmaxnreg is ignored


def test_registers(contract: Contract) -> None:
    assert contract.immediates("setmaxnreg.dec", 0) == Counter(
        contract.numbers(r"(\d+) +producer, after setmaxnreg\.dec")
    )
    (consumer, accumulators) = contract.numbers(
        r"(\d+) +consumers, after setmaxnreg\.inc; %acc takes (\d+)"
    )
    assert contract.immediates("setmaxnreg.inc", 0) == Counter([consumer])
    assert re.search(rf"\.reg \.[fb]32 %acc<{accumulators}>;", contract.ptx)
    (entry,) = contract.numbers(r"(\d+) +a thread at entry")
    assert entry == contract.source.registers.entry


def test_main_loop(contract: Contract) -> None:
    """wgmma: count, shape, one commit, the wait."""
    count, n, k, wait = contract.numbers(
        r"(\d+) wgmma m64n(\d+)k(\d+)\S*\n.*in one.*wait_group (\d+)"
    )
    mmas = list(contract.instructions("wgmma.mma_async"))
    assert len(mmas) == count
    assert {m.qualifiers[3] for m in mmas} == {f"m64n{n}k{k}"}
    forms = {".".join(m.qualifiers[3:]) for m in mmas}
    assert forms == set(re.findall(r"wgmma (m64\S+)", contract.text))
    _, tile_n, tile_k, _ = contract.tile
    assert n == tile_n
    _, rows = contract.consumers
    assert count == rows // 64 * tile_k // k
    assert len(list(contract.instructions("wgmma.commit_group"))) == 1
    assert contract.immediates("wgmma.wait_group", 0) == Counter([wait, 0] if wait else [0])
    (back,) = contract.numbers(r"released lies (\d+) back")
    assert back == wait


def test_accumulators_are_used_once_a_step(contract: Contract) -> None:
    """Every K step covers all of %acc, in order, without a gap."""
    _, accumulators = contract.numbers(r"(\d+) +consumers, after setmaxnreg\.inc; %acc takes (\d+)")
    names: list[str] = []
    for mma in contract.instructions("wgmma.mma_async"):
        vector = mma.operands[0]
        assert isinstance(vector, ast.Vector)
        names += [str(item) for item in vector.items]
    steps = len(names) // accumulators
    assert names == [f"%acc{i}" for i in range(accumulators)] * steps
    scale = [str(m.operands[3]) for m in contract.instructions("wgmma.mma_async")]
    first = len(scale) // steps
    assert scale == ["%accumulate"] * first + ["1"] * (len(scale) - first)


def test_barriers(contract: Contract) -> None:
    """Init counts and expected bytes against the table, and against the spec's boxes."""
    full, tx_bytes = contract.numbers(r"full\[s\] +(\d+) +producer lane.*?([\d,]{3,})")
    (empty,) = contract.numbers(r"empty\[s\] +(\d+) +one thread")
    *_, stages = contract.tile
    inits: Counter[tuple[str, int, int]] = Counter()
    for init in contract.instructions("mbarrier.init"):
        address, count = init.operands
        assert isinstance(address, ast.Address)
        assert isinstance(count, ast.Immediate)
        inits[str(address.base), address.offset, count.value] += 1
    assert inits == Counter(
        [("%full", 8 * s, full) for s in range(stages)]
        + [("%empty", 8 * s, empty) for s in range(stages)]
        + [("%smem", offset, arrivals) for offset, arrivals in split_barriers(contract)]
    )
    assert contract.immediates("mbarrier.arrive.expect_tx", 2) == Counter([tx_bytes])
    assert empty == contract.readers * len(receivers(contract))
    assert tx_bytes == sum(landing_bytes(contract))


def test_turns(contract: Contract) -> None:
    """The named barriers of consumers in turns: nobody else's, and all threads of both."""
    arrives = list(contract.instructions("bar.arrive"))
    if "They take turns" not in contract.text:
        assert arrives == []
        return
    first, threads = contract.numbers(r"bar (\d+)\+c +(\d+) threads: c waits, the other tells")
    groups, _ = contract.consumers
    assert first == 1 + groups  # behind those of the slabs
    assert threads == groups * 128
    assert re.search(rf"add\.u32 %my_turn, %consumer, {first};", contract.ptx)
    assert re.search(rf"sub\.u32 %other_turn, {2 * first + 1}, %my_turn;", contract.ptx)
    assert f"@%follows bar.sync %my_turn, {threads};" in contract.ptx
    assert [str(i) for i in arrives] == [f"@%hands_over bar.arrive %other_turn, {threads};"]


def split_barriers(contract: Contract) -> Iterator[tuple[int, int]]:
    """(offset, arrivals) of the barriers between the CTAs that share K."""
    if "k_tiles_per_cta" in contract.ptx:
        offsets = dict(re.findall(r"add\.u32 %(shown|seen), %smem, (\d+);", contract.ptx))
        groups, _ = contract.consumers
        for name, offset in offsets.items():
            (arrivals,) = contract.numbers(rf"{name} +(\d+) +one thread a consumer of every CTA")
            assert arrivals == groups * contract.source.spec.cluster.size
            yield int(offset), arrivals


def receivers(contract: Contract) -> set[int]:
    """Ranks that get what rank 0 of the cluster loads, itself included."""
    found = {0}
    for mask in masks(contract):
        found |= {rank for rank in range(16) if mask >> rank & 1}
    return found


def masks(contract: Contract) -> list[int]:
    """The multicast mask of rank 0 in every load that has one."""
    made = re.findall(r"shl\.b32 %mask, (\d+), %mask;\s+cvt\.u16\.u32 (\S+),", contract.ptx)
    by_register = {name: int(value) for value, name in made}
    loads = contract.instructions("cp.async.bulk.tensor")
    return [
        by_register.get(str(load.operands[3])) or int(str(load.operands[3]))
        for load in loads
        if "multicast::cluster" in load.qualifiers
    ]


def landing_bytes(contract: Contract) -> Iterator[int]:
    """Bytes that each TMA load of the loop brings into one CTA, with what its peers multicast."""
    boxes = {p.name: p for p in contract.source.spec.params if isinstance(p, TensorMapParam)}
    remaining = masks(contract)
    for load in contract.instructions("cp.async.bulk.tensor"):
        if "shared::cluster" not in load.qualifiers:
            continue  # a store
        source = load.operands[1]
        assert isinstance(source, ast.Address)
        box = boxes[str(source.base).removeprefix("%")]
        multicast = "multicast::cluster" in load.qualifiers
        senders = remaining.pop(0).bit_count() if multicast else 1
        yield dtype(box.dtype).bytes * prod(box.box) * senders


def test_shared_memory_map(contract: Contract) -> None:
    """Regions follow each other, end at the total, and their offsets are what the code adds."""
    rows = [
        (int(offset, 16), int(size.replace(",", "")), name)
        for offset, size, name in re.findall(r"//   (0x\w+)  ([\d,]+) +([\w ]+):", contract.text)
    ]
    split = ["partials", "shown", "seen"] if "k_tiles_per_cta" in contract.ptx else []
    assert [name for *_, name in rows] == ["A", "B", "D slabs", *split, "full", "empty"]
    (total,) = contract.numbers(r"Shared memory: ([\d,]+) bytes")
    assert total == contract.source.spec.smem_bytes
    ends = [offset + size for offset, size, _ in rows]
    assert all(nxt[0] >= end for nxt, end in zip(rows[1:], ends[:-1], strict=True))
    assert ends[-1] == total
    offsets = {name: offset for offset, _, name in rows}
    added = {
        str(i.operands[0]): i.operands[2].value
        for i in contract.instructions("add.u32")
        if isinstance(i.operands[2], ast.Immediate)
    }
    assert added["%full"] == offsets["full"]
    assert added["%empty"] == offsets["empty"]
    rows = "%a_lane0" if "ldmatrix" in contract.ptx else "%a_low0"
    assert added["%a_slot"] == added[rows] == offsets["A"]
    assert added["%b_slot"] == added["%b_low0"] == offsets["B"]
    assert added["%slab"] == offsets["D slabs"]
    for name in split:
        assert added[f"%{name}"] == offsets[name]
    assert "gemm_smem[];\n" in contract.ptx
    assert ".align 1024" in contract.ptx  # the swizzle works on absolute addresses


def test_the_epilogue_is_stated() -> None:
    """Its formula in the order of the terms, and nothing where there is none."""
    text = Contract(registry.build("gemm", {})).text
    assert "Epilogue" not in text
    for fields, formula in (
        ({"alpha": 1}, "D = alpha sum; in f32, rounded once"),
        ({"bias": "column", "activation": "silu"}, "D = silu(x), x = sum + bias[m]; in f32"),
        (
            {"alpha": 1, "beta": 1, "bias": "row"}, "D = alpha sum + beta C[m,n] + bias[n]; in f32",
        ),
    ):  # fmt: skip
        assert formula in Contract(registry.build("gemm", fields)).text


def test_parameters_say_their_boxes(contract: Contract) -> None:
    for param in contract.source.spec.params:
        if isinstance(param, TensorMapParam):
            rows, columns = param.box[-2:]
            assert re.search(
                rf"{param.name}\[128\], .*boxes of {rows} x {columns}, swizzle {param.swizzle}\n",
                contract.ptx,
            )


def test_no_line_of_the_contract_is_wider_than_a_page() -> None:
    for reference in (*REFERENCES, *EXACT, *ROUNDED, *LARGE, *DIRECT, *COPIED, *LOADED):
        text = str(ptxgen.kernel_from(reference).ptx)
        for line in text[: text.index("\n{\n")].splitlines():
            assert len(line) <= 100, line

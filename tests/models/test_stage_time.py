"""Stage times and the three pipeline designs: the slowest engine decides, not the sum."""

from itertools import pairwise

import pytest

from ptxgen.errors import ConfigError
from ptxgen.models.stage_time import attention_stage, stage_time
from ptxgen.models.timeline import DESIGNS, Design, timeline

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("cluster", "rate"),
    # bytes from L2 a clock that keep a 128x256 tile busy: alone 48, sharing B 32, sharing A 40
    [((1, 1), 48), ((2, 1), 32), ((1, 2), 40)],
)
def test_what_a_128x256_tile_wants_from_l2(cluster: tuple[int, int], rate: int) -> None:
    stage = stage_time(
        tile_m=128, tile_n=256, tile_k=64, cluster_m=cluster[0], cluster_n=cluster[1]
    )
    l2 = stage.chip.l2_bytes_per_clk / stage.chip.sms
    assert stage.engine("WGMMA").cycles == 1024
    assert stage.engine("TMA").cycles * l2 / 1024 == pytest.approx(rate)


def test_the_bound_and_its_share_of_peak() -> None:
    alone, shared = stage_time(), stage_time(cluster_m=2)
    assert (alone.bound, shared.bound) == ("TMA", "WGMMA")
    assert shared.of_peak == 1
    assert alone.of_peak == pytest.approx(1024 / alone.overlapped)
    assert alone.serial == pytest.approx(alone.overlapped + 1024)


def test_narrow_tiles_pay_for_a() -> None:
    """N = 32: 24 cycles a wgmma, not 16; A from registers brings them back."""
    assert stage_time(tile_m=64, tile_n=32).engine("WGMMA").cycles == 4 * 24
    assert stage_time(tile_m=64, tile_n=32, a="registers").engine("WGMMA").cycles == 4 * 16


def test_cuda_cores() -> None:
    stage = stage_time(f32_flop=256_000, sfu=32_000)
    assert stage.engine("CUDA").cycles == 2000  # SFU: 32,000 at 16; f32 takes 1,000 beside it
    assert stage.bound == "CUDA"


@pytest.mark.parametrize(
    ("head_dim", "ratio"),
    # products over exponentials: 256 FLOP a score are 1/16 clock, and so is one ex2 at 16 a clock
    [(64, 1.0), (128, 2.0), (256, 4.0)],
)
def test_attention_is_bound_by_exponentials_at_head_size_64(head_dim: int, ratio: float) -> None:
    stage = attention_stage(tile_m=128, tile_n=128, head_dim=head_dim, f32_per_score=0)
    assert stage.engine("WGMMA").cycles / stage.engine("CUDA").cycles == ratio
    assert stage.engine("CUDA").cycles == 128 * 128 / 16


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tile_m": 96}, "tile_m % 64=32  must be 0"),
        ({"tile_k": 24}, "tile_k % 16=8  must be 0"),
        ({"tile_n": 12}, "in steps of 8"),
        ({"chip": "rtx_4090"}, "must have a known L2 rate"),
        ({"sfu": -1}, "must be at least 0"),
    ],
)
def test_no_such_stage(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        stage_time(**fields)  # type: ignore[arg-type]


def test_engines_have_names() -> None:
    with pytest.raises(KeyError, match="engines: TMA, WGMMA, CUDA"):
        stage_time().engine("tensor")


# -- timelines -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("design", "load", "wgmma", "cuda", "per_tile"),
    [
        ("serial", 400, 512, 256, 400 + 512 + 256),  # the sum
        ("ring", 400, 512, 256, 512 + 256),  # the consumer does both
        ("ring", 900, 512, 256, 900),  # waiting for data
        ("ping-pong", 400, 512, 256, 512),  # the tensor core never waits
        ("ping-pong", 400, 512, 900, (512 + 900) / 2),  # CUDA cores of two consumers
        ("ping-pong", 900, 512, 256, 900),
    ],
)
def test_time_from_tile_to_tile(
    design: Design, load: float, wgmma: float, cuda: float, per_tile: float
) -> None:
    run = timeline(design=design, load=load, wgmma=wgmma, cuda=cuda, stages=4, tiles=64)
    assert run.per_tile == per_tile


def test_deeper_rings_stop_helping_once_the_latency_is_hidden() -> None:
    cycles = [
        timeline(design="ring", load=500, wgmma=400, cuda=0, stages=s, tiles=64).per_tile
        for s in (1, 2, 3, 4)
    ]
    assert cycles == [900, 500, 500, 500]


@pytest.mark.parametrize("design", DESIGNS)
def test_no_engine_works_on_two_tiles_at_once(design: Design) -> None:
    run = timeline(design=design, load=300, wgmma=200, cuda=250, stages=2, tiles=16)
    for engine in {event.engine for event in run.events}:
        own = sorted((e for e in run.events if e.engine == engine), key=lambda e: e.start)
        assert all(a.end <= b.start for a, b in pairwise(own))
    assert run.tensor_busy == pytest.approx(16 * 200 / run.cycles)


def test_loads_run_ahead_by_the_stages_only() -> None:
    run = timeline(design="ring", load=100, wgmma=1000, cuda=0, stages=3, tiles=8)
    starts = {e.tile: e.start for e in run.events if e.engine == "TMA"}
    ends = {e.tile: e.end for e in run.events if e.engine == "wgmma"}
    assert all(starts[tile] == ends[tile - 3] for tile in range(3, 8))


def test_the_gantt_chart_shows_every_engine() -> None:
    gantt = timeline(design="ping-pong").gantt()
    assert gantt.row_labels == ("TMA", "wgmma", "CUDA 0", "CUDA 1")
    assert {cell.label for cell in gantt.rows[2] if cell.label} == {"0", "2", "4", "6"}


def test_no_such_timeline() -> None:
    with pytest.raises(ConfigError, match="must be one of serial, ring, ping-pong"):
        timeline(design="dataflow")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="load \\+ wgmma \\+ cuda"):
        timeline(load=0, wgmma=0, cuda=0)

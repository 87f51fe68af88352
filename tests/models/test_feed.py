"""wgmma feed: published completion latencies, to the cycle, and the balance at N = 64."""

import pytest

from ptxgen.errors import ConfigError
from ptxgen.models.feed import WIDTHS, feed, feed_sweep

pytestmark = pytest.mark.unit

# Steady-state cycles of m64nNk16 f32.f16.f16 measured by others on an H800: one warpgroup an SM.
MEASURED = {256: (128, 128), 128: (64, 64), 64: (32, 32), 32: (24, 16), 16: (20, 13), 8: (18, 13)}


@pytest.mark.parametrize("n", MEASURED)
def test_measured_cycles(n: int) -> None:
    assert (feed(n=n).cycles, feed(n=n, a="registers").cycles) == MEASURED[n]


def test_measured_sparse_cycles() -> None:
    """2:4 sparse m64n256k32: 144 with A in shared memory, 128 with A in registers."""
    ss, rs = feed(n=256, sparse=True), feed(n=256, a="registers", sparse=True)
    assert (ss.cycles, rs.cycles) == (144, 128)
    # TFLOP/s measured 1,308 of 1,472: the ratio of the cycles
    assert rs.cycles / ss.cycles == pytest.approx(1308 / 1472, abs=5e-4)
    assert ss.flop == 2 * feed(n=256).flop


@pytest.mark.parametrize(("n", "cycles"), [(128, 80), (64, 48), (32, 32)])
def test_predicted_sparse_cycles(n: int, cycles: int) -> None:
    assert feed(n=n, sparse=True).cycles == cycles


@pytest.mark.parametrize(("n", "cycles"), [(24, 22), (40, 26), (48, 28), (96, 48)])
def test_predicted_widths_between(n: int, cycles: int) -> None:
    assert feed(n=n).cycles == cycles


@pytest.mark.parametrize(("n", "ratio"), [(64, 1.0), (128, 4 / 3), (256, 1.6)])
def test_balance_from_n_64_on(n: int, ratio: float) -> None:
    """Tensor core cycles over shared memory's: 1 at N = 64, towards 2 for wide N."""
    assert feed(n=n).ratio == pytest.approx(ratio)
    assert feed(n=n).utilization == 1


def test_below_64_the_tensor_core_waits() -> None:
    assert [n for n in WIDTHS if feed(n=n).utilization < 1] == [8, 16, 24, 32, 40, 48, 56]
    assert feed(n=56).bound == "shared memory"
    assert feed(n=64).bound == "tensor core"


def test_a_in_registers_halves_the_demand() -> None:
    """Without A's 16 cycles the ratio is 2 for every N; below N = 32 issue is the limit."""
    assert {feed(n=n, a="registers").ratio for n in WIDTHS} == {2.0}
    assert feed(n=24, a="registers").bound == "issue"
    assert feed(n=32, a="registers").bound == "tensor core"


@pytest.mark.parametrize("n", WIDTHS)
def test_the_formulas(n: int) -> None:
    assert feed(n=n).cycles == max(0.5 * n, 16 + 0.25 * n)
    assert feed(n=n, a="registers").cycles == max(0.5 * n, 0.25 * n, 13)
    assert feed(n=n).flop == 2048 * n


@pytest.mark.parametrize("n", [0, 4, 12, 264])
def test_widths_that_do_not_exist(n: int) -> None:
    with pytest.raises(ConfigError, match=r"must be 8\.\.256 in steps of 8"):
        feed(n=n)


def test_no_other_place_for_a() -> None:
    with pytest.raises(ConfigError, match="must be smem or registers"):
        feed(a="tmem")  # type: ignore[arg-type]


def test_sweep() -> None:
    lines = str(feed_sweep()).splitlines()
    assert lines[1].split()[:2] == ["n", "cycles"]
    assert [line.split()[1] for line in lines[2:]] == ["18", "20", "24", "32", "64", "128"]

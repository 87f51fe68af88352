"""Peak rates, ridge points, rows against HBM, GQA: numbers of data sheets and of the literature."""

import pytest

from ptxgen.errors import ConfigError
from ptxgen.isa.arch import CHIPS
from ptxgen.models.balance import gqa, m_balance
from ptxgen.models.rates import rates

pytestmark = pytest.mark.unit


def test_h100_rate_of_an_sm() -> None:
    """989.4 TFLOP/s over 132 SMs at 1.83 GHz are 4,096 FLOP a clock: 512 FMA a tensor core."""
    assert 989.4e12 / (132 * 1.83e9) == pytest.approx(4096, abs=0.2)
    h100 = rates(chip="h100_sxm")
    assert h100.flop_per_clk_sm == 4096
    assert h100.fma_per_clk_tensor_core == 512
    assert h100.tensor_cores == 528
    assert h100.peak_flop_per_s / 1e12 == pytest.approx(989.43, abs=0.005)


@pytest.mark.parametrize(
    ("chip", "dtype", "ridge"),
    # FLOP a byte from the data sheets' rounded peaks (so within 0.3 %)
    [
        ("v100_sxm", "f16", 138.9), ("a100_sxm", "bf16", 200.6), ("rtx_3090_ti", "bf16", 79.4),
        ("rtx_4090", "bf16", 163.9), ("rtx_4090", "e4m3", 327.7), ("h100_sxm", "bf16", 295.2),
        ("h200", "bf16", 206.1),
    ],
)  # fmt: skip
def test_ridge_points(chip: str, dtype: str, ridge: float) -> None:
    assert rates(chip=chip, dtype=dtype).ridge == pytest.approx(ridge, rel=3e-3)


def test_hbm_bytes_a_clock_rise_when_the_clock_drops() -> None:
    """13.9 B a clock and SM at 1.83 GHz and 3.35 TB/s; more at 1.41 GHz."""
    fast, slow = rates(chip="h100_sxm"), rates(chip="h100_sxm", clock_mhz=1410)
    assert fast.level("HBM").bytes_per_clk_sm == pytest.approx(13.9, abs=0.05)
    assert slow.level("HBM").bytes_per_clk_sm == pytest.approx(18.0, abs=0.05)
    assert slow.ridge < fast.ridge


@pytest.mark.parametrize(("dtype", "factor"), [("f16", 1), ("f32", 0.5), ("e4m3", 2), ("s8", 2)])
def test_rates_of_other_types(dtype: str, factor: float) -> None:
    assert rates(dtype=dtype).peak_flop_per_s == factor * rates().peak_flop_per_s


def test_h800_peak() -> None:
    assert rates(chip="h800_pcie").peak_flop_per_s / 1e12 == pytest.approx(756.5, rel=1e-3)


def test_generations() -> None:
    """A100 to H100: 3.17 x dense bf16, 2.15 x HBM, 1.25 x L2; V100 to A100: 2.5 x and 1.73 x."""
    v, a, h = CHIPS["v100_sxm"], CHIPS["a100_sxm"], CHIPS["h100_sxm"]
    peak = {c.name: rates(chip=c.name).peak_flop_per_s for c in (v, a, h)}
    assert peak["h100_sxm"] / peak["a100_sxm"] == pytest.approx(3.17, abs=0.01)
    assert h.hbm_bytes_per_s / a.hbm_bytes_per_s == pytest.approx(2.15, abs=0.01)
    assert h.l2_bytes / a.l2_bytes == 1.25
    assert peak["a100_sxm"] / peak["v100_sxm"] == pytest.approx(2.5, abs=0.02)
    assert a.hbm_bytes_per_s / v.hbm_bytes_per_s == pytest.approx(1.73, abs=0.01)


def test_chips_and_types_that_are_not_there() -> None:
    with pytest.raises(ConfigError, match="must be one of h200, h100_sxm"):
        rates(chip="b200")
    with pytest.raises(ConfigError, match="unknown dtype"):
        rates(dtype="e2m1")
    with pytest.raises(ConfigError, match="no tensor-core rate of NVIDIA A100"):
        rates(chip="a100_sxm", dtype="e4m3")
    with pytest.raises(ConfigError, match="must have a known L2 rate"):
        rates(chip="rtx_4090").level("L2")


# -- M rows ----------------------------------------------------------------------------------------


def test_64_rows_on_h100_need_78_percent_hits() -> None:
    """64 FLOP a byte against a ridge of 295: more than 4 times short, 78.3 % hits needed."""
    cold = m_balance(rows=64, chip="h100_sxm")
    assert cold.hbm_intensity == 64
    assert cold.ratio == pytest.approx(0.217, abs=5e-4)
    assert 1 / cold.ratio == pytest.approx(4.61, abs=0.01)
    assert cold.hit_needed == pytest.approx(0.783, abs=5e-4)


def test_at_80_percent_hits_h100_is_balanced() -> None:
    warm = m_balance(rows=64, hit=0.8, chip="h100_sxm")
    assert warm.hbm_intensity == pytest.approx(320)
    assert warm.ratio == pytest.approx(1.08, abs=5e-3)


def test_64_rows_on_h200() -> None:
    """The same tensor cores and more bandwidth: 3.22 times short, 69 % hits needed."""
    assert 1 / m_balance(rows=64).ratio == pytest.approx(3.22, abs=5e-3)
    assert m_balance(rows=64).hit_needed == pytest.approx(0.69, abs=1e-3)


@pytest.mark.parametrize(("chip", "hit"), [("h100_sxm", 0.35), ("h200", 0.07)])
def test_192_rows(chip: str, hit: float) -> None:
    assert m_balance(rows=192, chip=chip).hit_needed == pytest.approx(hit, abs=2e-3)


@pytest.mark.parametrize("hit", [0.0, 0.5, 0.9])
def test_the_rows_needed_are_enough_and_one_less_is_not(hit: float) -> None:
    rows = m_balance(hit=hit).rows_needed
    assert m_balance(rows=rows, hit=hit).ratio >= 1 > m_balance(rows=rows - 1, hit=hit).ratio


def test_half_the_bytes_double_the_intensity() -> None:
    assert m_balance(rows=1).hbm_intensity == 1
    assert m_balance(rows=1, dtype="e4m3").hbm_intensity == 2


@pytest.mark.parametrize(("rows", "hit"), [(0, 0.0), (64, 1.0), (64, -0.1)])
def test_no_such_balance(rows: int, hit: float) -> None:
    with pytest.raises(ConfigError, match="no such balance"):
        m_balance(rows=rows, hit=hit)


# -- GQA -------------------------------------------------------------------------------------------


def test_a_group_multiplies_the_rows() -> None:
    assert gqa(q_heads=32, kv_heads=32).rows == 1
    assert gqa(q_heads=32, kv_heads=8).rows == 4
    assert gqa(q_heads=32, kv_heads=8, q_len=16).rows == 64
    assert gqa(q_heads=32, kv_heads=8).intensity == 4


@pytest.mark.parametrize(("kv_heads", "u_shape"), [(32, 1 / 64), (8, 4 / 64), (1, 32 / 64)])
def test_decode_fills_part_of_a_tile(kv_heads: int, u_shape: float) -> None:
    assert gqa(q_heads=32, kv_heads=kv_heads).u_shape == u_shape


def test_bytes_of_a_decode_step() -> None:
    """32/8 heads of 128, 32 sequences of 4,096 in 16 bits: 537 MB, 112 us at 4.8 TB/s."""
    step = gqa(q_heads=32, kv_heads=8, kv_len=4096, head_dim=128, batch=32)
    assert step.kv_bytes == 536_870_912
    assert step.hbm_seconds * 1e6 == pytest.approx(111.8, abs=0.1)
    assert step.bound == "HBM"
    assert gqa(q_heads=32, kv_heads=8, q_len=512).bound == "tensor core"


def test_heads_must_divide() -> None:
    with pytest.raises(ConfigError, match="kv_heads must divide q_heads"):
        gqa(q_heads=32, kv_heads=5)
    with pytest.raises(ConfigError, match="no such attention"):
        gqa(batch=0)

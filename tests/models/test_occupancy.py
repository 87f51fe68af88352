"""CTAs per SM against values of the CUDA occupancy calculator (compute capability 9.0)."""

import pytest

from ptxgen.errors import ConfigError
from ptxgen.models.occupancy import occupancy

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("threads", "registers", "smem", "ctas", "limiters"),
    [
        # a warp-specialised GEMM: 3 x 5,376 registers fill a quarter's 16,384
        (384, 168, 213_056, 1, ("registers", "shared memory")),
        (256, 128, 0, 2, ("registers",)),
        (256, 64, 0, 4, ("registers",)),
        (1024, 32, 0, 2, ("threads", "registers")),
        (32, 16, 0, 32, ("CTA slots",)),
        (64, 16, 0, 32, ("threads", "CTA slots")),
        # shared memory: (233,472 / n) - 1,024 is the most that n CTAs can have
        (128, 32, 232_448, 1, ("shared memory",)),
        (128, 32, 115_712, 2, ("shared memory",)),
        (128, 32, 115_713, 1, ("shared memory",)),  # rounds up to the next 128
        (128, 32, 76_800, 3, ("shared memory",)),
        # 1,024 threads of more than 64 registers cannot be resident at all
        (1024, 64, 0, 1, ("registers",)),
        (1024, 72, 0, 0, ("registers",)),
        # 33 registers are allocated as 40; 12 warps of a quarter become 48, not 51
        (128, 33, 0, 12, ("registers",)),
        # an odd number of warps does not round up: 5 of the 32 warps that fit, six times
        (160, 64, 0, 6, ("registers",)),
    ],
)
def test_ctas_and_limiter(
    threads: int, registers: int, smem: int, ctas: int, limiters: tuple[str, ...]
) -> None:
    result = occupancy(threads=threads, registers=registers, smem_bytes=smem)
    assert (result.ctas, result.limiters) == (ctas, limiters)


def test_warps_and_table() -> None:
    result = occupancy(threads=384, registers=168, smem_bytes=100_000)
    assert result.warps == 12
    text = str(result)
    assert "registers       64,512   65,536     1  <- limits" in text
    assert "shared memory  101,120  233,472     2" in text
    assert text.endswith("1 CTA an SM, 12 of 64 warps; 132 CTAs on NVIDIA H200")


def test_hopper_chips_share_limits_and_differ_in_sms() -> None:
    on = {
        chip: occupancy(threads=256, registers=64, chip=chip)
        for chip in ("h100_sxm", "h200", "h800_pcie")
    }
    assert {x.ctas for x in on.values()} == {4}
    assert [x.resident_ctas for x in on.values()] == [528, 528, 456]
    assert on["h200"].fraction == 0.5
    with pytest.raises(ConfigError, match="must be one of h200, h100_sxm, h800_pcie"):
        occupancy(chip="a100_sxm")


def test_impossible_resources_are_all_named() -> None:
    with pytest.raises(ConfigError) as error:
        occupancy(threads=1025, registers=256, smem_bytes=232_449)
    assert [v.field for v in error.value.violations] == ["threads", "registers", "smem_bytes"]

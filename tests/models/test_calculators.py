"""All calculators: signatures that a command line can read, sweeps, JSON, HTML, plots."""

import inspect
import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from ptxgen.errors import ConfigError
from ptxgen.models.calculators import CALCULATORS, SWEEP_MAX, calculator, values_of
from ptxgen.models.record import Sweep, number

pytestmark = pytest.mark.unit


@pytest.fixture(params=CALCULATORS)
def item(request: pytest.FixtureRequest) -> Any:
    return CALCULATORS[request.param]


def test_every_input_has_a_default_and_a_meaning(item: Any) -> None:
    for parameter in inspect.signature(item.function).parameters.values():
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
    for parameter in item.parameters:
        assert parameter.help
        assert isinstance(parameter.default, parameter.type)
        assert not parameter.choices or parameter.default in parameter.choices
    assert item.summary.endswith(".")
    assert "Raises" not in item.help


def test_the_default_record(item: Any) -> None:
    record = item.run({})
    assert str(record) == record.text()
    assert record.headline()
    assert all(isinstance(v, (int, float)) for v in record.bars().values.values())
    ET.fromstring(f"<div>{record.html()}</div>")
    data = json.loads(json.dumps(record.to_dict(), allow_nan=False))
    for name in inspect.signature(type(record)).parameters:
        assert name in data


def test_records_are_frozen(item: Any) -> None:
    record = item.run({})
    name = next(iter(inspect.signature(type(record)).parameters))
    with pytest.raises(AttributeError):
        setattr(record, name, None)
    assert record == item.run({})


@pytest.mark.parametrize("name", sorted(set(CALCULATORS) - {"smem-map"}))  # it takes no number
def test_a_sweep_over_the_first_number(name: str) -> None:
    item = calculator(name)
    first = next(p for p in item.parameters if p.type in (int, float))
    swept = item.run({first.name: [first.default, first.default]})
    assert isinstance(swept, Sweep)
    assert swept.records[0] == item.run({})
    assert len(str(swept).splitlines()) == 4  # title, columns, two rows


def test_sweeps_combine_lists() -> None:
    swept = calculator("feed").run({"n": [64, 128], "a": ["smem", "registers"]})
    assert isinstance(swept, Sweep)
    assert swept.points == ((64, "smem"), (64, "registers"), (128, "smem"), (128, "registers"))
    assert [row["cycles"] for row in swept.to_dict()["rows"]] == [32, 32, 64, 64]


def test_too_many_combinations() -> None:
    with pytest.raises(ConfigError, match="too many combinations"):
        calculator("feed").run({"n": [64] * (SWEEP_MAX + 1)})


def test_an_unknown_name() -> None:
    with pytest.raises(ConfigError, match="must be one of rates, feed"):
        calculator("magic")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("64", 64), ("8,16,32", [8, 16, 32]), ("8..32:8", [8, 16, 24, 32]), ("1..3", [1, 2, 3]),
        ("1, 8..16:8", [1, 8, 16]), ("5..5", [5]), ("8..20:8", [8, 16]),
    ],
)  # fmt: skip
def test_values(text: str, values: object) -> None:
    assert values_of(text, int) == values


def test_float_ranges_reach_their_end() -> None:
    assert values_of("0..0.3:0.1", float) == pytest.approx([0, 0.1, 0.2, 0.3])


@pytest.mark.parametrize("text", ["", "a", "1..", "3..1", "1..5:0", "1.5", "0..100000", "1,,2"])
def test_what_is_no_value(text: str) -> None:
    with pytest.raises(ConfigError, match="a list 8,16,32, or a range"):
        values_of(text, int)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234, "1,234"), (0.21667, "0.2167"), (320.0, "320"), (12345.678, "12,346"), ("x", "x"),
        (float("inf"), "inf"), (True, "True"),
    ],
)  # fmt: skip
def test_numbers_as_people_read_them(value: object, text: str) -> None:
    assert number(value) == text


# -- plots -----------------------------------------------------------------------------------------


@pytest.fixture
def agg() -> Any:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is optional")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_every_record_can_be_plotted(item: Any, agg: Any) -> None:
    axes = item.run({}).plot()
    assert axes.get_xlabel()
    assert axes.has_data()
    _, mine = agg.subplots()
    assert item.run({}).plot(mine) is mine


def test_sweeps_are_lines_and_products_are_bars(agg: Any) -> None:
    line = calculator("feed").run({"n": [8, 16, 32]}).plot()
    assert list(line.get_lines()[0].get_xdata()) == [8, 16, 32]
    assert list(line.get_lines()[0].get_ydata()) == [18, 20, 24]
    assert line.get_ylabel() == "cycles"
    bars = calculator("rates").run({"chip": ["h200", "h100_sxm"]}).plot()
    assert len(bars.patches) == 2

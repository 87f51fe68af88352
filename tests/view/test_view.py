"""Views: the same data as text, HTML and SVG; panels, spans, colours that can be read."""

import xml.etree.ElementTree as ET

import pytest

from ptxgen.view import Cell, Grid, Row, Stack, Table, page
from ptxgen.view.palette import HUES, Tone, ansi, colours

pytestmark = pytest.mark.unit

SVG = "{http://www.w3.org/2000/svg}"


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.1."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("tone", [*range(len(HUES)), "mark", "good", "bad"])
def test_a_filled_cell_can_be_read_on_any_page(tone: Tone) -> None:
    """It brings its own ink: WCAG asks for a contrast of 4.5, AAA for 7."""
    pair = colours(tone)
    dark, light = sorted((luminance(pair.fill), luminance(pair.ink)))
    assert (light + 0.05) / (dark + 0.05) >= 6.5


@pytest.mark.parametrize("tone", ["plain", "muted"])
def test_other_cells_take_the_ink_of_the_page(tone: Tone) -> None:
    assert colours(tone).ink == "currentColor"


def test_hues_wrap_around() -> None:
    assert colours(len(HUES)) == colours(0)


def test_ansi() -> None:
    assert ansi("x", "plain") == "x"
    assert ansi("x", "muted") == "\x1b[2mx\x1b[0m"
    assert ansi("x", 0) == "\x1b[38;2;21;24;28;48;2;169;205;240mx\x1b[0m"


def table() -> Table:
    return Table(
        title="t",
        columns=("name", "n"),
        rows=(Row(("a", "1")), Row(("long <b>", "1,000"), "remark", "bad")),
        notes=("note",),
    )


def test_table_text() -> None:
    assert table().text() == "t\nname          n\na             1\nlong <b>  1,000  remark\nnote"
    assert "\x1b[" in table().text(color=True)


def test_table_html_escapes_and_nests() -> None:
    root = ET.fromstring(table().html())
    assert [cell.text for cell in root.iter("td")] == [
        "a",
        "1",
        None,
        "long <b>",
        "1,000",
        "remark",
    ]


def test_a_table_refuses_a_row_of_another_length() -> None:
    with pytest.raises(ValueError, match="3 cells in 2 columns"):
        Table(columns=("a", "b"), rows=(Row(("1", "2", "3")),))


def grid(**more: object) -> Grid:
    fields: dict[str, object] = {
        "rows": (
            (Cell(label="ab", tone=1), Cell(label="c", tip="<tip>")),
            (Cell(label="wide", span=2, tone="muted"),),
        ),
        "title": "g & h",
        "row_labels": ("r0", "r1"),
        "column_labels": ("x", "y"),
        "corner": "at",
        "notes": ("n",),
    }
    return Grid(**{**fields, **more})  # type: ignore[arg-type]


def test_grid_text() -> None:
    assert grid().text() == "g & h\nat x  y\nr0 ab c\nr1 |wide\nn"


def test_a_wide_grid_is_cut_into_panels() -> None:
    cells = tuple(Cell(label=f"{i:02}") for i in range(8))
    wide = Grid(rows=(cells,), column_labels=tuple(map(str, range(8))), group=4)
    panels = wide.text(width=20).split("\n\n")  # six columns would fit, one group of four does
    assert [panel.splitlines()[1].split() for panel in panels] == [
        ["00", "01", "02", "03"],
        ["04", "05", "06", "07"],
    ]


def test_a_span_over_the_edge_of_a_panel_is_cut() -> None:
    row = (Cell(label="a"), Cell(label="b", span=2), Cell(label="c"))
    assert Grid(rows=(row,), clip=1).text(width=5).split() == ["a", "b", "b", "c"]


def test_a_row_that_does_not_fill_the_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fill 2 columns"):
        grid(rows=((Cell(), Cell()), (Cell(),)))
    with pytest.raises(ValueError, match="labels for 2 rows"):
        grid(row_labels=("only one",))
    with pytest.raises(ValueError, match="labels for 2 columns"):
        grid(column_labels=("only one",))


@pytest.mark.parametrize("standalone", [True, False])
def test_svg_is_well_formed_and_holds_every_cell(standalone: bool) -> None:
    drawn = grid(legend=(Cell(label="legend", tone=2),))
    root = ET.fromstring(drawn.svg(standalone=standalone))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"g & h", "x", "y", "r0", "ab", "c", "wide", "n", "legend"} <= set(texts)
    assert len(list(root.iter(f"{SVG}rect"))) == 4
    assert [tip.text for tip in root.iter(f"{SVG}title")] == ["<tip>"]
    styles = list(root.iter(f"{SVG}style"))
    assert bool(styles) == standalone  # inline, a style would leak into the page around it


def test_nothing_is_drawn_outside_the_svg() -> None:
    root = ET.fromstring(grid(title="a title that is wider than all of the cells").svg())
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for text in root.iter(f"{SVG}text"):
        if text.attrib["text-anchor"] == "start":
            glyph = 0.6 * float(text.attrib["font-size"])  # of a monospace font
            assert float(text.attrib["x"]) + glyph * len(text.text or "") <= width
    for rect in root.iter(f"{SVG}rect"):
        assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= width
        assert float(rect.attrib["y"]) + float(rect.attrib["height"]) <= height


def test_notebooks_get_text_and_html() -> None:
    both = Stack.of(table(), None, grid())
    bundle = both._repr_mimebundle_()
    assert bundle["text/plain"] == str(both) == f"{table()}\n\n{grid()}"
    assert bundle["text/html"].count("<svg") == 1
    assert grid()._repr_svg_().startswith("<svg")


def test_a_page_opens_alone() -> None:
    text = page(table(), "a < b")
    assert "<title>a &lt; b</title>" in text
    assert 'content="light dark"' in text
    assert "<script" not in text
    assert "http" not in text.replace("http://www.w3.org", "")

"""Views: what is to be looked at, as data, and one renderer of it for text and for HTML.

    Table   named columns, one row a thing             text, HTML
    Grid    cells with labels and tones                text, HTML, SVG
    Code    lines, coloured by what their words do     text, HTML
    Stack   views below each other                     text, HTML

A view knows nothing of what it shows. `str()` gives plain text, `text(color=True)` adds ANSI
colours, and a notebook shows the HTML. Colours are chosen so that both light and dark pages can be
read: a filled cell brings its own ink, everything else takes the colour of the page's text.
"""

from ptxgen.view.base import Shown, Stack, View, count
from ptxgen.view.code import Code
from ptxgen.view.compare import Beside, Folded, Heading
from ptxgen.view.grid import Cell, Grid
from ptxgen.view.page import page
from ptxgen.view.palette import Tone
from ptxgen.view.table import Row, Table

__all__ = [
    "Beside",
    "Cell",
    "Code",
    "Folded",
    "Grid",
    "Heading",
    "Row",
    "Shown",
    "Stack",
    "Table",
    "Tone",
    "View",
    "count",
    "page",
]

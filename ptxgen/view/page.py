"""A view as a page that opens alone: one HTML file, no scripts, no other files, light and dark."""

from __future__ import annotations

from html import escape

from ptxgen.view.base import View


def page(view: View, title: str) -> str:
    """A complete HTML document that shows the view. It follows the reader's light or dark theme."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title>"
        "<style>body{margin:24px;font-family:system-ui,sans-serif;background:Canvas;"
        "color:CanvasText}body>div{margin-bottom:20px}</style></head>\n"
        f"<body>\n{view.html()}\n</body></html>\n"
    )

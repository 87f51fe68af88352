"""Templates to PTX text: one Jinja environment, one formatting pass, one source map."""

from ptxgen.templating.render import Rendered, render, render_text

__all__ = ["Rendered", "render", "render_text"]

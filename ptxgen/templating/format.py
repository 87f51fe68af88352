"""One pass over rendered PTX: indentation by brace depth, blank lines, long register lists.

The text of instructions is never changed, only the white space around it.
"""

from __future__ import annotations

import re

from ptxgen.templating.source_map import Line

_INDENT = 4
_NAMES_PER_LINE = 16
_LABEL = re.compile(r"^\$?[A-Za-z_][\w$]*:$")
_LONG_LIST = re.compile(rf"\{{((?:\s*%\w+\s*,){{{_NAMES_PER_LINE},}}\s*%\w+\s*)\}}")


def format_lines(lines: list[Line]) -> list[Line]:
    """Reindent, collapse runs of blank lines, and wrap register lists at 16 names a line."""
    out: list[Line] = []
    depth = 0
    parens = 0
    for line in lines:
        text = line.text.strip()
        if not text:
            if out and out[-1].text and not out[-1].text.rstrip().endswith("{"):
                out.append(Line("", ()))
            continue
        code = text.split("//", 1)[0]
        opens, closes = code.count("{"), code.count("}")
        if code.strip() == "}" and out and not out[-1].text:
            out.pop()
        here = depth - (1 if code.lstrip().startswith("}") else 0) + (1 if parens else 0)
        if code.lstrip().startswith(")"):
            here -= 1
        if _LABEL.match(code.strip()):
            here -= 1
        prefix = " " * (_INDENT * max(here, 0))
        out.extend(Line(t, line.chain) for t in _wrap(prefix, text))
        depth += opens - closes
        parens += code.count("(") - code.count(")")
    while out and not out[-1].text:
        out.pop()
    return out


def _wrap(prefix: str, text: str) -> list[str]:
    match = _LONG_LIST.search(text)
    if match is None:
        return [prefix + text]
    names = [name.strip() for name in match.group(1).split(",")]
    rows = [names[i : i + _NAMES_PER_LINE] for i in range(0, len(names), _NAMES_PER_LINE)]
    inner = prefix + " " * _INDENT
    body = [f"{inner} {', '.join(row)}," for row in rows]
    body[0] = f"{inner}{{{', '.join(rows[0])},"
    body[-1] = f"{inner} {', '.join(rows[-1])}}}{text[match.end() :]}"
    return [prefix + text[: match.start()].rstrip(), *body]

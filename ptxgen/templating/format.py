"""One pass over rendered PTX: indentation by brace depth, blank lines, long register lists.

The text of instructions is never changed, only the white space around it. Formatting formatted
text changes nothing.
"""

from __future__ import annotations

import re

from ptxgen.templating.source_map import Line

_INDENT = 4
_NAMES_PER_LINE = 16
_LABEL = re.compile(r"^\$?[A-Za-z_][\w$]*:$")
_LONG_LIST = re.compile(rf"\s*\{{((?:\s*%\w+\s*,){{{_NAMES_PER_LINE},}}\s*%\w+\s*)\}}")
_ENDS_STATEMENT = (";", "{", "}", ":", "(", ")")


def format_lines(lines: list[Line]) -> list[Line]:
    """Reindent, collapse runs of blank lines, and wrap register lists at 16 names a line."""
    out: list[Line] = []
    depth = 0  # open braces
    parens = 0  # open parentheses: the parameter list of an entry
    base: int | None = None  # depth at which the statement began that the last line left open
    for line in lines:
        text = line.text.strip()
        code = text.split("//", 1)[0].strip()
        if not text:
            if out and out[-1].text and not out[-1].text.endswith("{"):
                out.append(Line("", ()))
            continue
        if code == "}" and out and not out[-1].text:
            out.pop()
        if base is None or not code:
            here = depth + (1 if parens else 0) - _dedent(code)
            prefix = " " * (_INDENT * max(here, 0))
        else:
            prefix = " " * (_INDENT * (base + 1) + (1 if depth > base else 0))
        out.extend(Line(t, line.chain) for t in _wrap(prefix, text, base is not None))
        if code:
            base = _open_statement(code, base, depth, parens)
        depth += code.count("{") - code.count("}")
        parens += code.count("(") - code.count(")")
    while out and not out[-1].text:
        out.pop()
    return out


def _dedent(code: str) -> int:
    """Levels by which a line stands out: what closes a bracket, and labels."""
    return 1 if code.startswith(("}", ")")) or _LABEL.match(code) else 0


def _open_statement(code: str, base: int | None, depth: int, parens: int) -> int | None:
    """The depth of the instruction that is still open behind this line; None if none is."""
    if base is None and (parens or code.startswith((".", "{", "}", ")")) or _LABEL.match(code)):
        return None  # directives need no semicolon
    start = depth if base is None else base
    inside = depth + code.count("{") - code.count("}") > start
    return None if code.endswith(_ENDS_STATEMENT) and not inside else start


def _wrap(prefix: str, text: str, continues: bool) -> list[str]:
    """The rows of a line: a long register list on rows of its own, what follows it on the last."""
    match = _LONG_LIST.search(text)
    if match is None:
        return [prefix + text]
    names = [name.strip() for name in match.group(1).split(",")]
    rows = [names[i : i + _NAMES_PER_LINE] for i in range(0, len(names), _NAMES_PER_LINE)]
    inner = prefix if continues else prefix + " " * _INDENT
    body = [f"{inner} {', '.join(row)}," for row in rows]
    body[0] = f"{inner}{{{', '.join(rows[0])},"
    rest = text[match.end() :].strip()
    comma = "," if rest.startswith(",") else ""
    body[-1] = f"{inner} {', '.join(rows[-1])}}}{comma}"
    rest = rest.removeprefix(",").strip()
    if rest.startswith((";", "//")):
        body[-1] += rest if rest.startswith(";") else f"  {rest}"
    elif rest:
        body += _wrap(inner, rest, True)
    head = text[: match.start()].strip()
    return [prefix + head, *body] if head else body

"""The indentation of a fill with several lines: it must fit the hole, and a dedent ends the fill."""

from lsp_server.hole.hole import Hole
from lsp_server.hole.scope import indent_of
from lsp_server.languages.language import CLOSERS, Language, balance


def fitted(fill: str, hole: Hole, language: Language) -> str:
    """Return `fill` with a first line that continues the hole's own indentation.

    A model may repeat the indentation before the cursor, or leave out the indentation that an empty body needs.
    """
    lines = fill.split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    if not lines:
        return ""
    before = hole.line_before
    lead = indent_of(lines[0])
    rest = [line for line in lines[1:] if line.strip()]
    if lead and before and _width(before, language) >= _width(hole.indent, language):
        lines[0] = lines[0][len(lead) :]
        if rest and all(_width(indent_of(line), language) >= _width(before + lead, language) for line in rest):
            lines[1:] = [line.removeprefix(lead) for line in lines[1:]]
    elif hole.cursor_context == "body" and hole.indent.startswith(before) and lead != hole.indent[len(before) :]:
        missing = hole.indent[len(before) :]
        lines[0] = missing + lines[0][len(lead) :]
        if (
            not lead
            and rest
            and min(_width(indent_of(line), language) for line in rest) < _width(hole.indent, language)
        ):
            lines[1:] = [missing + line if line.strip() else line for line in lines[1:]]
    return "\n".join(lines)


def until_dedent(fill: str, hole: Hole, language: Language) -> str:
    """Return the lines of `fill` before the first that is indented less than the hole, without blank lines at the end.

    Lines inside a string, and lines that close a bracket of the fill, may be indented less.
    """
    lines = fill.split("\n")
    level = _width(indent_of(hole.line_before + lines[0]), language)
    kept = [lines[0]]
    for line in lines[1:]:
        if line.strip() and _width(indent_of(line), language) < level:
            so_far = balance("\n".join(kept), language)
            closes_own = line.lstrip()[0] in CLOSERS and so_far.opened
            if not so_far.quote and not closes_own:
                break
        kept.append(line)
    return "\n".join(kept).rstrip()


def _width(indent: str, language: Language) -> int:
    return len(indent.expandtabs(language.indent_width))

"""One step of a text's indentation."""

from collections import Counter

from lsp_server.languages.language import Language
from lsp_server.refactor.syntax import Syntax

_OPENERS = (b":", b"{", b"(", b"[", b"=>")


def indent_unit(syntax: Syntax, language: Language) -> str:
    """Return one step of a text's indentation: the most frequent one after a line that opens something."""
    steps: Counter[str] = Counter()
    before, opens = b"", False
    for line in syntax.data.split(b"\n"):
        content = line.strip()
        if not content:
            continue
        indent = line[: len(line) - len(line.lstrip(b" \t"))]
        if opens and indent.startswith(before) and len(indent) > len(before):
            steps[indent[len(before) :].decode()] += 1
        before, opens = indent, content.endswith(_OPENERS)
    if steps:
        return steps.most_common(1)[0][0]
    return "\t" if language.id == "go" else " " * language.indent_width

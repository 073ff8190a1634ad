"""Which places are chosen together, and what a person sees of them."""

import pytest
from support.refactor_case import edit_of

from lsp_server.bulk.blocks import Block, blocks_of
from lsp_server.documents.source import Source

TIMEOUT = ("get(a)", "get(a, timeout=10)")


def blocks(text: str, example: tuple[str, str] = TIMEOUT, language: str = "python") -> tuple[list[Block], list[Block]]:
    return blocks_of(Source.of(text), edit_of(language, [example], text))


def test_places_on_lines_of_their_own_are_chosen_one_by_one() -> None:
    found, following = blocks("get(b)\n\nx = get(c)  # 🙂\n")

    assert [(one.line, one.before, one.after) for one in found] == [
        (0, "get(b)", "get(b, timeout=10)"),
        (2, "x = get(c)  # 🙂", "x = get(c, timeout=10)  # 🙂"),
    ]
    assert [(one.start, one.end) for one in found] == [(0, 6), (12, 18)]
    assert following == []


def test_places_on_one_line_are_chosen_together() -> None:
    (one,), _ = blocks("f(get(b), get(c))\n")

    assert one.after == "f(get(b, timeout=10), get(c, timeout=10))"
    assert len(one.spans) == 2


def test_a_place_inside_of_another_is_chosen_with_it() -> None:
    (one,), _ = blocks("get(\n    get(b),\n)\n")

    assert (one.line, one.before) == (0, "get(\n    get(b),\n)")
    assert one.after == "get(\n    get(b, timeout=10),\n    timeout=10,\n)"


def test_a_long_place_does_not_take_along_what_is_inside_of_it() -> None:
    body = "".join(f"      <i{index} />\n" for index in range(20))
    text = f"const a = (\n  <Button old={{1}}>\n{body}    <Button old={{2}} />\n  </Button>\n);\n"
    found, _ = blocks(text, ("<Button old={x} />", "<Button new={x} />"), "typescriptreact")

    assert [one.after.strip() for one in found] == ["<Button new={1}>", "<Button new={2} />"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_imports_follow_the_places(newline: str) -> None:
    text = newline.join(["import os", "", "os.path.join(c, d)", ""])
    example = ("import os\nos.path.join(a, b)\n", "from pathlib import Path\nPath(a) / b\n")

    (place,), (imported,) = blocks(text, example)

    assert (place.before, place.after) == ("os.path.join(c, d)", "Path(c) / d")
    assert (imported.line, imported.before, imported.after) == (0, "import os", "from pathlib import Path")
    assert imported.spans == ()

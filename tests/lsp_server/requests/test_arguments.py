"""A changed signature, through a real server: its calls follow, and the embedded model writes the argument."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import attrs
import pytest
import pytest_asyncio
from support.coder import coder_or_skip
from support.lsp_editor import engine_home
from support.next_edit_editor import NextEditEditor

from engine.cli.demo import samples

pytestmark = pytest.mark.asyncio(loop_scope="module")


@attrs.frozen
class Case:
    """A file with a function of two parameters, and a call in a function that has a variable named currency."""

    name: str
    text: str
    new: str = "currency"


_PYTHON = Case(
    "cart.py",
    "def price(items, tax):\n    return sum(items) + tax\n\n\ndef pay(cart, currency):\n    total = 0\n"
    "    return price(cart.items, cart.tax)\n",
)
_CASES = [
    _PYTHON,
    Case(
        "cart.js",
        "function price(items, tax) {\n  return items.length + tax;\n}\n\nfunction pay(cart, currency) {\n"
        "  const total = 0;\n  return price(cart.items, cart.tax);\n}\n",
    ),
    Case(
        "cart.ts",
        "function price(items: Item[], tax: number): number {\n  return items.length + tax;\n}\n\n"
        "function pay(cart: Cart, currency: string): number {\n  const total = 0;\n"
        "  return price(cart.items, cart.tax);\n}\n",
        "currency: string",
    ),
    Case(
        "cart.rs",
        "fn price(items: &[Item], tax: i32) -> i32 {\n    items.len() as i32 + tax\n}\n\n"
        "fn pay(cart: &Cart, currency: &str) -> i32 {\n    let total = 0;\n    price(&cart.items, cart.tax)\n}\n",
        "currency: &str",
    ),
]
_LANGUAGES = {"py": "python", "js": "javascript", "ts": "typescript", "rs": "rust", "go": "go"}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with engine_home(tmp_path_factory.mktemp("runtime"), "embedded"):
        yield {"model": "embedded"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(settings: dict[str, str]) -> AsyncIterator[NextEditEditor]:
    editor = NextEditEditor()
    await editor.start(settings)
    await editor.open_ready("|\n")
    yield editor
    await editor.stop()


def show(editor: NextEditEditor, text: str, name: str) -> None:
    editor.show(text, f"file:///project/{name}", _LANGUAGES[name.rpartition(".")[2]])


def declare(editor: NextEditEditor, new: str) -> None:
    """Give the first signature of the document another parameter by hand."""
    at = editor.text.index(")")
    editor.change(at, at, f", {new}")


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
async def test_a_call_gets_the_variable_that_has_the_parameters_name(editor: NextEditEditor, case: Case) -> None:
    show(editor, case.text, case.name)
    declare(editor, case.new)
    edit = await editor.next_edit()
    assert edit is not None
    assert edit.text == ", currency"
    await editor.accept(edit)
    assert "cart.tax, currency)" in editor.text
    assert await editor.next_edit() is None


async def test_after_one_call_was_taken_the_next_is_offered_where_it_knows_the_variable(editor: NextEditEditor) -> None:
    second = "\n\ndef send(cart, currency):\n    found = 0\n    return price(cart.items, cart.tax)\n"
    third = "\n\ndef show(cart):\n    shown = 0\n    return price(cart.items, cart.tax)\n"
    show(editor, _PYTHON.text + second + third, "three.py")
    declare(editor, "currency")
    for count in (1, 2):
        edit = await editor.next_edit()
        assert edit is not None
        await editor.accept(edit)
        assert editor.text.count("cart.tax, currency)") == count
    edit = await editor.next_edit()
    assert edit is None or edit.text != ", currency"


async def test_half_a_signature_offers_nothing(editor: NextEditEditor) -> None:
    show(editor, _PYTHON.text, "half.py")
    at = editor.text.index(")")
    editor.change(at, at + 1, ", currency")
    assert await editor.next_edit() is None


async def test_a_name_that_nothing_binds_is_not_written(editor: NextEditEditor) -> None:
    show(editor, _PYTHON.text.replace("(cart, currency)", "(cart)"), "unbound.py")
    declare(editor, "currency")
    edit = await editor.next_edit()
    assert edit is None or edit.text != ", currency"


async def test_a_removed_parameter_is_removed_in_every_call_without_a_model(editor: NextEditEditor) -> None:
    text = _PYTHON.text + "\n\nfirst = 1\nsecond = 2\n\n\nprint(price([1], 2))\n"
    show(editor, text, "removed.py")
    editor.replace("(items, tax)", "(items)")
    lines = []
    while (edit := await editor.next_edit()) is not None:
        lines.append(editor.line(edit))
        await editor.accept(edit)
    assert lines == ["return price(cart.items)", "print(price([1]))"]


async def test_escape_ends_it_for_this_signature(editor: NextEditEditor) -> None:
    show(editor, _PYTHON.text, "escape.py")
    declare(editor, "currency")
    assert await editor.next_edit() is not None
    await editor.command("midspan.nextEditDismissed")
    assert await editor.next_edit() is None
    editor.replace("sum(items) + tax", "sum(items) + tax + currency")
    assert await editor.next_edit() is None


async def test_a_key_ends_the_wait(editor: NextEditEditor) -> None:
    show(editor, _PYTHON.text, "keys.py")
    declare(editor, "currenc")
    asked = asyncio.create_task(editor.next_edit())
    await asyncio.sleep(0)
    editor.replace("currenc", "currency")
    assert await asked is None
    assert (await editor.next_edit()).text == ", currency"


async def test_in_the_demo_the_call_of_count_follows_with_qwen(tmp_path: Path) -> None:
    coder = coder_or_skip()
    (sample,) = [one for one in samples() if one.name == "wordcount.go"]
    with engine_home(tmp_path, coder):
        editor = NextEditEditor()
        await editor.start({"model": str(coder)})
        await editor.open_ready("|\n")
        show(editor, sample.above + sample.typed + sample.below, sample.name)
        editor.replace("*bufio.Scanner)", "*bufio.Scanner, output *os.File)")
        edit = await editor.next_edit()
        await editor.stop()
    assert edit is not None
    assert editor.line(edit) == "counts := count(bufio.NewScanner(os.Stdin), os.Stdout)"

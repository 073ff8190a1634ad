"""Calls in other files of the workspace follow a changed signature, through a real server and the embedded model."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.lsp_editor import engine_home
from support.next_edit_editor import NextEditEditor

pytestmark = pytest.mark.asyncio(loop_scope="module")

_PRICE = "def price(items, tax):\n    return sum(items) + tax\n"
_PAY = "def pay(cart, currency):\n    total = 0\n    return price(cart.items, cart.tax)\n"
_IMPORTS = "from cart import price\n\n\n"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with engine_home(tmp_path_factory.mktemp("runtime"), "embedded"):
        yield {"model": "embedded"}


@pytest_asyncio.fixture(loop_scope="module")
async def editor(settings: dict[str, str], tmp_path: Path) -> AsyncIterator[NextEditEditor]:
    """An editor of a project with two files that import the function of a third, which is open."""
    for name, text in {"cart.py": _PRICE, "pay.py": _IMPORTS + _PAY, "other.py": _IMPORTS + "price(1)\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    editor = NextEditEditor()
    await editor.start(settings, folders=[tmp_path])
    await editor.open_ready("|\n")
    editor.show(_PRICE, (tmp_path / "cart.py").as_uri())
    yield editor
    await editor.stop()


async def jumped(editor: NextEditEditor, edit: Any, text: str) -> Any:
    """Open the file of an edit, as an editor does that jumps there, and return what is offered in it."""
    editor.show(text, edit.textDocument.uri)
    return await editor.next_edit(any_file=True)


async def test_a_call_in_a_file_that_is_not_open_gets_its_argument(editor: NextEditEditor, tmp_path: Path) -> None:
    editor.replace("tax)", "tax, currency)")
    assert await editor.next_edit() is None
    edit = await editor.next_edit(any_file=True)
    assert (edit.textDocument.uri, edit.text) == ((tmp_path / "pay.py").as_uri(), ", currency")
    edit = await jumped(editor, edit, _IMPORTS + _PAY)
    assert editor.line(edit) == "return price(cart.items, cart.tax, currency)"
    await editor.accept(edit)
    assert await editor.next_edit(any_file=True) is None


async def test_a_file_that_is_open_counts_as_the_editor_shows_it(editor: NextEditEditor, tmp_path: Path) -> None:
    text = "import os\n\n" + _IMPORTS + _PAY
    editor.show(text, (tmp_path / "pay.py").as_uri())
    editor.show(_PRICE, (tmp_path / "cart.py").as_uri())
    editor.replace("tax)", "tax, currency)")
    edit = await editor.next_edit(any_file=True)
    assert edit.textDocument.uri == (tmp_path / "pay.py").as_uri()
    assert edit.range.start.line == text.count("\n") - 1


async def test_the_calls_of_its_own_file_come_first(editor: NextEditEditor, tmp_path: Path) -> None:
    editor.show(f"{_PRICE}\n\n{_PAY}", (tmp_path / "cart.py").as_uri())
    editor.replace("tax)", "tax, currency)")
    edit = await editor.next_edit(any_file=True)
    assert editor.line(edit) == "return price(cart.items, cart.tax, currency)"
    await editor.accept(edit)
    edit = await editor.next_edit(any_file=True)
    assert edit.textDocument.uri == (tmp_path / "pay.py").as_uri()


async def test_the_model_gets_nothing_once_midspan_is_switched_off(editor: NextEditEditor, tmp_path: Path) -> None:
    editor.show(f"{_PRICE}\n\n{_PAY}", (tmp_path / "cart.py").as_uri())
    before = (await editor.command("midspan.status"))["asked"]
    editor.replace("tax)", "tax, currency)")
    asking = asyncio.create_task(editor.next_edit(any_file=True))
    await asyncio.sleep(0)  # the request goes first
    await editor.command("midspan.toggle")
    assert await asking is None
    assert (await editor.command("midspan.status"))["asked"] == before


async def test_a_removed_parameter_goes_in_file_after_file_without_a_model(
    editor: NextEditEditor, tmp_path: Path
) -> None:
    texts = {"pay.py": _IMPORTS + _PAY}
    texts["other.py"] = "import cart\n\nx = cart.price([1], 2)\ny = cart.price([2], tax=3)\n"
    (tmp_path / "other.py").write_text(texts["other.py"], "utf-8")
    editor.replace("(items, tax)", "(items)")
    lines = []
    edit = await editor.next_edit(any_file=True)
    while edit is not None:
        if edit.textDocument.uri != editor.uri:
            edit = await jumped(editor, edit, texts[edit.textDocument.uri.rpartition("/")[2]])
        lines.append(editor.line(edit))
        await editor.accept(edit)
        edit = await editor.next_edit(any_file=True)
    assert sorted(lines) == ["return price(cart.items)", "x = cart.price([1])", "y = cart.price([2])"]


async def test_two_parameters_are_one_edit_of_each_call(editor: NextEditEditor, tmp_path: Path) -> None:
    (tmp_path / "pay.py").write_text((_IMPORTS + _PAY).replace("currency)", "currency, locale)"), encoding="utf-8")
    editor.replace("tax)", "tax, currency, locale)")
    edit = await editor.next_edit(any_file=True)
    assert edit is not None
    assert edit.text == ", currency, locale"


async def test_a_document_that_is_opened_anew_begins_anew(editor: NextEditEditor, tmp_path: Path) -> None:
    (tmp_path / "pay.py").unlink()
    editor.replace("tax)", "tax, currency)")
    assert await editor.next_edit(any_file=True) is None
    editor.close()
    (tmp_path / "pay.py").write_text(_IMPORTS + _PAY, encoding="utf-8")
    editor.show(_PRICE, (tmp_path / "cart.py").as_uri())
    editor.replace("tax)", "tax, currency)")
    assert await editor.next_edit(any_file=True) is not None


@pytest.mark.parametrize("ends", ["escape", "typing elsewhere"])
async def test_it_ends_there_as_it_does_in_its_own_file(editor: NextEditEditor, ends: str) -> None:
    editor.replace("tax)", "tax, currency)")
    edit = await jumped(editor, await editor.next_edit(any_file=True), _IMPORTS + _PAY)
    assert edit is not None
    if ends == "escape":
        await editor.command("midspan.nextEditDismissed")
    else:
        editor.change(len(editor.text), len(editor.text), "\n\nx = 1\n")
    assert await editor.next_edit(any_file=True) is None


async def test_keys_end_the_search_for_the_start_of_a_name(editor: NextEditEditor) -> None:
    editor.replace("tax)", "tax, )")
    editor.offset = editor.text.index(", )") + 2
    asked = []
    for key in "currency":
        editor.type(key)
        asked.append(asyncio.create_task(editor.next_edit(any_file=True)))
        await asyncio.sleep(0)
    *early, last = await asyncio.gather(*asked)
    assert early == [None] * len(early)
    assert last.text == ", currency"


async def test_a_model_that_may_not_read_other_files_writes_nothing_there(
    settings: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "pay.py").write_text(_IMPORTS + _PAY, encoding="utf-8")
    editor = NextEditEditor()
    await editor.start({**settings, "relatedFiles": "never"}, folders=[tmp_path])
    await editor.open_ready("|\n")
    editor.show(_PRICE, (tmp_path / "cart.py").as_uri())
    editor.replace("tax)", "tax, currency)")
    assert await editor.next_edit(any_file=True) is None
    editor.replace("items, tax, currency)", "items)")
    assert (await editor.next_edit(any_file=True)).text == ""
    await editor.stop()


async def test_nothing_is_offered_in_a_file_that_must_not_be_read(editor: NextEditEditor, tmp_path: Path) -> None:
    (tmp_path / "pay.py").rename(tmp_path / "id_rsa.py")
    (tmp_path / ".gitignore").write_text("id_rsa.py\n", encoding="utf-8")
    editor.replace("tax)", "tax, currency)")
    assert await editor.next_edit(any_file=True) is None

"""The next edit by Qwen2.5-Coder 0.5B with its own weights, in an editor's session; skipped without its file.

The tests hold the mechanics: what is offered is a change of the call, and what the model writes there is its own.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.coder import coder_or_skip
from support.kernel_passes import skip_without
from support.lsp_editor import engine_home
from support.next_edit_editor import NextEditEditor

pytestmark = [pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="module")]
CART = """\
def price(items, tax):
    return sum(items) * (1 + tax)


def checkout(cart):
    total = price(cart.items, cart.tax)
    cart.total = total
    return total
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Path]:
    """Both engines are in one folder: the tiny model fills, and Qwen gives the next edits."""
    skip_without("plain")
    runtime = tmp_path_factory.mktemp("runtime")
    with engine_home(runtime, coder_or_skip()), engine_home(runtime, tiny_model):
        yield tiny_model


async def started(home: Path, edits_model: str) -> NextEditEditor:
    editor = NextEditEditor()
    settings: dict[str, Any] = {"model": str(home), "threads": 2, "editsModel": edits_model}
    await editor.start({"midspan": settings})
    return editor


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(home: Path) -> AsyncIterator[NextEditEditor]:
    editor = await started(home, str(coder_or_skip()))
    yield editor
    await editor.stop()


async def test_a_new_parameter_offers_its_argument_in_the_call(editor: NextEditEditor) -> None:
    editor.show(CART, "file:///project/cart.py")
    editor.replace("(items, tax)", "(items, tax, currency)")
    edit = await editor.next_edit()
    assert editor.line(edit) == "total = price(cart.items, cart.tax, cart.currency)"
    await editor.accept(edit)
    assert await editor.next_edit() is None


async def test_what_was_refused_does_not_come_again(editor: NextEditEditor) -> None:
    editor.show(CART, "file:///project/refused.py")
    editor.replace("(items, tax)", "(items, tax, currency)")
    edit = await editor.next_edit()
    assert edit is not None
    await editor.command("midspan.nextEditDismissed")
    assert await editor.next_edit() is None


async def test_a_key_ends_what_the_model_was_asked(editor: NextEditEditor) -> None:
    editor.show(CART, "file:///project/key.py")
    editor.replace("(items, tax)", "(items, tax, currency)")
    asking = asyncio.ensure_future(editor.next_edit())
    await asyncio.sleep(0)  # so that the request is sent before the key
    editor.type(" ")
    assert await asking is None


async def test_where_nothing_follows_it_is_silent(editor: NextEditEditor) -> None:
    editor.show(CART, "file:///project/silent.py")
    editor.replace("cart.total = total", "cart.total = total + 0")
    assert await editor.next_edit() is None


async def test_without_a_model_for_edits_it_is_silent_and_no_second_engine_runs(home: Path) -> None:
    editor = await started(home, "none")
    editor.show(CART, "file:///project/none.py")
    editor.replace("(items, tax)", "(items, tax, currency)")
    assert await editor.next_edit() is None
    await editor.stop()

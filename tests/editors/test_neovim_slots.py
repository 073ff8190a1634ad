"""The other actions, previewed and applied in a real Neovim: what a model fills in, another answer, pasted code."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from model_written import MODEL_WRITTEN, ModelWritten
from neovim import Neovim
from neovim_project import choose, filetype, lines, offered
from support.lsp_editor import engine_home
from support.remote_server import ModelServer
from support.scripted_model import writes

Open = Callable[..., Neovim]
ADAPT = "Adapt the pasted code to this file"


def test_missing_annotations_are_previewed_and_added(in_neovim: Open) -> None:
    text = "class Circle:\n    def __init__(self, radius: float):\n        self.radius = radius\n"
    neovim = in_neovim(text + "\n    def area(self) -> float:\n        return 3 * self.radius\n", "circle.py")
    neovim.until_ready()
    whole = neovim.text()

    neovim.nvim.command("Midspan annotate")
    neovim.eventually(lambda: filetype(neovim) == "midspan-preview", "no preview opens")
    assert "  +     def __init__(self, radius: float) -> None:" in lines(neovim)
    neovim.keys("<C-y>")
    neovim.eventually(neovim.messages, "nothing is told")

    assert neovim.messages() == ["Midspan: 1 place in 1 file changed, not saved; :Midspan write or undo"]
    assert neovim.text() == whole.replace("float):", "float) -> None:")


def test_of_the_models_answers_one_is_applied(in_neovim: Open) -> None:
    neovim = in_neovim("def area(radius):\n    return 3 * radius\n\n\nprint(area(1))\n", "circle.py")
    neovim.until_ready()
    by_hand = neovim.text()

    neovim.nvim.command("2Midspan refill")
    neovim.eventually(lambda: filetype(neovim) == "midspan-preview", "no preview opens")
    shown = lines(neovim)
    first, second = (next(n for n, line in enumerate(shown) if line.startswith(mark)) for mark in ("(x)", "( )"))
    answer = "\n".join(line[4:] for line in shown[first:second] if line.startswith("  + "))
    neovim.keys("<C-y>")
    neovim.eventually(neovim.messages, "nothing is told")

    assert neovim.text() == by_hand.replace("    return 3 * radius", answer)
    neovim.keys("u")
    assert neovim.text() == by_hand


@pytest.fixture
def model_server(neovim_settings: dict[str, Any], server: ModelServer) -> Iterator[ModelServer]:
    with engine_home(Path(os.environ["MIDSPAN_RUNTIME_DIR"]), server.model("openai")):
        yield server


@pytest.mark.parametrize("case", MODEL_WRITTEN, ids=lambda case: case.command)
def test_what_a_larger_model_writes_is_previewed_applied_and_undone(
    case: ModelWritten,
    in_neovim: Open,
    neovim_settings: dict[str, Any],
    model_server: ModelServer,
) -> None:
    model_server.behaviour = writes([(case.written, 0.99)])
    settings = {**neovim_settings, "model": model_server.model("openai")}
    neovim = in_neovim(case.text, "app.py", setup={"settings": settings})
    neovim.until_ready()

    neovim.nvim.command(f"Midspan {case.command}")
    neovim.eventually(lambda: filetype(neovim) == "midspan-preview", "no preview opens")
    neovim.keys("<C-y>")
    neovim.eventually(neovim.messages, "nothing is told")
    assert neovim.text() == case.filled
    neovim.keys("u")
    assert neovim.text() == case.text


def test_a_key_in_visual_mode_shows_old_and_new_lines_and_a_key_applies_them(
    in_neovim: Open, neovim_settings: dict[str, Any], model_server: ModelServer
) -> None:
    model_server.behaviour = writes([("return radius ** 2", 0.9)], [("return 3", 0.8)])
    settings = {**neovim_settings, "model": model_server.model("openai"), "gate": 0.5}
    keymaps = {"refill": "gR"}
    text = "def area(radius):\n    wrong = 1\n    return wrong\n"
    neovim = in_neovim(text, "circle.py", setup={"settings": settings, "keymaps": keymaps})
    neovim.until_ready()

    neovim.keys("2GVjgR")
    neovim.eventually(lambda: filetype(neovim) == "midspan-preview", "no preview opens")

    shown = lines(neovim)
    assert [line for line in shown if line[:4] in ("  - ", "  + ")][:3] == [
        "  -     wrong = 1",
        "  -     return wrong",
        "  +     return radius ** 2",
    ]
    assert neovim.lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('circle.py'), 1, 2, false)[1]") == "    wrong = 1"
    neovim.keys("<C-y>")
    neovim.eventually(neovim.messages, "nothing is told")
    assert neovim.text() == "def area(radius):\n    return radius ** 2\n"


def test_pasted_code_is_adapted_from_the_menu(in_neovim: Open) -> None:
    text = "def load(session, url):\n    first = session.get(url)\n    other = 1\n    return first\n"
    neovim = in_neovim(text, "load.py", setup={"settings": {"enabled": False}})
    neovim.eventually(lambda: neovim.lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0"), "no server")
    neovim.lua("vim.api.nvim_win_set_cursor(0, { 3, 0 })")
    neovim.lua("vim.api.nvim_put({ '    again = self.client.get(uri)', '    again.close()' }, 'l', true, true)")
    by_hand = neovim.text()
    neovim.keys("4G")

    neovim.eventually(lambda: ADAPT in offered(neovim), "the action is not offered")
    choose(neovim, ADAPT)
    neovim.eventually(lambda: filetype(neovim) == "midspan-preview", "no preview opens")
    neovim.keys("<C-y>")
    neovim.eventually(neovim.messages, "nothing is told")

    assert neovim.text() == by_hand.replace("self.client.get(uri)", "session.get(url)")
    neovim.keys("u")
    assert neovim.text() == by_hand

"""Several guesses at one place in a real Neovim: two keys go through them.

The engine asks a real HTTP server on loopback: how many guesses our own model has is up to the machine.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from neovim import Neovim
from support.lsp_editor import engine_home
from support.remote_server import ModelServer
from support.scripted_model import guesses


@pytest.fixture(scope="module")
def model(neovim_settings: dict[str, Any], module_server: ModelServer) -> Iterator[ModelServer]:
    with engine_home(Path(os.environ["MIDSPAN_RUNTIME_DIR"]), module_server.model("openai")):
        yield module_server


@pytest.fixture
def neovim(in_neovim: Callable[..., Neovim], neovim_settings: dict[str, Any], model: ModelServer) -> Neovim:
    """A Neovim in insert mode after "link = ". The model's best guess is "open()"."""
    model.behaviour = guesses("open()", "close()", "dial()")
    settings = {**neovim_settings, "model": model.model("openai"), "memory": "off", "budgetMs": 5000}
    neovim = in_neovim("link = \n", "link.py", setup={"settings": settings})
    neovim.until_ready()
    neovim.keys("A")
    return neovim


def go(neovim: Neovim, key: str, ghost: str) -> None:
    """Press a key, and wait until this is the ghost text."""
    neovim.keys(key)
    neovim.eventually(lambda: neovim.ghost() == ghost, f"{key} does not show {ghost}")


def test_who_asked_goes_through_the_guesses_and_takes_one(neovim: Neovim) -> None:
    neovim.settled()
    go(neovim, "<C-g>", "open()")
    go(neovim, "<M-]>", "close()")
    go(neovim, "<M-]>", "dial()")
    go(neovim, "<M-]>", "open()")
    go(neovim, "<M-[>", "dial()")
    neovim.keys("<Tab>")
    neovim.eventually(lambda: neovim.text() == "link = dial()\n", "it is not accepted")


def test_what_typing_has_shown_is_not_lost_among_the_guesses(neovim: Neovim, model: ModelServer) -> None:
    assert neovim.after_answer(lambda: neovim.type("x")) == "open()"
    model.behaviour = guesses("close()", "dial()", "call()")
    go(neovim, "<M-]>", "close()")
    go(neovim, "<M-[>", "open()")
    go(neovim, "<M-[>", "dial()")
    go(neovim, "<M-]>", "open()")
    neovim.keys("<Tab>")
    neovim.eventually(lambda: neovim.text() == "link = xopen()\n", "it is not accepted")


def test_the_guess_that_is_shown_stays_while_it_is_typed_along(neovim: Neovim, model: ModelServer) -> None:
    model.behaviour = guesses("opens()", "option()", "opus()")
    neovim.settled()
    go(neovim, "<C-g>", "opens()")
    go(neovim, "<M-]>", "option()")
    assert neovim.after_answer(lambda: neovim.type("o")) == "ption()"
    assert neovim.after_answer(lambda: neovim.type("p")) == "tion()"
    go(neovim, "<M-]>", "us()")

"""What the tests of the editors share."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from lsp_editor import engine_home
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from engine.models import registry

if TYPE_CHECKING:
    from neovim import Neovim  # Skips what imports it where pynvim is missing, and VS Code's tests need no pynvim.


@pytest.fixture(scope="session")
def talkative_model(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the tiny random model, made to say something nearly always.

    It never ends a fill of its own accord, nor writes a token that is not plain text, since the server shows none.
    """
    folder = tmp_path_factory.mktemp("talkative") / "model"
    shutil.copytree(tiny_model, folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    weights = load_file(folder / "model.safetensors")
    head = weights["head.weight"]
    for token in range(tokenizer.get_vocab_size()):
        text = tokenizer.decode([token], skip_special_tokens=True)
        if not (text.isascii() and text.replace("\n", " ").isprintable() and text):
            # A logit of 0 loses against the best of some hundred random ones.
            head[token] = torch.zeros_like(head[token])
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="session")
def editor_model(talkative_model: Path) -> str:
    """Return the model that the editors' tests run with; MIDSPAN_EDITOR_MODEL=embedded takes the one that users get."""
    return os.environ.get("MIDSPAN_EDITOR_MODEL", str(talkative_model))


@pytest.fixture(scope="session")
def ready_line(editor_model: str) -> str:
    """Return what the status says of the engine once it is ready."""
    name = json.loads((registry.folder_of(editor_model) / "config.json").read_text())["name"]
    return f"Ready: {name} on cpu."


@pytest.fixture(scope="module")
def neovim_settings(editor_model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Return the server's settings, and end their engine behind the module's last test."""
    with engine_home(tmp_path_factory.mktemp("runtime"), Path(editor_model)):
        yield {
            "model": editor_model,
            "threads": 1,
            "gate": 0,
            "budgetMs": 2000,
            "maxTokens": 8,
            "idleMinutes": 5,
        }


@pytest.fixture
def in_neovim(neovim_settings: dict[str, Any], tmp_path: Path) -> Iterator[Callable[..., "Neovim"]]:
    """Return a function that opens a file in a new Neovim; `setup` goes over the usual options of setup()."""
    from neovim import KEYMAPS, NOTES, PROGRAM, Neovim, Setup

    if not PROGRAM.exists():
        pytest.skip("Neovim is not here: make editors")
    opened: list[Neovim] = []

    def open_file(
        text: str = NOTES, name: str = "notes.txt", setup: dict[str, Any] | None = None, **how: str
    ) -> Neovim:
        file = tmp_path / name
        file.write_text(text)
        options = {"settings": neovim_settings, "keymaps": KEYMAPS, **(setup or {})}
        opened.append(Neovim(tmp_path / f"home{len(opened)}", file, Setup(options, **how)))
        return opened[-1]

    yield open_file
    for neovim in opened:
        neovim.close()


@pytest.fixture
def neovim(in_neovim: Callable[..., "Neovim"]) -> "Neovim":
    """Return a Neovim that is ready, in insert mode behind the list's dash."""
    neovim = in_neovim()
    neovim.until_ready()
    neovim.keys("GA")
    return neovim

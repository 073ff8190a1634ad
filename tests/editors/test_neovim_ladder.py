"""A larger model in a real Neovim: said by the status and the health check, installed by `:Midspan install`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.hub_server import Hub
from support.ladder_hub import PATIENT, RUNGS, ladder_hub

if TYPE_CHECKING:
    from neovim import Neovim


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with ladder_hub(tmp_path) as hub:
        yield hub


def test_a_larger_model_is_named_and_installed(hub: Hub, in_neovim: "Callable[..., Neovim]") -> None:
    neovim = in_neovim(setup={"settings": PATIENT})
    neovim.until_ready()
    neovim.nvim.command("checkhealth midspan")
    page = "\n".join(neovim.nvim.current.buffer[:])
    assert "(measured here)" in page
    assert "`:Midspan install` installs it" in page
    neovim.nvim.command("bdelete")
    old = neovim.report()["engine"]["model"]["name"]
    model = neovim.report()["offer"]["model"]
    assert model in RUNGS

    neovim.nvim.command("Midspan install")
    neovim.eventually(
        lambda: any(f"{model} answers from now on" in line for line in neovim.messages()), "the change over"
    )
    assert neovim.report()["engine"]["model"]["name"] != old
    assert neovim.report()["offer"] is None

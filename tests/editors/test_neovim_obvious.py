"""Obvious names in a real Neovim, with the default gate: they are shown, at once or at a pause, and Tab takes them."""

from collections.abc import Callable
from typing import Any

import pytest
from neovim import KEYMAPS, Neovim

_CLIENT = """import requests


class Client:
    def __init__(self, url):
        self.url = url
        self.response = None
        self.call_count = 0
        self.total_time = 0.0

    def fetch(self, seconds):
        self.response = requests.get(self.url)
        self.call_count += 1
        {}

    def mean(self):
        return self.total_time / self.call_count
"""
_BOX = """class Box:
    def __init__(self, value):
        self.value = value

    def double(self):
        self.value = self.value * 2

    def get(self):
        {}

    def set(self, value):
        self.value = value
"""
_SUB = """def add(a, b):
    return a + b


def sub(a, b):
    {}
"""
_READ = """package config

import (
	"encoding/json"
	"os"
)

type Config struct {{
	Name string
}}

func Load(path string) (*Config, error) {{
	data, err := {}
	if err != nil {{
		return nil, err
	}}
	var c Config
	return &c, json.Unmarshal(data, &c)
}}
"""


@pytest.mark.parametrize(
    ("code", "file", "line", "key", "rest"),
    [
        (_CLIENT, "scene.py", "return self.res", "p", "onse"),
        (_CLIENT, "scene.py", "self.to", "t", "al_time"),
        (_BOX, "scene.py", "return self.", "v", "alue"),
        (_SUB, "scene.py", "return a -", " ", "b"),
        (_READ, "scene.go", "os.R", "e", "ad"),
    ],
)
def test_an_obvious_name_is_shown(
    in_neovim: Callable[..., Neovim],
    neovim_settings: dict[str, Any],
    code: str,
    file: str,
    line: str,
    key: str,
    rest: str,
) -> None:
    settings = {**neovim_settings, "gate": "normal", "maxTokens": 32}
    neovim = in_neovim(code.format(line), file, {"settings": settings, "keymaps": KEYMAPS})
    neovim.until_ready()
    neovim.keys(f"/{line}$<CR>A")
    ghost = neovim.after_answer(lambda: neovim.type(key))
    assert ghost is not None
    assert ghost.startswith(rest)
    neovim.keys(KEYMAPS["accept"])
    neovim.eventually(lambda: f"{line}{key}{rest}" in neovim.text(), "it is not taken")

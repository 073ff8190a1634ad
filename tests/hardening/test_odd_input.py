"""Odd input of other kinds: URIs that no path has, models with numbers that are none, terminals, too little memory."""

import io
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file, save_file
from support.gguf_files import tiny_network

from engine.cli.console import PlainConsole
from engine.errors import ModelError
from engine.library.resolve import EMBEDDED_FOLDER
from engine.memory.mixing_network import MIXING_FILE, MixingNetwork
from engine.models.load import load
from engine.protocol.messages import Candidate, Cell, Origin, plain
from hardening.language_server import LanguageServer
from lsp_server.documents.store import path_of
from lsp_server.workspace.memory import Folders

_HIDDEN = "a\x1b]52;c;aGk=\x07\x9b2J\x08\x7f\u202e\u2066\u200f\U000e0041b"


@pytest.mark.parametrize("uri", ["file:///a%00b.py", "file:///a\0b.py", "file://[/x.py", "file://h%00/x", "%00", ""])
def test_a_uri_that_no_path_has_is_a_path_like_any_other(uri: str, tmp_path: Path) -> None:
    folders = Folders()
    folders.use([str(tmp_path)])
    path = path_of(uri)
    assert "\0" not in path
    assert folders.places_of(path) == []


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_mixing_network_with_numbers_that_are_none_is_refused(number: float, tmp_path: Path) -> None:
    tensors = load_file(EMBEDDED_FOLDER / MIXING_FILE)
    tensors["output_bias"][0] = number
    save_file(tensors, tmp_path / MIXING_FILE)
    with pytest.raises(ModelError, match="has numbers that are none"):
        MixingNetwork.load(tmp_path / MIXING_FILE)


@pytest.mark.parametrize("kind", ["embedded", "left to right"])
def test_a_model_without_a_token_is_refused(kind: str, tmp_path: Path, tiny_model: Path) -> None:
    folder = tmp_path / "model"
    if kind == "embedded":
        shutil.copytree(tiny_model, folder)
    else:
        tiny_network("qwen2").save_folder(folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    tokenizer["added_tokens"], tokenizer["model"]["vocab"], tokenizer["model"]["merges"] = [], {}, []
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    with pytest.raises(ModelError, match=r"the tokenizer .*has no tokens"):
        load(str(folder), threads=1)


def test_the_command_line_prints_no_control_characters_of_a_text() -> None:
    out = io.StringIO()
    PlainConsole(file=out, force_terminal=True, color_system="truecolor", highlight=False).print(
        _HIDDEN, style="bold", markup=False
    )
    assert plain(_HIDDEN) == "a]52;c;aGk=2Jb"
    assert out.getvalue() == f"\x1b[1m{plain(_HIDDEN)}\x1b[0m\n"


def test_no_number_of_a_model_is_one_that_json_cannot_say() -> None:
    none = [math.nan, math.inf, -math.inf, 0.5]
    origin = Origin(0, "x", "a.py", 1, 1, 1, math.nan)
    candidate = Candidate("x", ["x"], none, "complete", math.nan, none, "model", [origin])
    said = json.dumps([attrs.asdict(each) for each in (candidate, Cell(0, "draft", "x", math.nan, none))])
    assert json.loads(said, parse_constant=pytest.fail)[0]["confidence"] == [0, 0, 0, 0.5]


@pytest.mark.parametrize("character", ["\u200b", "\u2028", "\u2029", "\u2060", "\ufeff"])
def test_what_no_editor_shows_is_cut_from_a_text(character: str) -> None:
    assert plain(f"a{character}b") == "ab"


def test_text_that_people_write_stays_as_it_is() -> None:
    text = "a\tb\r\nGrüße 文 é 👩‍👩‍👧 עברית می‌خواهم\n"
    assert plain(text) == text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_an_engine_with_too_little_address_space_says_so(tmp_path: Path) -> None:
    engine = f"{sys.executable} -P -m engine --model embedded"
    environment = {**os.environ, "MIDSPAN_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(["sh", "-c", f"ulimit -v 400000; {engine}"], env=environment, capture_output=True, timeout=60)
    assert done.returncode == 1
    assert b"may use 390 MB of address space, and needs 480" in done.stderr


def test_the_language_server_listens_nowhere(tmp_path: Path) -> None:
    server = LanguageServer(tmp_path, {"enabled": False})
    try:
        connections = psutil.Process(server.process.pid).net_connections()
        assert [each for each in connections if each.status == psutil.CONN_LISTEN] == []
        refused = subprocess.run([sys.executable, "-m", "lsp_server", "--tcp", "127.0.0.1:0"], capture_output=True)
        assert refused.returncode == 2
    finally:
        server.close()

"""JSON that somebody prepared: nested 200,000 times, or no file at all. It is told in a line, or counts as nothing."""

import gzip
import os
import struct
from pathlib import Path

import pytest

from engine.client.lock import read_record
from engine.errors import ModelError
from engine.json_file import unpacked
from engine.library.hub import is_pulled_file
from engine.library.store import EMBEDDED, chosen_model
from engine.library.weights_header import read_safetensors

NESTED = b"[" * 200_000


def test_a_chosen_model_that_is_nested_too_deeply_is_the_embedded_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_CONFIG_DIR", str(tmp_path))
    (tmp_path / "model.json").write_bytes(b'{"model": ' + NESTED)
    choice = chosen_model()
    assert choice.model == EMBEDDED
    assert "cannot be read" in choice.problem


def test_a_lock_record_that_is_nested_too_deeply_is_none(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(NESTED[:60_000])
    assert read_record(tmp_path / "lock") is None
    (tmp_path / "lock").write_bytes(NESTED)
    assert read_record(tmp_path / "lock") is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system there")
def test_a_lock_record_that_is_a_pipe_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    assert read_record(tmp_path / "lock") is None


def test_a_header_of_weights_that_is_nested_too_deeply_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(NESTED)) + NESTED)
    with pytest.raises(ModelError, match="damaged"):
        read_safetensors(path)


@pytest.mark.parametrize("name", ["LICENSE", "LICENSE.md", "LICENSE-MIT.txt", "NOTICE", "tokenizer.model", "a.json"])
def test_a_pull_takes_what_a_model_needs(name: str) -> None:
    assert is_pulled_file(name)


@pytest.mark.parametrize(
    "name",
    [
        "LICENSE.sh",
        "NOTICE.py",
        "LICENSE/x.json",
        "tokenizer.model.py",
        "tokenizer.model-evil.so",
        "midspan.json",
        "midspan-model.json",
        "Midspan-Pull.json",
        "memory.safetensors",
        ".json",
        "a\0.json",
        "a\ud800.json",
        "a\n.json",
        "x" * 300 + ".json",
    ],
)
def test_a_pull_takes_no_code_and_none_of_our_own_files(name: str) -> None:
    assert not is_pulled_file(name)


def test_a_packed_file_is_unpacked_up_to_a_bound(tmp_path: Path) -> None:
    packed = tmp_path / "tokenizer.json.gz"
    packed.write_bytes(gzip.compress(b"[" * 1000))
    assert unpacked(packed) == b"[" * 1000
    with pytest.raises(ValueError, match="more than 999 bytes"):
        unpacked(packed, 999)


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"nonsense", "damaged"), (gzip.compress(b"[" * 1000, mtime=0)[:-12], "cut short"), (b"", "cut short")],
)
def test_a_packed_file_that_is_not_whole_is_told(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json.gz").write_bytes(content)
    with pytest.raises(ValueError, match=says):
        unpacked(tmp_path / "tokenizer.json.gz")

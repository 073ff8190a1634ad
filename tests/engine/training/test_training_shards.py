"""Corpus and weights in small pieces for a machine that only takes small files, and back."""

import random
from pathlib import Path

import pytest
from small_run import source_files

from engine.corpus import corpus
from engine.errors import MidspanError
from engine.training import shards


def test_a_corpus_packed_in_loads_is_unpacked_again(run_folder: Path, tmp_path: Path) -> None:
    report = shards.pack(
        run_folder / "corpus", run_folder / "tokenizer.json", tmp_path, {"python": 1.0}, 0.045, 0.01, 2
    )
    assert len(report) == 2
    for load in (tmp_path / "load-0", tmp_path / "load-1"):
        assert sum(path.stat().st_size for path in load.glob("*.xz")) < 45_000
        assert all(path.stat().st_size <= 10_000 for path in load.glob("*.xz"))
    other = tmp_path / "other"
    counts = []
    for name in ("load-0", "load-1", "load-1"):
        shards.unpack(tmp_path / name, other)
        files = corpus.load(other / "corpus", "train")
        counts.append(len(files))
        assert {file.text for file in files} <= {file.text for file in source_files()}
        assert len({file.path for file in files}) == len(files), "a file is in two loads"
    assert 0 < counts[0] < counts[1] == counts[2]
    assert corpus.load(other / "corpus", "held-out")
    assert (other / "tokenizer.json").read_bytes() == (run_folder / "tokenizer.json").read_bytes()


def test_shards_keep_the_languages_shares() -> None:
    files = [
        corpus.File(f"{number}.{kind}", kind, "x" * 100) for number in range(300) for kind in ("python", "go", "c")
    ]
    groups = list(shards._mixed(files, {"python": 0.6, "go": 0.3, "c": 0.1}, 200))
    early = [file.language for group in groups[:100] for file in group]
    assert {name: round(early.count(name) / len(early), 1) for name in ("python", "go", "c")} == {
        "python": 0.6,
        "go": 0.3,
        "c": 0.1,
    }
    assert sorted(file.path for group in groups for file in group) == sorted(file.path for file in files)


@pytest.mark.parametrize("harm", ["missing", "damaged", "unlisted"])
def test_a_missing_or_damaged_shard_gives_an_error_of_one_line(tmp_path: Path, harm: str) -> None:
    source = tmp_path / "weights.bin"
    source.write_bytes(random.Random(0).randbytes(100_000))
    pieces = shards.split([source], tmp_path / "pieces", 0.03)
    assert [piece.name for piece in pieces] == [f"weights.bin.{number:03}" for number in range(4)]
    assert shards.join(tmp_path / "pieces", tmp_path / "whole") == [tmp_path / "whole" / "weights.bin"]
    assert (tmp_path / "whole" / "weights.bin").read_bytes() == source.read_bytes()
    if harm == "missing":
        pieces[2].unlink()
    elif harm == "damaged":
        pieces[2].write_bytes(b"x" + pieces[2].read_bytes()[1:])
    else:
        (tmp_path / "pieces" / shards.LIST).unlink()
    with pytest.raises(MidspanError) as caught:
        shards.join(tmp_path / "pieces", tmp_path / "again")
    assert "\n" not in str(caught.value)
    assert (shards.LIST if harm == "unlisted" else "weights.bin.002") in str(caught.value)

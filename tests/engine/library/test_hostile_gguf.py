"""A GGUF that is damaged, cut short or hostile gives one clear line, quickly, and takes no memory on its word."""

import json
import os
import random
import struct
import tracemalloc
from pathlib import Path

import attrs
import pytest
from support.gguf_files import tiny_network

from engine.bounds import MOST_FIELDS, MOST_HEADER_ITEMS, MOST_MANIFEST_BYTES, MOST_TENSORS
from engine.errors import ModelError
from engine.library.device_memory import machine_memory
from engine.library.gguf_file import is_gguf, read_header
from engine.library.resolve import other_models
from engine.models.embedded.runner import KernelPass, kernel_paths
from engine.models.left_to_right.family import family_of_header, shape_of_header
from engine.models.left_to_right.file_weights import FileWeights
from engine.models.left_to_right.gguf_tokenizer import tokenizer_of_header
from engine.models.left_to_right.load import gguf_specials, load_gguf
from engine.models.left_to_right.tensor_files import GgufTensors

MUTATIONS = 10_000


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_network("qwen2").save_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", "Q4_0")


def mutated(content: bytes, header: int, rng: random.Random) -> bytes:
    """Return the file with one to four changes in its header, or cut short."""
    if rng.random() < 0.1:
        return content[: rng.randrange(len(content))]
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(header - 8)
        kind = rng.randrange(4)
        if kind == 0:
            changed[at] = rng.randrange(256)
        elif kind == 1:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            changed[at : at + 8] = struct.pack("<Q", rng.choice((0, 1, 1 << 31, 1 << 40, 1 << 63, (1 << 64) - 1)))
        else:
            changed[at : at + 4] = struct.pack("<I", rng.choice((0, 8, 9, 255, 1 << 30)))
    return bytes(changed)


@pytest.mark.timeout(300)
def test_no_damage_gives_more_than_one_line(tiny: Path, tmp_path: Path) -> None:
    content, rng, path = tiny.read_bytes(), random.Random(0), tmp_path / "damaged.gguf"
    start = min(tensor.start for tensor in read_header(tiny).tensors.values())
    lines, loaded = list[str](), 0
    for number in range(MUTATIONS):
        path.write_bytes(mutated(content, start, rng))
        try:
            header = read_header(path)
            shape = shape_of_header(header, 2048)
            weights = FileWeights(GgufTensors(header), shape, lambda names: names.gguf, False)
            weights.check(shape)
            family_of_header(header)
            if number % 20 == 0:  # These take ten times as long as all of the header.
                gguf_specials(header, tokenizer_of_header(header))
                if kernel_paths() and shape.layers < 4:
                    KernelPass(weights, shape)
            loaded += 1
        except ModelError as error:
            lines.append(str(error))
    assert all("\n" not in line and len(line) < 600 for line in lines)
    assert len(lines) > MUTATIONS // 4  # Most bytes are texts of tokens, which may be anything.
    assert loaded > MUTATIONS // 10


def test_a_header_that_promises_gigabytes_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.gguf"
    for counts in ((1 << 60, 1), (1, 1 << 60), (0, 1)):
        field = struct.pack("<Q1sIIQ", 1, b"a", 9, 4, 1 << 61)  # a list of 2^61 numbers
        path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, *counts) + field)
        tracemalloc.start()
        with pytest.raises(ModelError, match="no room"):
            read_header(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()


def _sparse(path: Path, *fields: bytes) -> None:
    """Write a header, and make the file one of 16 GB that takes no room on the disk."""
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(fields)) + b"".join(fields))
    os.truncate(path, 16 << 30)


@pytest.mark.parametrize(
    ("inner", "count"),
    [(8, 75_000_000), (8, MOST_HEADER_ITEMS + 1), (0, 1 << 33), (12, 1 << 30), (4, MOST_HEADER_ITEMS + 1)],
    ids=["75 million empty strings", "strings", "8 GB of bytes", "8 GB of numbers", "numbers"],
)
def test_a_file_that_is_large_for_nothing_is_refused_at_once(tmp_path: Path, inner: int, count: int) -> None:
    path = tmp_path / "sparse.gguf"
    _sparse(path, struct.pack("<Q1sIIQ", 1, b"a", 9, inner, count))
    tracemalloc.start()
    with pytest.raises(ModelError, match="no room"):
        read_header(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_many_lists_and_long_names_share_one_bound(tmp_path: Path) -> None:
    path = tmp_path / "sparse.gguf"
    lists = [struct.pack("<Q1sIIQ", 1, name, 9, 0, MOST_HEADER_ITEMS // 2) for name in (b"a", b"b", b"c")]
    _sparse(path, *(one + bytes(MOST_HEADER_ITEMS // 2) for one in lists))
    with pytest.raises(ModelError, match="no room"):
        read_header(path)
    _sparse(path, struct.pack("<Q", 30_000_000) + b"a" * 30_000_000)
    with pytest.raises(ModelError, match="no room"):
        read_header(path)
    _sparse(path, struct.pack("<Q1sIIQQ", 1, b"a", 9, 8, 2, 64 << 20))
    with pytest.raises(ModelError, match="its header has more than 64 MB"):
        read_header(path)


@pytest.mark.parametrize("counts", [(MOST_TENSORS + 1, 0), (0, MOST_FIELDS + 1)], ids=["tensors", "fields"])
def test_more_tensors_or_fields_than_models_have_are_refused_at_once(tmp_path: Path, counts: tuple[int, int]) -> None:
    path = tmp_path / "sparse.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, *counts))
    os.truncate(path, 16 << 30)
    with pytest.raises(ModelError, match="no room"):
        read_header(path)


def test_of_other_programs_folders_so_much_is_listed_as_people_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "ollama"))
    monkeypatch.setattr("engine.library.resolve.MOST_OTHER_MODELS", 3)
    folders = [tmp_path / ".lmstudio" / "models" / "a" / "b", tmp_path / "ollama" / "blobs"]
    manifests = tmp_path / "ollama" / "manifests" / "registry" / "library" / "tiny"
    for folder in (*folders, manifests):
        folder.mkdir(parents=True)
    for name, padding in (("small", ""), ("padded", " " * MOST_MANIFEST_BYTES)):
        (folders[1] / f"sha256-{name}").write_bytes(b"GGUF")
        layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{name}"}
        (manifests / name).write_text(json.dumps({"layers": [layer], "padding": padding}))
    os.mkfifo(manifests / "pipe")
    for number in range(5):
        (folders[0] / f"{number}.gguf").write_bytes(b"GGUF")
    listed = other_models()
    assert [model.name for model in listed if model.program == "Ollama"] == ["tiny:small"]
    assert len(listed) == 4


def test_the_largest_vocabulary_that_models_have_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.gguf"
    token, merge = struct.pack("<Q", 7) + b"a token", struct.pack("<Q", 12) + b"merge merged"
    tokens = struct.pack("<Q6sIIQ", 6, b"tokens", 9, 8, 262_144) + token * 262_144
    merges = struct.pack("<Q6sIIQ", 6, b"merges", 9, 8, 600_000) + merge * 600_000
    scores = struct.pack("<Q6sIIQ", 6, b"scores", 9, 6, 262_144) + bytes(4 * 262_144)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 3) + tokens + merges + scores)
    assert len(read_header(path).items("merges", str)) == 600_000


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGML" + bytes(40), b"GGUF\x09\0\0\0" + bytes(40)])
def test_what_is_no_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no.gguf"
    path.write_bytes(content)
    assert is_gguf(path) == content.startswith(b"GGUF")
    with pytest.raises(ModelError, match=r"no\.gguf is no GGUF that can be read"):
        read_header(path)


def test_a_folder_and_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    assert not is_gguf(tmp_path)
    for path in (tmp_path, tmp_path / "gone.gguf"):
        with pytest.raises(ModelError, match="is not a file"):
            read_header(path)


def test_memory_is_checked_before_weights_are_read(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = machine_memory()
    assert memory is not None
    small = attrs.evolve(memory, free=1_000_000)
    monkeypatch.setattr("engine.models.left_to_right.load.machine_memory", lambda: small)
    with pytest.raises(ModelError, match=r"tiny\.gguf needs 0\.2 GB of memory, and 1\.0 MB are free"):
        load_gguf(tiny, 1)

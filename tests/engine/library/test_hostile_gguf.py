"""A GGUF that is damaged, cut short or hostile gives one clear line, quickly, and takes no memory on its word."""

import random
import struct
import tracemalloc
from pathlib import Path

import attrs
import pytest
from support.gguf_files import tiny_network

from engine.errors import ModelError
from engine.library.device_memory import machine_memory
from engine.library.gguf_file import is_gguf, read_header
from engine.models.embedded.runner import KernelPass, kernel_paths
from engine.models.llama.family import family_of_header, shape_of_header
from engine.models.llama.file_weights import FileWeights
from engine.models.llama.gguf_tokenizer import tokenizer_of_header
from engine.models.llama.load import gguf_specials, load_gguf
from engine.models.llama.tensor_files import GgufTensors

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
    monkeypatch.setattr("engine.models.llama.load.machine_memory", lambda: small)
    with pytest.raises(ModelError, match=r"tiny\.gguf needs 0\.2 GB of memory, and 1\.0 MB are free"):
        load_gguf(tiny, 1)

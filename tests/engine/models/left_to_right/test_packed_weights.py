"""Packed weights on the disk: what is mapped is what would be packed, and nothing else is ever mapped."""

import asyncio
import logging
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.gguf_files import tiny_network
from support.kernel_passes import skip_without

from engine.bounds import MOST_PACKED_FILES
from engine.cli.model_sheet import sheet_of_pulled
from engine.fill.stream import StreamPass
from engine.json_file import read_json
from engine.library import packed_weights, store
from engine.library.packed_weights import HEAD, MAGIC, folder
from engine.library.precision_names import PrecisionSetting
from engine.models.embedded.shape import Floats
from engine.models.left_to_right import load as loading
from engine.models.left_to_right.file_weights import FileWeights
from engine.models.left_to_right.load import load_folder, load_gguf
from engine.models.left_to_right.model import LeftToRightModel
from engine.models.stock.checkpoint import Checkpoint
from engine.schedule import scheduler as scheduling
from engine.schedule.scheduler import Scheduler

READ = [5, 9, 30, 77, 120, 200]
Load = Callable[[], LeftToRightModel]


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    skip_without("plain")
    monkeypatch.setenv("MIDSPAN_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data" / "packed"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf", "Q4_0")


def logits_of(model: LeftToRightModel, tokens: list[int] = READ) -> Floats:
    return model.runner.logits([StreamPass(model.new_context(), tokens, [], range(len(tokens)))]).copy()


def packs(model: LeftToRightModel) -> bool:
    """Return whether a model's weights were packed, not mapped."""
    return model._keep is not None


def mapped(load: Load) -> LeftToRightModel:
    """Load a model without a look at its file's matrices."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileWeights, "_part", lambda *_: pytest.fail("a matrix was read"))
        model = load()
    assert not packs(model)
    return model


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(("kind", "stored"), [("llama", "Q4_0"), ("qwen2", "Q4_1"), ("qwen3", "F32")])
@pytest.mark.parametrize("precision", ["auto", "int4", "int8"])
def test_mapped_weights_compute_what_packed_ones_do_bit_for_bit(
    tmp_path: Path, kind: str, stored: str, precision: PrecisionSetting
) -> None:
    path = tiny_network(kind).save_gguf(tmp_path / "tiny.gguf", stored)
    packed = load_gguf(path, 2, precision=precision)
    assert packs(packed)
    packed.keep()
    found = mapped(lambda: load_gguf(path, 2, precision=precision))
    assert np.array_equal(logits_of(found), logits_of(packed))
    assert found.info == packed.info


def test_a_folder_of_safetensors_is_mapped_too(tmp_path: Path) -> None:
    tiny = tiny_network("llama").save_folder(tmp_path / "tiny", torch.bfloat16)
    checkpoint = Checkpoint.of(tiny, read_json(tiny / "config.json"))
    shape = loading.folder_shape(checkpoint)
    assert shape is not None

    def load() -> LeftToRightModel:
        return load_folder(checkpoint, shape, 1, "auto", lambda _: None)

    packed = load()
    packed.keep()
    assert np.array_equal(logits_of(mapped(load)), logits_of(packed))


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at:][1:]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_cut, "cut short"),
        (lambda data: data[:HEAD], "cut short"),
        (lambda data: data + b"more", "cut short"),
        (lambda data: b"", "of another version"),
        (lambda data: b"midspan packed 0" + data[len(MAGIC) :], "of another version"),
        (_flipped(len(MAGIC)), "damaged"),
        (_flipped(len(MAGIC) + 40), "damaged"),
        (_flipped(HEAD - 1), "damaged"),
        (_flipped(HEAD), "damaged"),
        (_flipped(-2), "damaged"),
        (lambda data: data[:HEAD] + bytes(len(data) - HEAD), "damaged"),
        (lambda data: data[:-4096] + bytes(4096), "damaged"),
        (lambda data: data[: len(MAGIC) + 64] + b"\xff" * (HEAD - 80) + data[HEAD:], "cut short"),
    ],
)
def test_a_file_that_is_not_whole_is_packed_again(
    path: Path, kept: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[bytes], bytes], said: str
) -> None:
    model = load_gguf(path, 1)
    model.keep()
    (file,) = kept.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    again = load_gguf(path, 1)
    assert packs(again)
    assert np.array_equal(logits_of(again), logits_of(model))
    (line,) = complaints(caplog)
    assert line == f"the packed weights of {path} are not used: {said}; they are packed again"
    again.keep()
    assert [each.read_bytes() for each in kept.iterdir()] == [whole]


def test_a_changed_source_another_kernel_or_another_head_is_packed_anew(
    path: Path, tmp_path: Path, kept: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_gguf(path, 1).keep()
    mapped(lambda: load_gguf(path, 1))
    status = path.stat()
    other = tiny_network("qwen2", rope_theta=500000.0)
    with torch.no_grad():
        other.network.model.layers[0].mlp.up_proj.weight.mul_(-1)
    path.write_bytes(other.save_gguf(tmp_path / "other.gguf", "Q4_0").read_bytes())  # of the same size, in its place
    assert path.stat().st_size == status.st_size
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    changed = load_gguf(path, 1)
    assert packs(changed)
    assert np.array_equal(logits_of(changed), logits_of(load_gguf(tmp_path / "other.gguf", 1)))
    changed.keep()
    mapped(lambda: load_gguf(path, 1))

    monkeypatch.setattr(loading, "kernel_digest", lambda: "another one")
    assert packs(load_gguf(path, 1))
    monkeypatch.undo()
    monkeypatch.setenv("MIDSPAN_DATA_DIR", str(kept.parent))
    mapped(lambda: load_gguf(path, 1))
    monkeypatch.setattr(loading, "frequent_tokens", lambda *_: np.arange(0, 392, 2))
    assert packs(load_gguf(path, 1))
    assert not complaints(caplog)
    assert len(list(kept.iterdir())) == 1


def test_a_full_disk_is_one_line_and_leaves_nothing(
    path: Path, kept: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_gguf(path, 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        model.keep()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    begin = f"the packed weights of {path} cannot be kept"
    assert complaints(caplog) == [f"{begin}: File too large; each start packs them"]
    assert list(kept.iterdir()) == []

    caplog.clear()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000))
    load_gguf(path, 1).keep()
    assert complaints(caplog) == [f"{begin}: the disk is nearly full; each start packs them"]
    assert list(kept.iterdir()) == []
    assert logits_of(model).any()


def test_where_nothing_can_be_written_the_engine_goes_on(
    path: Path, kept: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept.parent.mkdir()
    kept.write_text("no folder")
    model = load_gguf(path, 1)
    model.keep()
    (line,) = complaints(caplog)
    assert line.endswith("cannot be kept: Not a directory; each start packs them")
    assert logits_of(model).any()


def test_only_the_user_can_read_or_write_them(path: Path, kept: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_gguf(path, 1).keep()
    (file,) = kept.iterdir()
    assert [each.stat().st_mode & 0o777 for each in (kept, file)] == [0o700, 0o600]
    file.chmod(0o620)
    assert packs(load_gguf(path, 1))
    assert "others may have written them" in complaints(caplog)[0]
    file.chmod(0o600)
    real = file.rename(kept.parent / "elsewhere")
    file.symlink_to(real)
    assert packs(load_gguf(path, 1)), "a link was followed"


@pytest.fixture
def writers(path: Path) -> Iterator[Callable[[], "subprocess.Popen[str]"]]:
    """Starts processes that keep packed weights again and again."""
    code = (
        "import sys; from pathlib import Path; from engine.models.left_to_right.load import load_gguf\n"
        "model = load_gguf(Path(sys.argv[1]), 1)\nkeep = model._keep\nprint('begun', flush=True)\nwhile True: keep()"
    )
    started: list[subprocess.Popen[str]] = []

    def start() -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", code, str(path)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_engines_that_write_at_once_or_are_killed_harm_nobody(
    path: Path, kept: Path, writers: Callable[[], "subprocess.Popen[str]"], caplog: pytest.LogCaptureFixture
) -> None:
    expected = logits_of(load_gguf(path, 1))
    processes = [writers(), writers()]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
    for _ in range(30):
        assert np.array_equal(logits_of(load_gguf(path, 1)), expected)
    for process in processes:
        process.kill()
        process.wait()
    assert not complaints(caplog)
    (kept / "0123456789abcdef.new").write_bytes(b"of one that was killed")
    assert np.array_equal(logits_of(mapped(lambda: load_gguf(path, 1))), expected)
    load_gguf(path, 1, precision="int8").keep()
    assert [each.suffix for each in kept.iterdir()] == [".packed"] * 2


def test_what_an_engine_writes_now_is_left_alone(path: Path, kept: Path) -> None:
    model = load_gguf(path, 1)
    begun: list[str] = []

    def pieces() -> Iterator[memoryview]:
        load_gguf(path, 1).keep()
        begun.extend(each.suffix for each in kept.iterdir())
        yield memoryview(bytes(4096))

    packed_weights.PackedWeights(path, "int8").keep("00" * 32, iter([pieces()]), 1)
    assert sorted(begun) == [".new", ".packed"]
    assert len(list(kept.iterdir())) == 2
    assert np.array_equal(logits_of(mapped(lambda: load_gguf(path, 1))), logits_of(model))


def test_the_files_that_were_used_last_stay(tmp_path: Path, kept: Path) -> None:
    tiny = tiny_network("qwen2")
    paths = [tiny.save_gguf(tmp_path / f"{number}.gguf") for number in range(MOST_PACKED_FILES + 1)]
    for number, path in enumerate(paths[:-1]):
        load_gguf(path, 1).keep()
        for file in packed_weights.packed_files(path):
            os.utime(file, (number, number))
    mapped(lambda: load_gguf(paths[0], 1))
    load_gguf(paths[-1], 1).keep()
    there = [bool(packed_weights.packed_files(path)) for path in paths]
    assert there == [True, False, True, True]
    assert len(list(kept.iterdir())) == MOST_PACKED_FILES


def test_a_removed_model_takes_its_packed_weights_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDSPAN_MODELS_DIR", str(tmp_path / "models"))
    (tmp_path / "models" / "tiny").mkdir(parents=True)
    tiny = tiny_network("qwen2")
    of_model = tiny.save_gguf(tmp_path / "models" / "tiny" / "tiny.gguf")
    other = tiny.save_gguf(tmp_path / "other.gguf")
    for path in (of_model, other):
        load_gguf(path, 1).keep()
    load_gguf(of_model, 1, precision="int8").keep()
    packed = [each.stat().st_size for each in packed_weights.packed_files(of_model)]
    assert len(packed) == 2
    size = of_model.stat().st_size
    record = store.ModelRecord("tiny", "", "", "", "", files=(store.StoredFile(of_model.name, size, ""),))
    record.write(of_model.parent / store.RECORD)
    assert sheet_of_pulled("tiny").bytes_here == size + sum(packed)
    there = sum(each.stat().st_size for each in of_model.parent.iterdir())
    assert store.remove("tiny") == there + sum(packed)
    assert packed_weights.packed_files(of_model) == []
    assert [each.name for each in folder().iterdir()] == [packed_weights.packed_files(other)[0].name]


async def test_an_engine_keeps_them_when_nobody_types(path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "CALM_S", 0.01)
    model = load_gguf(path, 1)
    keep, done, loop = model.keep, asyncio.Event(), asyncio.get_running_loop()

    def keep_it() -> None:
        keep()
        loop.call_soon_threadsafe(done.set)

    monkeypatch.setattr(model, "keep", keep_it)
    scheduler = Scheduler(model)
    await scheduler.start()
    async with asyncio.timeout(30):
        await done.wait()
    await scheduler.stop()
    mapped(lambda: load_gguf(path, 1))

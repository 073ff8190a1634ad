"""Runtime directories and engine processes for the tests of the engine process, and what training starts from."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import attrs
import msgpack
import pytest
from http_service import HttpService, http_service
from remote_client import start_backend
from small_run import source_files
from support.embedded_models import load_embedded
from support.engine_process import end, poll
from support.masked_canvases import load_tiny
from support.models_command import ModelsCommand, models_command
from support.remote_server import ModelServer
from tiny_gemma import exact_family, save_tiny_gemma

from engine.client.address import RuntimePaths, runtime_paths_of
from engine.client.launcher import EngineOptions, connect_or_start
from engine.fill.interface import Model
from engine.models.diffusion_gemma.model import DiffusionGemmaModel
from engine.models.embedded.model import EmbeddedModel
from engine.models.masked.model import MaskedModel
from engine.remote.backend import RemoteBackend
from engine.schedule.scheduler import Scheduler


@pytest.fixture
def options(tiny_model: Path) -> EngineOptions:
    return EngineOptions(model=str(tiny_model), threads=1)


@pytest.fixture
def paths(options: EngineOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RuntimePaths]:
    """A runtime directory of the test's own; an engine that it started there is ended."""
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path))
    paths = runtime_paths_of(options.model)
    yield paths
    end(paths)


@pytest.fixture(scope="module")
def running(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineOptions]:
    """A real engine process that the tests of a module share."""
    options = EngineOptions(model=str(tiny_model), threads=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))

        async def start() -> None:
            await (await connect_or_start(options, "fixture")).close()

        asyncio.run(start())
        yield options
        end(runtime_paths_of(options.model))


@pytest.fixture(scope="module")
def service(running: EngineOptions) -> Iterator[HttpService]:
    """`midspan serve` over the module's engine, without a token."""
    with http_service(Path(running.model), "--log", "--rate", "0") as service:
        yield service


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A key and a self-signed certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed; it makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return key, certificate


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    return poll


@pytest.fixture
def run_folder(tiny_model: Path, tmp_path: Path) -> Path:
    """A training run's folder: this project's own sources as corpus, and the tiny model's tokenizer."""
    folder = tmp_path / "run"
    (folder / "corpus").mkdir(parents=True)
    rows = msgpack.packb([attrs.astuple(file) for file in source_files()])
    for split in ("train", "held-out"):
        (folder / "corpus" / f"{split}.msgpack").write_bytes(rows)
    (folder / "tokenizer.json").write_bytes((tiny_model / "tokenizer.json").read_bytes())
    return folder


@pytest.fixture
def models(tiny_model: Path, tmp_path: Path) -> Iterator[ModelsCommand]:
    """`midspan models` with a hub that has one model."""
    with models_command(tiny_model, tmp_path) as command:
        yield command


@pytest.fixture
async def openai(server: ModelServer) -> AsyncIterator[RemoteBackend]:
    backend = await start_backend(server.model("openai"))
    yield backend
    await backend.stop()


@pytest.fixture
async def scheduler(family: Model) -> AsyncIterator[Scheduler]:
    """A scheduler over the test module's own family."""
    running = Scheduler(family)
    await running.start()
    yield running
    await running.stop()


@pytest.fixture(scope="module")
def embedded(tiny_model: Path) -> EmbeddedModel:
    """In fp32 on every processor."""
    return load_embedded(tiny_model, "fp32")


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> MaskedModel:
    return load_tiny("dream", tmp_path_factory.mktemp("released") / "dream").model


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> DiffusionGemmaModel:
    return exact_family(save_tiny_gemma(tmp_path_factory.mktemp("gemma")))

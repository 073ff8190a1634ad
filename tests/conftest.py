"""What the tests share: a tiny randomly initialised model of the real family, in its real file layout."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import attrs
import hypothesis
import pytest
import torch
from support.changed_first import changed_paths, rank
from support.remote_server import ModelServer, serving
from support.sources import source_paths
from support.tiny_models import TINY, randomize, train_tokenizer

from engine.models.embedded.network import Network
from engine.models.embedded.shape import Shape
from engine.training import config as training_config
from engine.training.convert import END, SPECIALS
from engine.training.export import export

ROOT = Path(__file__).parent.parent
# A busy machine is no reason to fail.
hypothesis.settings.register_profile("midspan", deadline=None)
hypothesis.settings.load_profile("midspan")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--changed-first", action="store_true", help="run the tests of what git sees changed first")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--changed-first"):
        changed = changed_paths(ROOT)
        items.sort(key=lambda item: rank(PurePosixPath(item.path.relative_to(ROOT).as_posix()), changed))


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a model of 120,000 random weights; its tokenizer has read frozen sources of this project."""
    return _save_random(tmp_path_factory.mktemp("tiny-model"), TINY)


@pytest.fixture(scope="session")
def slow_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a model that writes left to right without an end, long enough to be cancelled."""
    return _save_random(
        tmp_path_factory.mktemp("slow-model"),
        attrs.evolve(TINY, width=768, heads=12, head_width=64, hidden=3072, layers=12, context_tokens=2048),
        ends=False,
    )


def _save_random(folder: Path, shape: Shape, *, ends: bool = True) -> Path:
    tokenizer = train_tokenizer((path.read_text() for path in source_paths()), shape.vocabulary)
    tokenizer.save(str(folder / "tokenizer.json"))
    cpu = training_config.load_config(ROOT / "engine" / "training" / "cpu.toml")
    torch.manual_seed(1)
    network = Network(shape)
    randomize(network, 0.3)
    if not ends:
        with torch.no_grad():
            network.embed.weight[SPECIALS.index(END)] = 0  # some other token is always likelier
    config = attrs.evolve(
        cpu,
        name="tiny",
        model=attrs.evolve(cpu.model, related_tokens=0, anchor="mark"),
        holes=attrs.evolve(cpu.holes, suffix_tokens=96),
    )
    export(config, network, folder / "tokenizer.json", folder)
    return folder


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A server on loopback that fills holes in every dialect, and misbehaves on demand."""
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def module_server() -> Iterator[ModelServer]:
    """The same, for all tests of a module."""
    with serving() as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def statistics_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what the tests' servers count out of the user's own statistics, and the user's choice of model out here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIDSPAN_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        patch.setenv("MIDSPAN_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
        yield

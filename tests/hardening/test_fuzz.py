"""Foreign bytes end nothing: what is kept in corpus/, and some that hypothesis makes anew."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hardening import streams
from hardening.fuzz import fuzz
from hardening.fuzz_targets import Target, targets
from hardening.fuzzed_bytes import CORPUS

pytestmark = pytest.mark.slow
_EXAMPLES = {"configs": 8}
_MANY = 150
_KEPT = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.rglob("*") if path.is_file())
_TARGETS = ("frames", "engine", "messages", "headers", "configs", "http", "records", "choices")
_SEED = 1122


@pytest.fixture(scope="module")
def found(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Target]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIDSPAN_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
        by_name = {each.name: each for each in targets(tmp_path_factory.mktemp("fuzz"))}
        yield by_name
        for each in by_name.values():
            each.close()


def _kept(*folders: str) -> list[str]:
    return [name for name in _KEPT if name.partition("/")[0] in folders]


@pytest.mark.parametrize("name", _kept(*_TARGETS))
def test_what_once_broke_a_reader_is_one_clear_error(name: str, found: dict[str, Target]) -> None:
    found[name.partition("/")[0]].feed((CORPUS / name).read_bytes())


@pytest.mark.parametrize("name", _kept("streams"))
def test_bytes_that_are_no_messages_cost_no_session(name: str, tmp_path: Path) -> None:
    streams.feed(tmp_path, (CORPUS / name).read_bytes())


@pytest.mark.parametrize("name", _TARGETS)
def test_bytes_that_nobody_thought_of_are_one_clear_error(name: str, found: dict[str, Target], tmp_path: Path) -> None:
    fuzz(found[name], _EXAMPLES.get(name, _MANY), _SEED, tmp_path)

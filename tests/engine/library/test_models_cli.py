"""`midspan models` against a hub on loopback: what is pulled is whole and checked, or is not taken for a model."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest
from hub_server import COMMIT, Hub, Repository, serve
from typer.testing import CliRunner

from engine.cli import app
from engine.client.address import runtime_paths_of
from engine.errors import ModelError
from engine.library.catalog import catalog
from engine.library.chosen_model import chosen_model
from engine.library.resolve import folder_of
from engine.library.store import RECORD, read_record
from engine.models.load import load

NAME = "dreamon-7b"
WEIGHTS = "model.safetensors"
NEVER = ("pytorch_model.bin", "consolidated.pt", "modeling_dream.py", "onnx/model.onnx", ".gitattributes", "run.sh")
_TIMEOUT_S = 90
_SHORT_OF_DISK = """
from pathlib import Path
from engine.cli.console import err
from engine.cli.pull_view import PullView
from engine.models.catalog import catalog
from engine.models.pull import Puller
from engine.errors import ModelError
try:
    with PullView(err) as view:
        Puller(view, free_bytes=lambda folder: 1000).pull(catalog()["dreamon-7b"])
except ModelError as error:
    print(error)
"""


@attrs.frozen
class Ended:
    status: int
    out: str
    err: str


@attrs.frozen
class Models:
    """The command line, with models and settings in folders of its own, and the hub that it asks."""

    hub: Hub
    repository: Repository
    folder: Path
    environment: dict[str, str]

    def run(self, *arguments: str, environment: dict[str, str] | None = None) -> Ended:
        """Run a command: a pull as a process of its own, for which HF_ENDPOINT is set, all others in this one."""
        if arguments[0] != "pull":
            result = CliRunner().invoke(app, ["models", *arguments])
            return Ended(result.exit_code, result.stdout, result.stderr)
        run = subprocess.run(
            [sys.executable, "-m", "engine.cli", "models", *arguments],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            env={**self.environment, **(environment or {})},
            check=False,
        )
        return Ended(run.returncode, run.stdout, run.stderr)

    def fails(self, *arguments: str, environment: dict[str, str] | None = None) -> str:
        """Run what must fail with one line, and return the line."""
        ended = self.run(*arguments, environment=environment)
        assert ended.status == 1
        line = ended.err.splitlines()[-1]
        assert line.startswith("midspan: ")
        assert sum(line.startswith("midspan: ") for line in ended.err.splitlines()) == 1
        assert "Traceback" not in ended.err
        return line


@pytest.fixture
def models(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Models]:
    """The tiny model is what the hub has under the id of one in the catalog, with much beside it."""
    folders = {
        "MIDSPAN_MODELS_DIR": str(tmp_path / "models"),
        "MIDSPAN_CONFIG_DIR": str(tmp_path / "config"),
        "MIDSPAN_RUNTIME_DIR": str(tmp_path / "runtime"),
    }
    for variable, folder in folders.items():
        monkeypatch.setenv(variable, folder)
    files = {path.name: path.read_bytes() for path in sorted(tiny_model.iterdir())}
    files |= {"generation_config.json": b"", "LICENSE": b"Apache", **dict.fromkeys(NEVER, b"import os")}
    repository = Repository(files, large={WEIGHTS, "tokenizer.json"})
    with serve() as hub:
        hub.repositories[catalog()[NAME].hub] = repository
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        environment = {**kept, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "NO_PROXY": "*"}
        yield Models(hub, repository, tmp_path / "models", environment)


def pulled(models: Models) -> Path:
    assert models.run("pull", NAME).status == 0
    return models.folder / NAME


def test_a_pull_brings_the_files_checks_them_and_writes_down_what_they_are(models: Models) -> None:
    ended = models.run("pull", NAME)
    assert (ended.status, models.hub.requests[0]) == (0, f"GET /api/models/{catalog()[NAME].hub}/revision/main")
    assert all(catalog()[NAME].hub in request for request in models.hub.requests)
    assert f"commit {COMMIT}" in ended.out
    assert "licence Apache-2.0" in ended.err

    folder = models.folder / NAME
    expected = {name: data for name, data in models.repository.files.items() if name not in NEVER}
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != RECORD} == expected
    record = read_record(folder / RECORD)
    assert record is not None
    assert (record.commit, record.revision, record.hub) == (COMMIT, "main", catalog()[NAME].hub)
    assert {file.name: file.sha256 for file in record.files} == {
        name: hashlib.sha256(data).hexdigest() for name, data in expected.items()
    }
    assert not [path.name for path in models.folder.iterdir() if path.name.endswith(".partial")]


def test_code_and_pickles_are_never_asked_for(models: Models) -> None:
    pulled(models)
    asked = " ".join(models.hub.requests)
    assert WEIGHTS in asked
    assert not [name for name in NEVER if name in asked]


def test_the_pulled_model_loads_by_its_name(models: Models) -> None:
    folder = pulled(models)
    assert folder_of(NAME) == folder
    assert load(NAME, threads=1, device="cpu").info.name == "tiny"


def test_a_second_pull_does_nothing_and_asks_nobody(models: Models) -> None:
    pulled(models)
    asked = len(models.hub.requests)
    ended = models.run("pull", NAME)
    assert (ended.status, len(models.hub.requests)) == (0, asked)
    assert "is here already" in ended.out


def test_a_connection_that_breaks_is_taken_up_at_the_same_byte(models: Models) -> None:
    size = len(models.repository.files[WEIGHTS])
    models.repository.drops[WEIGHTS] = [size // 3, size // 2]
    pulled(models)
    assert models.hub.sent[WEIGHTS] == size
    assert sum(line.startswith(f"GET /cdn/{catalog()[NAME].hub}") for line in models.hub.requests) == 4


@pytest.mark.slow
def test_what_a_lost_network_leaves_is_no_model_and_the_next_pull_goes_on_with_it(models: Models) -> None:
    size = len(models.repository.files[WEIGHTS])
    models.repository.drops[WEIGHTS] = [size // 2] * 6
    line = models.fails("pull", NAME)
    assert "cannot be reached" in line
    assert "kept" in line
    with pytest.raises(ModelError, match=f"only in part; go on with: midspan models pull {NAME}"):
        folder_of(NAME)
    assert "in part" in models.run("list").out

    others = {name: count for name, count in models.hub.sent.items() if name != WEIGHTS}
    models.repository.drops.clear()
    pulled(models)
    assert models.hub.sent[WEIGHTS] == size
    assert {name: count for name, count in models.hub.sent.items() if name != WEIGHTS and name in others} == others


def test_ctrl_c_leaves_what_the_next_pull_goes_on_with(
    models: Models, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    size = len(models.repository.files[WEIGHTS])
    models.repository.stalls[WEIGHTS] = size // 2
    command = [sys.executable, "-m", "engine.cli", "models", "pull", NAME]

    def hear_ctrl_c() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # shells have what they start in the background ignore it

    with subprocess.Popen(
        command, env=models.environment, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c
    ) as process:
        assert models.hub.stalled.wait(_TIMEOUT_S)
        arriving = models.folder / f"{NAME}.partial" / WEIGHTS
        eventually(lambda: arriving.stat().st_size > size // 3)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=_TIMEOUT_S)
    assert process.returncode == 130
    assert f"go on with: midspan models pull {NAME}" in words
    assert not (models.folder / NAME).exists()
    here = arriving.stat().st_size

    before = models.hub.sent[WEIGHTS]
    pulled(models)
    assert models.hub.sent[WEIGHTS] - before == size - here


def test_a_server_that_knows_no_parts_of_files_is_asked_for_all_of_it_again(models: Models) -> None:
    models.repository.ranges = False
    models.repository.drops[WEIGHTS] = [len(models.repository.files[WEIGHTS]) // 2]
    folder = pulled(models)
    assert (folder / WEIGHTS).read_bytes() == models.repository.files[WEIGHTS]


@pytest.mark.parametrize("name", [WEIGHTS, "config.json"])
def test_a_damaged_file_is_dropped_and_told(models: Models, name: str) -> None:
    models.repository.damaged = {name}
    assert f"{name} arrived damaged" in models.fails("pull", NAME)
    assert not (models.folder / NAME).exists()

    models.repository.damaged = set()
    assert (pulled(models) / name).read_bytes() == models.repository.files[name]


def test_a_commit_that_moves_on_does_not_mix_with_what_was_begun(models: Models) -> None:
    models.repository.damaged = {WEIGHTS}
    models.fails("pull", NAME)
    models.repository.commit = "f" * 40
    assert f"no revision {COMMIT}" in models.fails("pull", NAME)
    models.repository.damaged = set()
    assert models.run("remove", NAME, "--yes").status == 0
    assert f"commit {'f' * 40}" in models.run("pull", NAME).out


def test_too_little_disk_is_told_before_anything_is_fetched(models: Models) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _SHORT_OF_DISK], capture_output=True, text=True, env=models.environment, check=True
    )
    assert "has room for 0.0 GB; make room, or set MIDSPAN_MODELS_DIR" in ended.stdout
    assert models.hub.sent == {}


def test_a_repository_without_safetensors_is_refused(models: Models) -> None:
    del models.repository.files[WEIGHTS]
    assert "no weights as safetensors" in models.fails("pull", NAME)
    assert not models.hub.sent


def test_what_is_not_there_or_not_allowed_is_told_in_one_line(models: Models) -> None:
    hub_id = catalog()[NAME].hub
    models.repository.gated = True
    assert f"{hub_id} is gated: accept its terms" in models.fails("pull", NAME)
    models.hub.repositories.clear()
    assert f"no {hub_id} at {models.hub.url} that you may see (status 404)" in models.fails("pull", NAME)
    nobody = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    assert "cannot be reached (ConnectError)" in models.fails("pull", NAME, environment=nobody)
    assert "HF_HUB_OFFLINE is set" in models.fails("pull", NAME, environment={"HF_HUB_OFFLINE": "1"})
    assert "no model 'gpt' to pull; there are diffusion-gemma-26b" in models.fails("pull", "gpt")
    assert "there is nothing to pull" in models.fails("pull", "embedded")


def test_a_token_is_sent_to_the_hub_but_not_to_where_it_leads(models: Models) -> None:
    models.repository.token = "secret"
    assert "set HF_TOKEN" in models.fails("pull", NAME)
    assert models.run("pull", NAME, environment={"HF_TOKEN": "secret"}).status == 0
    assert models.hub.tokens_at_cdn
    assert set(models.hub.tokens_at_cdn) == {None}


def test_a_licence_that_is_not_free_must_be_accepted(models: Models) -> None:
    name = "diffucoder-7b"
    models.hub.repositories[catalog()[name].hub] = models.repository
    assert "licence of diffucoder-7b (apple-amlr) was not accepted" in models.fails("pull", name)
    assert models.hub.requests == []
    assert models.run("pull", name, "--accept-licence").status == 0
    record = read_record(models.folder / name / RECORD)
    assert record is not None
    assert record.accepted


def test_a_model_that_was_changed_since_is_told(models: Models) -> None:
    folder = pulled(models)
    assert "all files are what was pulled" in models.run("info", NAME, "--verify").out

    data = bytearray((folder / WEIGHTS).read_bytes())
    data[-1] ^= 1
    (folder / WEIGHTS).write_bytes(data)
    assert folder_of(NAME) == folder
    assert "its sha256 differs; midspan models remove" in models.fails("info", NAME, "--verify")

    (folder / WEIGHTS).write_bytes(data[:-1])
    with pytest.raises(ModelError, match="instead of"):
        load(NAME, threads=1, device="cpu")
    assert f"bytes instead of {len(data)}" in models.fails("info", NAME)


def test_the_model_in_use_is_the_one_that_nobody_need_name(models: Models, tiny_model: Path) -> None:
    assert f"get it with: midspan models pull {NAME}" in models.fails("use", NAME)
    pulled(models)
    assert chosen_model().model == "embedded"
    assert "in use from now on: dreamon-7b" in models.run("use", NAME).out
    assert chosen_model().model == NAME
    assert runtime_paths_of("default") == runtime_paths_of(NAME) != runtime_paths_of("embedded")
    assert folder_of("default") == models.folder / NAME
    assert "in use" in next(line for line in models.run("list").out.splitlines() if line.startswith(NAME))

    assert models.run("use", str(tiny_model)).status == 0
    assert runtime_paths_of("default") == runtime_paths_of(str(tiny_model))
    assert models.run("use", "embedded").status == 0
    assert runtime_paths_of("default") == runtime_paths_of("embedded")


@pytest.mark.slow
def test_an_editor_whose_setting_is_left_alone_gets_the_model_in_use(models: Models, tmp_path: Path) -> None:
    pulled(models)
    models.run("use", NAME)
    (tmp_path / "area.py").write_text("def area(radius):\n    return \n")
    fill = [sys.executable, "-m", "engine.cli", "fill", str(tmp_path / "area.py"), "--at", "2:12", "--json"]
    try:
        answer = subprocess.run(fill, capture_output=True, text=True, env=models.environment, check=True)
        assert json.loads(answer.stdout)["model"] == "tiny"
        ended = models.run("use", "embedded")
        assert "the engine that ran has left" in ended.out
    finally:
        stop = [sys.executable, "-m", "engine.cli", "engine", "stop", "--model", NAME]
        subprocess.run(stop, capture_output=True, env=models.environment, check=False)


@pytest.mark.slow
def test_a_model_in_use_that_has_gone_is_told_and_the_embedded_one_taken(models: Models) -> None:
    folder = pulled(models)
    models.run("use", NAME)
    shutil.rmtree(folder)

    choice = chosen_model()
    assert choice.model == "embedded"
    assert "dreamon-7b that was chosen is not here any more; the embedded one is used" in choice.problem
    status = [sys.executable, "-m", "engine.cli", "engine", "status"]
    ended = subprocess.run(status, capture_output=True, text=True, env=models.environment, check=False)
    assert ended.stderr.splitlines() == [f"midspan: {choice.problem}"]
    assert "no engine is running for the model embedded" in ended.stdout


def test_remove_frees_the_disk_but_not_what_is_in_use(models: Models) -> None:
    folder = pulled(models)
    models.run("use", NAME)
    assert f"{NAME} is in use" in models.fails("remove", NAME)
    assert folder.is_dir()
    assert "in use from now on: embedded" in models.run("remove", NAME, "--yes").out
    assert not folder.exists()
    assert chosen_model().problem == ""
    assert "is not here" in models.fails("remove", NAME, "--yes")


def test_remove_asks_and_touches_nothing_but_our_own_folders(models: Models, tiny_model: Path) -> None:
    folder = pulled(models)
    assert "nothing was removed" in models.fails("remove", NAME)
    assert folder.is_dir()
    for elsewhere in (str(tiny_model), "..", "../models"):
        assert "is no name of a model" in models.fails("remove", elsewhere, "--yes")
    assert "stays" in models.fails("remove", "embedded", "--yes")

    (models.folder / "linked").symlink_to(tiny_model)
    assert "remove it by hand" in models.fails("remove", "linked", "--yes")
    assert (tiny_model / "config.json").exists()


def test_list_names_every_model_with_what_matters(models: Models) -> None:
    lines = models.run("list").out.splitlines()
    shown = {line.split()[0]: line for line in lines if line}
    for name, model in catalog().items():
        assert model.family in shown[name]
        assert model.licence in shown[name]
        assert ("!" in shown[name]) is not model.free
    as_json = {found["name"]: found for found in json.loads(models.run("list", "--json").out)}
    assert as_json["embedded"]["in_use"]
    assert as_json["llada-8b"]["here"] is None
    assert as_json["llada-8b"]["catalog"]["mask_id"] == 126336


def test_info_says_what_would_fit_before_anything_is_here(models: Models) -> None:
    found = json.loads(models.run("info", "diffusion-gemma-26b", "--json").out)
    memory = found["fits"]["memory"]
    assert memory["fp8"] is None
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if total < 56e9:
        assert memory["bf16"] == "too large"
    shown = models.run("info", "diffusion-gemma-26b").out
    assert "56.5 GB" in shown
    assert "not on this hardware" in shown
    assert models.hub.requests == []


def test_info_of_a_folder_reads_its_headers(models: Models, tiny_model: Path) -> None:
    found = json.loads(models.run("info", str(tiny_model), "--json").out)
    assert found["name"] == str(tiny_model)
    assert 50_000 < found["parameters"] < 100_000
    assert found["architecture"] == "midspan"
    assert "neither" in models.fails("info", "no/such/folder")
    assert "did you mean dreamon-7b" in models.fails("info", "dreamn-7b")

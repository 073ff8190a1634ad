"""`midspan models pull` from a hub on loopback: a pulled model is complete and checked, or it is not used."""

import gzip
import hashlib
import json
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from support.gguf_files import tiny_network
from support.hub_server import COMMIT, Repository
from support.models_command import NAME, NEVER_PULLED, TIMEOUT_S, WEIGHTS, ModelsCommand

from engine.errors import ModelError
from engine.library.catalog import catalog
from engine.library.hub import list_files
from engine.library.resolve import folder_of
from engine.library.store import RECORD, chosen_model, read_record
from engine.models.load import load

LITTLE_DISK_SPACE = """
from pathlib import Path
from engine.cli.console import err
from engine.cli.pull import PullView
from engine.library.catalog import catalog
from engine.library.pull import Puller
from engine.errors import ModelError
try:
    with PullView(err) as view:
        Puller(view, free_bytes=lambda folder: 1000).pull(catalog()["dreamon-7b"])
except ModelError as error:
    print(error)
"""


def test_a_pull_brings_and_checks_the_files_and_records_them(models: ModelsCommand) -> None:
    ended = models.run("pull", NAME)
    assert (ended.status, models.hub.requests[0]) == (0, f"GET /api/models/{catalog()[NAME].hub}/revision/main")
    assert all(catalog()[NAME].hub in request for request in models.hub.requests)
    assert f"commit {COMMIT}" in ended.out
    assert "licence Apache-2.0" in ended.err

    folder = models.folder / NAME
    expected = {name: data for name, data in models.repository.files.items() if name not in NEVER_PULLED}
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != RECORD} == expected
    record = read_record(folder / RECORD)
    assert record is not None
    assert (record.commit, record.revision, record.hub) == (COMMIT, "main", catalog()[NAME].hub)
    assert {file.name: file.sha256 for file in record.files} == {
        name: hashlib.sha256(data).hexdigest() for name, data in expected.items()
    }
    assert not [path.name for path in models.folder.iterdir() if path.name.endswith(".partial")]


def test_a_program_gets_the_progress_as_lines_of_json(models: ModelsCommand) -> None:
    lines = [json.loads(line) for line in models.run("pull", NAME, "--accept-licence", "--json").out.splitlines()]
    assert lines[0]["present"] == 0
    assert lines[-1]["present"] == lines[-1]["total"] > 0
    assert WEIGHTS in {line["doing"] for line in lines}
    assert f"checking {WEIGHTS}" in {line["doing"] for line in lines}


def test_code_and_pickles_are_never_requested(models: ModelsCommand) -> None:
    models.pull()
    requests = " ".join(models.hub.requests)
    assert WEIGHTS in requests
    assert not [name for name in NEVER_PULLED if name in requests]


def test_the_pulled_model_loads_by_its_name(models: ModelsCommand) -> None:
    folder = models.pull()
    assert folder_of(NAME) == folder
    assert load(NAME, threads=1, device="cpu").info.name == "tiny"


def test_a_second_pull_sends_no_request(models: ModelsCommand) -> None:
    models.pull()
    requests = len(models.hub.requests)
    ended = models.run("pull", NAME)
    assert (ended.status, len(models.hub.requests)) == (0, requests)
    assert "is here already" in ended.out


def test_after_a_broken_connection_the_pull_continues_at_the_same_byte(models: ModelsCommand) -> None:
    size = len(models.repository.files[WEIGHTS])
    models.repository.drops[WEIGHTS] = [size // 3, size // 2]
    models.pull()
    assert models.hub.sent[WEIGHTS] == size
    assert sum(line.startswith(f"GET /cdn/{catalog()[NAME].hub}") for line in models.hub.requests) == 4


@pytest.mark.slow
def test_without_network_a_pull_fails_and_the_next_one_continues_it(models: ModelsCommand) -> None:
    size = len(models.repository.files[WEIGHTS])
    models.repository.drops[WEIGHTS] = [size // 2] * 6
    line = models.fails("pull", NAME)
    assert "cannot be reached" in line
    assert "kept" in line
    with pytest.raises(ModelError, match=f"only in part; continue with: midspan models pull {NAME}"):
        folder_of(NAME)
    assert "in part" in models.run("list").out

    others = {name: count for name, count in models.hub.sent.items() if name != WEIGHTS}
    models.repository.drops.clear()
    models.pull()
    assert models.hub.sent[WEIGHTS] == size
    assert {name: count for name, count in models.hub.sent.items() if name != WEIGHTS and name in others} == others


def test_after_ctrl_c_the_next_pull_continues(
    models: ModelsCommand, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    size = len(models.repository.files[WEIGHTS])
    models.repository.stalls[WEIGHTS] = size // 2
    command = [sys.executable, "-m", "engine.cli", "models", "pull", NAME]

    def accept_ctrl_c() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell makes background processes ignore it

    with subprocess.Popen(
        command, env=models.environment, stderr=subprocess.PIPE, text=True, preexec_fn=accept_ctrl_c
    ) as process:
        assert models.hub.stalled.wait(TIMEOUT_S)
        arriving = models.folder / f"{NAME}.partial" / WEIGHTS
        eventually(lambda: arriving.stat().st_size > size // 3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert f"continue with: midspan models pull {NAME}" in errors
    assert not (models.folder / NAME).exists()
    received = arriving.stat().st_size

    before = models.hub.sent[WEIGHTS]
    models.pull()
    assert models.hub.sent[WEIGHTS] - before == size - received


def test_a_server_that_ignores_ranges_sends_the_whole_file_again(models: ModelsCommand) -> None:
    models.repository.ranges = False
    models.repository.drops[WEIGHTS] = [len(models.repository.files[WEIGHTS]) // 2]
    folder = models.pull()
    assert (folder / WEIGHTS).read_bytes() == models.repository.files[WEIGHTS]


@pytest.mark.parametrize("name", [WEIGHTS, "config.json"])
def test_a_damaged_file_is_deleted_and_reported(models: ModelsCommand, name: str) -> None:
    models.repository.damaged = {name}
    assert f"{name} arrived damaged" in models.fails("pull", NAME)
    assert not (models.folder / NAME).exists()

    models.repository.damaged = set()
    assert (models.pull() / name).read_bytes() == models.repository.files[name]


def test_files_of_a_newer_commit_are_not_mixed_with_those_of_an_interrupted_pull(models: ModelsCommand) -> None:
    models.repository.damaged = {WEIGHTS}
    models.fails("pull", NAME)
    models.repository.commit = "f" * 40
    assert f"no revision {COMMIT}" in models.fails("pull", NAME)
    models.repository.damaged = set()
    assert models.run("remove", NAME, "--yes").status == 0
    assert f"commit {'f' * 40}" in models.run("pull", NAME).out


def test_too_little_disk_space_is_reported_before_the_transfer(models: ModelsCommand) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LITTLE_DISK_SPACE],
        capture_output=True,
        text=True,
        env=models.environment,
        check=True,
    )
    assert "has room for 0.0 GB; make room, or set MIDSPAN_MODELS_DIR" in ended.stdout
    assert models.hub.sent == {}


def test_a_repository_without_safetensors_is_refused(models: ModelsCommand) -> None:
    del models.repository.files[WEIGHTS]
    assert "no weights as safetensors" in models.fails("pull", NAME)
    assert not models.hub.sent


@pytest.mark.parametrize("status", [200, 404, 500])
@pytest.mark.parametrize(
    "answer",
    [b"[" * 100_000, b'{"sha": "a", "siblings": ' + b"[" * 100_000, b'{"a":' * 100_000, b"[]", b'"a"', b"\xff"],
    ids=["nested", "nested in a field", "nested objects", "a list", "a text", "no UTF-8"],
)
def test_an_answer_of_the_hub_that_somebody_prepared_is_one_clear_line(
    models: ModelsCommand, answer: bytes, status: int
) -> None:
    models.repository.listing, models.repository.listing_status = answer, status
    with pytest.raises(ModelError, match=r"does not answer as a hub does|answered with status|status 404") as raised:
        list_files(catalog()[NAME], "main")
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("kind", ["a bomb", "endless", "many files", "many values"])
def test_a_list_of_the_hub_costs_no_more_than_a_list(models: ModelsCommand, kind: str, status: int) -> None:
    repository = models.repository
    repository.listing_status, repository.endless = status, kind == "endless"
    file = {"rfilename": "a.json", "size": 1, "blobId": ""}
    if kind == "a bomb":
        repository.listing, repository.encoded = gzip.compress(bytes(100_000_000)), "gzip"
    elif kind == "many values":
        repository.listing = b"[" + b"1," * 2_000_000 + b"1]"
    else:
        repository.listing = json.dumps({"sha": "a" * 40, "siblings": [file] * 2_000}).encode()
    tracemalloc.start()
    with pytest.raises(ModelError, match=r"is HF_ENDPOINT right|answered with status"):
        list_files(catalog()[NAME], "main")
    assert tracemalloc.get_traced_memory()[1] < 64_000_000
    tracemalloc.stop()


@pytest.mark.usefixtures("models")
def test_a_list_of_the_hub_that_comes_too_slowly_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.library.hub.HUB_LIST_S", 0.0)
    with pytest.raises(ModelError, match="is HF_ENDPOINT right"):
        list_files(catalog()[NAME], "main")


def test_a_nested_answer_of_the_hub_ends_a_pull_in_a_line(models: ModelsCommand) -> None:
    models.repository.listing = b"[" * 100_000
    assert "does not answer as a hub does; is HF_ENDPOINT right?" in models.fails("pull", NAME)
    models.repository.listing_status = 500
    assert f"the hub answered with status 500 for {catalog()[NAME].hub}" in models.fails("pull", NAME)


def test_a_model_that_is_missing_or_not_allowed_is_one_clear_line(models: ModelsCommand) -> None:
    hub_id = catalog()[NAME].hub
    models.repository.gated = True
    assert f"{hub_id} is gated: accept its terms" in models.fails("pull", NAME)
    models.hub.repositories.clear()
    assert f"no {hub_id} at {models.hub.url} that you may see (status 404)" in models.fails("pull", NAME)
    no_hub = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    assert "cannot be reached (ConnectError)" in models.fails("pull", NAME, environment=no_hub)
    assert "HF_HUB_OFFLINE is set" in models.fails("pull", NAME, environment={"HF_HUB_OFFLINE": "1"})
    assert "no model 'gpt' to pull; there are diffusion-gemma-26b" in models.fails("pull", "gpt")
    assert "there is nothing to pull" in models.fails("pull", "embedded")


def test_the_token_is_sent_to_the_hub_but_not_to_the_host_it_redirects_to(models: ModelsCommand) -> None:
    models.repository.token = "secret"
    assert "set HF_TOKEN" in models.fails("pull", NAME)
    assert models.run("pull", NAME, environment={"HF_TOKEN": "secret"}).status == 0
    assert models.hub.tokens_at_cdn
    assert set(models.hub.tokens_at_cdn) == {None}


@pytest.mark.parametrize(("name", "licence"), [("diffucoder-7b", "apple-amlr"), ("coda-1.7b", "CC-BY-NC-4.0")])
def test_a_licence_that_is_not_free_must_be_accepted(models: ModelsCommand, name: str, licence: str) -> None:
    models.hub.repositories[catalog()[name].hub] = models.repository
    assert f"licence of {name} ({licence}) was not accepted" in models.fails("pull", name)
    assert models.hub.requests == []
    assert models.run("pull", name, "--accept-licence").status == 0
    record = read_record(models.folder / name / RECORD)
    assert record is not None
    assert record.accepted


def test_a_gguf_is_pulled_alone_and_used_by_its_name(models: ModelsCommand, tmp_path: Path) -> None:
    model = catalog()["qwen3-0.6b-q8"]
    content = tiny_network("qwen3").save_gguf(tmp_path / "tiny.gguf").read_bytes()
    models.hub.repositories[model.hub] = Repository(
        {model.file: content, "other.gguf": b"GGUF", "model.safetensors": b"", "LICENSE": b"Apache"}, large={model.file}
    )
    assert models.run("pull", model.name).status == 0
    folder = models.folder / model.name
    assert {path.name for path in folder.iterdir()} == {model.file, "LICENSE", "midspan-model.json"}
    assert folder_of(model.name) == folder / model.file
    assert models.run("use", model.name).status == 0
    assert chosen_model().model == model.name
    assert "left to right" in models.run("info", model.name, "--verify").out
    del models.hub.repositories[model.hub].files[model.file]
    with pytest.raises(ModelError, match=f"has no file {model.file}"):
        list_files(model, "main")

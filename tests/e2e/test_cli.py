"""The command line with a real language server, a real engine and the tiny model."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from support.ended import Ended, run_here
from support.git_folder import repository
from support.lsp_editor import engine_home

from engine.cli.cursor import Cursor
from engine.cli.demo import Typist, samples
from engine.cli.fill_view import APART, MASK, canvas_text
from engine.cli.lsp_client import LspSession
from engine.models.embedded.runner import kernel_paths
from engine.protocol.editor_messages import FillOptions, Stage
from engine.usage_file import StatisticsFile, statistics_path

JSON_FIELDS = {"text", "tokens", "steps", "finish", "confidence", "ms", "model"}
SOURCES = {
    "area.py": "import math\n\n\ndef area(radius):\n    return \n",
    "area.ts": "export function area(radius: number): number {\n  return \n}\n",
    "area.go": "package shapes\n\nfunc Area(radius float64) float64 {\n\treturn \n}\n",
}
HOLES = {"area.py": "5:12", "area.ts": "2:10", "area.go": "4:9"}
_TIMEOUT_S = 90


@attrs.frozen
class CommandLine:
    """The installed `midspan` script with its own runtime folder. It runs in `folder`, which has the files."""

    script: str
    folder: Path
    environment: dict[str, str]

    def run(self, *arguments: str) -> Ended:
        run = subprocess.run(
            [self.script, *arguments],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            cwd=self.folder,
            env=self.environment,
            check=False,
        )
        return Ended.of(run)

    def run_in_terminal(self, *arguments: str) -> str:
        """Return everything that the command writes to a terminal."""
        terminal, its_end = pty.openpty()
        environment = {**self.environment, "TERM": "xterm-256color", "COLUMNS": "100"}
        with subprocess.Popen([self.script, *arguments], stdout=its_end, cwd=self.folder, env=environment) as process:
            os.close(its_end)
            written = b"".join(iter(lambda: _read(terminal), b""))
            assert process.wait(_TIMEOUT_S) == 0
        os.close(terminal)
        return written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # on Linux, the other side has closed
        return b""


@pytest.fixture(scope="module")
def midspan(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[CommandLine]:
    script = shutil.which("midspan", path=str(Path(sys.executable).parent))
    assert script is not None, "midspan is not installed beside this Python; run `make setup`"
    folder = tmp_path_factory.mktemp("project")
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    environment = {**os.environ, "MIDSPAN_RUNTIME_DIR": str(tmp_path_factory.mktemp("runtime"))}
    environment.pop("NO_COLOR", None)
    command_line = CommandLine(script, folder, environment)
    yield command_line
    command_line.run("engine", "stop", "--model", str(tiny_model))


@pytest.mark.parametrize("name", SOURCES)
def test_fill_prints_json_and_does_not_change_the_file(midspan: CommandLine, tiny_model: Path, name: str) -> None:
    ended = midspan.run("fill", name, "--at", HOLES[name], "--json", "--budget", "5000", "--model", str(tiny_model))
    assert ended.status == 0, ended.err
    answer = json.loads(ended.out)
    assert set(answer) == JSON_FIELDS
    assert set(answer["ms"]) == {"queue", "encode", "denoise", "total"}
    assert isinstance(answer["tokens"], int)
    assert answer["steps"] >= 1
    assert answer["ms"]["total"] > 0
    assert (midspan.folder / name).read_text() == SOURCES[name]


def test_fill_shows_the_hole_in_numbered_lines(midspan: CommandLine, tiny_model: Path) -> None:
    ended = midspan.run("fill", "area.py", "--at", "5:12", "--left-to-right", "--model", str(tiny_model))
    assert ended.status == 0, ended.err
    assert "4 │ def area(radius):" in ended.out
    assert "5 │     return " in ended.out
    assert "rule left-to-right" in ended.out
    assert "denoise" in ended.out


def test_the_first_fill_of_a_cold_engine_waits_for_its_context(midspan: CommandLine, tmp_path: Path) -> None:
    lines = [f"def area_{number}(radius):\n    return radius * {number} * radius\n\n\n" for number in range(80)]
    (tmp_path / "areas.py").write_text("".join(lines) + "def area_80(radius):\n    return \n")
    cold = attrs.evolve(midspan, environment={**midspan.environment, "MIDSPAN_RUNTIME_DIR": str(tmp_path / "run")})
    try:
        ended = cold.run("fill", str(tmp_path / "areas.py"), "--at", "322:12", "--json", "--model", "embedded")
    finally:
        cold.run("engine", "stop", "--model", "embedded")
    answer = json.loads(ended.out)
    assert answer["finish"] == "complete", answer
    assert answer["text"].startswith("radius")


async def test_who_waits_for_a_fill_learns_what_the_engine_does_while_it_starts(
    tiny_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "area.py"
    path.write_text(SOURCES["area.py"])
    stages: list[Stage] = []
    with engine_home(tmp_path / "run", tiny_model):
        async with LspSession(str(tiny_model)) as session:
            session.on_stage(stages.append)
            await session.open(path, SOURCES["area.py"])
            await session.fill(Cursor.parse(path, HOLES["area.py"]), FillOptions(None, None, 5000.0, False))
    assert "Starting the engine." in [stage.message for stage in stages if stage.state == "starting"]
    states = [stage.state for stage in stages]
    assert states.index("starting") < states.index("busy")


def test_explain_learns_the_repository_and_names_the_place(midspan: CommandLine, tiny_model: Path) -> None:
    known = "destination_of_everything = unlikely_name(other_thing, 4711)\n"
    repository(midspan.folder / "shop", {"src/known.py": "first = 1\n" + known * 3, "src/work.py": known[:33] + "\n"})
    arguments = ("shop/src/work.py", "--at", "1:34", "--budget", "5000", "--model", str(tiny_model))

    ended = midspan.run("fill", *arguments, "--explain")
    assert ended.status == 0, ended.err
    assert "comes mostly from the workspace" in ended.out
    assert "as in src/known.py:4, 3 of 3 times; the model alone: " in ended.out

    answer = json.loads(midspan.run("fill", *arguments, "--explain", "--json").out)
    assert set(answer) == JSON_FIELDS | {"source", "origins", "silence"}
    assert bool(answer["silence"]) == ("an editor shows none of it until it is asked: " in ended.out)
    assert answer["origins"][0]["line"] == 4


def test_watch_shows_the_steps_and_then_the_answer(midspan: CommandLine, tiny_model: Path) -> None:
    arguments = ("--rule", "threshold", "--steps", "4", "--budget", "5000", "--model", str(tiny_model))
    written = midspan.run_in_terminal("fill", "area.py", "--at", "5:12", "--watch", *arguments)
    assert "step 1" in written
    assert "rule threshold" in written.rpartition("step")[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("missing.py", "--at", "1:1"), "no such file"),
        ((".", "--at", "1:1"), "not a file"),
        (("area.py", "--at", "five"), "give a line and a column"),
        (("area.py", "--at", "99:1"), "lines 1 to 6"),
        (("area.py", "--at", "5:13"), "columns 1 to 12"),
        (("area.py", "--at", "0:1"), "lines 1 to 6"),
        (("picture.png", "--at", "1:1"), "UTF-8"),
        (("zero.py", "--at", "1:1"), "zero byte"),
        (("huge.py", "--at", "1:1"), "MB"),
        (("area.py", "--at", "5:12", "--rule", "verify", "--left-to-right"), "exclude"),
    ],
)
def test_bad_input_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("area.py").write_text(SOURCES["area.py"])
    Path("picture.png").write_bytes(b"\x89PNG\r\n")
    Path("zero.py").write_text("a = '\0'\n")
    Path("huge.py").write_text("a = 1\n" * 500_000)
    ended = run_here("fill", *arguments)
    assert (ended.status, ended.out) == (2, "")
    assert words in _only_line(ended.err)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("again", "--work", "runs"), "no checkpoint"),
        (("convert", "model", "--work", "runs", "--parent", "area.py"), "cannot be converted"),
        (("convert", "model", "--work", "runs", "--parent", "none.gguf"), "does not exist"),
        (("--work", "runs", "--config", "none.toml"), "no such training config"),
    ],
)
def test_bad_input_of_training_is_one_clear_line_and_fetches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("area.py").write_text(SOURCES["area.py"])
    ended = run_here("train", *arguments)
    assert (ended.status, ended.out) == (1, "")
    assert words in _only_line(ended.err)
    assert not Path("runs").exists()


def test_a_missing_model_is_one_clear_line(midspan: CommandLine) -> None:
    ended = midspan.run("fill", "area.py", "--at", "5:12", "--model", str(midspan.folder / "no-model"))
    assert (ended.status, ended.out) == (1, "")
    assert "no-model" in _only_line(ended.err)


def test_demo_types_the_samples_and_shows_the_server_for_editors(midspan: CommandLine) -> None:
    ended = midspan.run("demo")
    assert ended.status == 0, ended.err
    assert all(sample.name in ended.out for sample in samples())
    found = re.findall(r"(\d+) keys instead of (\d+), -?\d+% fewer · (\d+) suggestions right, (\d+) wrong", ended.out)
    assert len(found) == len(samples())
    for pressed, all_keys, right, _ in found:
        assert (int(pressed) < int(all_keys)) == (int(right) > 0)
    assert sum(int(right) for _, _, right, _ in found) > 0, "the embedded model and the memory know some of this"
    assert "midspan setup neovim" in ended.out
    assert "midspan-lsp --stdio" in ended.out
    assert "⟨" not in ended.out


async def test_what_a_program_is_shown_is_not_in_the_users_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_DATA_DIR", str(tmp_path / "data"))
    sample = samples()[0]
    path = sample.write(tmp_path, "")
    with engine_home(tmp_path / "runtime", "embedded"):
        async with LspSession("embedded", workspace=tmp_path) as session:
            await session.open(path, sample.above + sample.below)
            kinds = [stroke.kind async for stroke in Typist(session, sample, path).strokes()]
    assert "taken" in kinds
    assert not StatisticsFile(statistics_path()).read()


async def test_what_the_typist_of_the_demo_types_and_takes_is_the_sample(tmp_path: Path) -> None:
    sample = samples()[-1]
    path = sample.write(tmp_path, "")
    with engine_home(tmp_path / "runtime", "embedded"):
        async with LspSession("embedded", workspace=tmp_path) as session:
            await session.open(path, sample.above + sample.below)
            strokes = [stroke async for stroke in Typist(session, sample, path).strokes()]
    assert "".join(stroke.text for stroke in strokes if stroke.kind != "wrong") == sample.typed


def test_the_engine_starts_reports_its_status_and_stops(midspan: CommandLine, tiny_model: Path) -> None:
    model = ("--model", str(tiny_model), "--json")
    started = json.loads(midspan.run("engine", "start", *model).out)
    assert started["running"]
    assert json.loads(midspan.run("engine", "start", *model).out)["pid"] == started["pid"]

    filled = midspan.run("fill", "area.py", "--at", "5:12", *model)
    assert filled.status == 0, filled.err
    status = json.loads(midspan.run("engine", "status", *model).out)
    assert (status["pid"], status["fills"]) == (started["pid"], started["fills"] + 1)

    assert json.loads(midspan.run("engine", "stop", *model).out)["stopped"]
    gone = midspan.run("engine", "status", *model)
    assert (gone.status, json.loads(gone.out)) == (1, {"running": False})
    again = midspan.run("engine", "stop", *model)
    assert (again.status, json.loads(again.out)["stopped"]) == (0, [])


def test_doctor_gives_each_check_a_verdict_and_exits_with_the_worst(midspan: CommandLine) -> None:
    ended = midspan.run("doctor", "--json")
    report = json.loads(ended.out)
    verdicts = {check["name"]: check["verdict"] for check in report["checks"]}
    for name in ("Python", "packages", "grammars", "torch", "runtime folder", "language server", "engine"):
        assert verdicts[name] == "ok", report
    assert verdicts["kernel"] == ("ok" if kernel_paths() else "warn")
    assert set(verdicts.values()) <= {"ok", "warn", "fail"}
    assert all(check["advice"] for check in report["checks"] if check["verdict"] == "warn")
    better = [check["found"] for check in report["checks"] if check["name"] == "better model"]
    assert all("(measured here)" in found and found.endswith("midspan models pull coder") for found in better)
    assert (ended.status == 0) == report["healthy"] == ("fail" not in verdicts.values())


@pytest.mark.slow
def test_doctor_says_how_much_the_running_engine_knows(midspan: CommandLine, tiny_model: Path, tmp_path: Path) -> None:
    mine = attrs.evolve(midspan, environment={**midspan.environment, "MIDSPAN_CONFIG_DIR": str(tmp_path)})
    assert mine.run("models", "use", str(tiny_model)).status == 0
    repository(tmp_path / "small", {"one.py": "first = 1\n", "two.py": "second = 2\n"})
    explained = mine.run("fill", str(tmp_path / "small" / "one.py"), "--at", "2:1", "--explain")
    assert explained.status == 0, explained.err

    report = json.loads(mine.run("doctor", "--json").out)
    (found,) = [check["found"] for check in report["checks"] if check["name"] == "engine"]
    known = re.search(r"; memory: (\d+) files, [\d,]+ tokens, [\d.]+ MB$", found)
    assert known is not None, found
    assert int(known[1]) >= 2


def test_the_command_line_starts_without_torch() -> None:
    script = "import engine.cli, sys; print({'torch', 'transformers', 'lsprotocol'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "set()"


def _only_line(text: str) -> str:
    lines = text.splitlines()
    assert len(lines) == 1, text
    return lines[0]


@pytest.mark.parametrize(
    ("canvas", "shown"),
    [
        ([], ""),
        (["../", "utils"], "../utils"),
        (["../", None, "/", None], f"../{MASK}{APART}{MASK}"),
        ([None, "js", "js"], f"{MASK}{APART}{APART}"),
    ],
)
def test_text_after_a_mask_is_not_shown_before_the_mask_is_filled(canvas: list[str | None], shown: str) -> None:
    assert canvas_text(canvas).plain == shown

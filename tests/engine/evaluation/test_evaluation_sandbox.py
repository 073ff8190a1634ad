"""The sandbox, and the problems whose tests run in it: real hostile programs in real processes."""

import ctypes
import gzip
import json
import os
import sys
import time
from pathlib import Path

import pytest

from engine.errors import MidspanError
from engine.evaluation import humaneval, sandbox
from engine.evaluation.rows import DENOISE, TWIN
from engine.evaluation.sandbox import Limits
from engine.models.load import load

PROBLEMS = [
    {
        "task_id": f"{group}/HumanEval/0/L0",
        "entry_point": "double",
        "prompt": "def double(x):\n",
        "canonical_solution": "    y = x\n" if group == "SingleLineInfilling" else "    y = x\n    y += x\n",
        "suffix": "    return y + x\n" if group == "SingleLineInfilling" else "    return y\n",
        "test": "\ndef check(candidate):\n    assert candidate(2) == 4\n    assert candidate('a') == 'aa'\n",
    }
    for group in ("SingleLineInfilling", "MultiLineInfilling")
]


def packed(content: bytes) -> bytes:
    """Compress `content` without the time, so that a test's id is the same in each process."""
    return gzip.compress(content, mtime=0)


@pytest.fixture
def problem_file(tmp_path: Path) -> Path:
    path = tmp_path / "problems.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(problem) + "\n" for problem in PROBLEMS).encode()))
    return path


def test_a_program_that_reaches_its_end_has_passed() -> None:
    assert sandbox.run("import math, typing, collections, re\nassert math.sqrt(4) == 2") == "passed"


@pytest.mark.parametrize(
    "program",
    [
        "assert 1 == 2",
        "not python at all",
        "import sys\nsys.exit(0)",
        "raise SystemExit",
        "import os\nos._exit(0)",
        "input()",
        "import sys\nassert sys.stdin.read() == ''\nsys.stdin.buffer.raw.readall()\nopen(0).read()[0]",
        "x = [0] * (1 << 40)",
        "x = []\nwhile True:\n    x.append(bytes(1 << 24))",
        "def f():\n    return f()\nf()",
        "import subprocess\nsubprocess.run(['true'])",
        "import os\nos.system('true') == 0 or 1 / 0",
        "import os\nos.kill(os.getppid(), 9)",
        "import threading\nthreading.Thread(target=print).start()\nimport os\nos.fork()",
        "import socket\nsocket.create_connection(('127.0.0.1', 1))",
        "import ctypes\nctypes.CDLL(None).getpid()",
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (60, 60))",
        "import os\nassert os.environ.get('PATH')",
    ],
)
def test_a_program_that_fails_or_does_something_forbidden_has_failed(program: str) -> None:
    assert sandbox.run(program) == "failed"


@pytest.mark.parametrize("program", ["while True: pass", "try:\n    while True: pass\nfinally:\n    pass"])
def test_an_endless_loop_is_stopped_at_the_limit_of_processor_time(program: str) -> None:
    assert sandbox.run(program, Limits(cpu_s=1, wall_s=60)) == "out of time"


def test_a_sleeping_program_is_stopped_at_the_limit_of_elapsed_time() -> None:
    started = time.monotonic()
    assert sandbox.run("import time\ntime.sleep(3600)", Limits(wall_s=0.5)) == "out of time"
    assert time.monotonic() - started < 60


def test_a_program_with_much_output_passes() -> None:
    assert sandbox.run("for _ in range(20000): print('x' * 1000)") == "passed"


@pytest.mark.parametrize(
    "attempt",
    [
        "open({path!r}, 'w').write('x')",
        "open({path!r}, 'a')",
        "import os\nos.remove({path!r})",
        "import os\nos.rename({path!r}, {path!r} + '2')",
        "import os\nos.truncate({path!r}, 0)",
        "import os\nos.close(os.open({path!r}, os.O_WRONLY | os.O_TRUNC))",
        "import shutil, os\nshutil.rmtree(os.path.dirname({path!r}))",
        "import os\nos.mkdir({path!r} + '.d')",
        "import os\nos.symlink('/', {path!r} + '.l')",
        "open('here', 'w')",
    ],
)
def test_a_program_cannot_change_any_file(attempt: str, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("kept")
    assert sandbox.run(attempt.format(path=str(path))) == "failed"
    assert path.read_text() == "kept"
    assert [entry.name for entry in tmp_path.iterdir()] == ["precious"]


def _has_landlock() -> bool:
    return sys.platform == "linux" and bool(ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) > 0)


@pytest.mark.skipif(not _has_landlock(), reason="the kernel has no Landlock")
def test_the_kernel_refuses_what_the_audit_hook_does_not_see(tmp_path: Path) -> None:
    """os.mknod has no audit event, so only the kernel can stop it."""
    path = tmp_path / "made"
    assert sandbox.run(f"import os\nos.mknod({str(path)!r})") == "failed"
    assert not path.exists()


@pytest.mark.skipif(not sandbox.isolation(), reason="the kernel allows no namespaces")
def test_a_program_is_the_first_process_of_a_namespace_without_network() -> None:
    assert sandbox.run("import os\nassert os.getpid() == 1") == "passed"
    # Only a loopback interface that is down is left, so there are no routes.
    assert sandbox.run("rows = open('/proc/self/net/route').read().splitlines()\nassert len(rows) <= 1") == "passed"


def test_a_program_does_not_see_the_environment_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDSPAN_SECRET", "x")
    assert "MIDSPAN_SECRET" in os.environ
    assert sandbox.run("import os\nassert 'MIDSPAN_SECRET' not in os.environ\nassert os.listdir() == []") == "passed"


def test_a_canonical_solution_passes_when_it_runs(problem_file: Path) -> None:
    """`passes` accepts it without running it, which is right only if this test passes."""
    for problem in humaneval.load(problem_file):
        assert sandbox.run(problem.program(problem.canonical)) == "passed"
        assert sandbox.run(problem.program(problem.canonical.rstrip())) == "passed"
        assert problem.passes(problem.canonical.rstrip())


def test_a_fill_passes_if_the_tests_of_its_problem_pass(problem_file: Path) -> None:
    single, multi = humaneval.load(problem_file)
    assert single.passes("    y = x * 1")
    assert not single.passes("    y = x * 2")
    assert not single.passes("y = x")
    assert not single.passes("    raise SystemExit(0)")
    assert multi.passes("    y = 2 * x\n")
    assert not multi.passes("")


async def test_every_problem_is_filled_with_every_strategy(problem_file: Path, tiny_model: Path) -> None:
    problems = humaneval.load(problem_file)
    rows = await humaneval.solve(load(str(tiny_model), threads=1), problems, (TWIN, DENOISE))
    assert [(row.kind, row.strategy) for row in rows] == [
        (f"HumanEval {problem.set}", strategy.name) for problem in problems for strategy in (TWIN, DENOISE)
    ]
    assert all(row.passed is not None for row in rows)


def test_equal_seeds_draw_equal_problems(problem_file: Path) -> None:
    problems = humaneval.load(problem_file) * 20
    drawn = humaneval.draw(problems, 3, 5)
    assert [problem.is_single for problem in drawn] == [True] * 3 + [False] * 5
    assert drawn == humaneval.draw(problems, 3, 5)
    assert len(humaneval.draw(problems, 100, 100)) == len(problems)


@pytest.mark.parametrize(
    "content", [b"", b"no gzip", gzip.compress(b"[]\n", mtime=0), gzip.compress(b'{"task_id": 1}\n', mtime=0)]
)
def test_a_file_without_problems_gives_an_error_of_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.gz"
    path.write_bytes(content)
    if content:
        with pytest.raises(MidspanError, match=r"other\.gz") as caught:
            humaneval.load(path)
        assert "\n" not in str(caught.value)
    with pytest.raises(MidspanError):
        humaneval.load(tmp_path / "missing.gz")

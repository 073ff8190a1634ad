"""`midspan refactor repeat`, run as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.git_folder import git, repository

from lsp_server.refactor.command import MOST_SHOWN

FILES = {
    "a.py": "import os\nx = os.getcwd()\n",
    "b.py": "import os\n\n\ndef f(os):\n    return os.getcwd()\n",
    "c.py": "import os\n\nprint(os.getcwd())\n",
}
CODE = ("--from", "import os\nos.getcwd()", "--to", "from pathlib import Path\nPath.cwd()")


def refactor(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root, "COLUMNS": "200"}
    command = [sys.executable, "-m", "engine.cli", "refactor", "repeat", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


def test_a_diff_is_the_default_and_writes_nothing(tmp_path: Path) -> None:
    repository(tmp_path, FILES)
    done = refactor(tmp_path, ".", *CODE)
    assert "-print(os.getcwd())\n+print(Path.cwd())\n" in done.stdout
    assert "python: os.getcwd($$R0_all) → Path.cwd($$R0_all)" in done.stderr
    assert "b.py:5: left out: `os` is a parameter here" in done.stderr
    assert "2 places in 2 files found, 1 left out" in done.stderr
    assert done.returncode == 3, "a place was left out"
    assert (tmp_path / "a.py").read_text() == FILES["a.py"]
    assert subprocess.run(["git", "apply", "--check"], cwd=tmp_path, input=done.stdout, text=True).returncode == 0


def test_apply_writes_the_files(tmp_path: Path) -> None:
    repository(tmp_path, FILES)
    done = refactor(tmp_path, "a.py", "c.py", *CODE, "--apply")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "c.py").read_text() == "from pathlib import Path\n\nprint(Path.cwd())\n"
    again = refactor(tmp_path, ".", *CODE)
    assert "0 places in 0 files found" in again.stderr


def test_json_has_edits_places_and_what_was_left_out(tmp_path: Path) -> None:
    repository(tmp_path, FILES)
    result = json.loads(refactor(tmp_path, ".", *CODE, "--json").stdout)
    assert {file["path"]: len(file["places"]) for file in result["files"]} == {"a.py": 1, "b.py": 0, "c.py": 1}
    first = next(file for file in result["files"] if file["path"] == "a.py")
    assert first["edits"][0] == {"start": 0, "end": 9, "text": "from pathlib import Path"}
    assert (result["places"], result["leftOut"], result["reached"]) == (2, 1, [])


def test_the_edits_of_the_working_tree_are_examples(tmp_path: Path) -> None:
    repository(tmp_path, FILES)
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "a.py").write_text("from pathlib import Path\nx = Path.cwd()\n")
    done = refactor(tmp_path, ".", "--since", "HEAD", "--apply")
    assert (tmp_path / "c.py").read_text() == "from pathlib import Path\n\nprint(Path.cwd())\n", done.stderr


def test_doubtful_places_are_listed_and_edited_only_if_they_are_asked_for(tmp_path: Path) -> None:
    texts = {f"{name}.py": f"def f({name}):\n    {name}.stop()\n" for name in ("pump", "music")}
    repository(tmp_path, {**texts, "old": texts["pump.py"], "new.py": texts["pump.py"].replace("stop", "halt")})
    command = ("pump.py", "music.py", "--example", "old", "new.py", "--apply")
    done = refactor(tmp_path, *command)
    assert "music.py:2: left out: doubtful: its receiver is another one" in done.stderr
    assert "1 place in 1 file edited, 1 left out, 1 of them doubtful: --doubtful takes them" in done.stderr
    assert (done.returncode, (tmp_path / "music.py").read_text()) == (3, texts["music.py"])
    again = refactor(tmp_path, *command, "--doubtful")
    assert (again.returncode, (tmp_path / "music.py").read_text()) == (0, texts["music.py"].replace("stop", "halt"))


def test_what_only_the_widest_form_fits_is_listed_and_edited_only_if_it_is_asked_for(tmp_path: Path) -> None:
    files = {"a.php": "<?php\n$this->same(1);\n", "b.php": "<?php\n$this->count(2);\n"}
    repository(tmp_path, {**files, "old": files["a.php"], "new.php": files["a.php"].replace("$this->", "self::")})
    command = ("a.php", "b.php", "--example", "old", "new.php", "--apply")
    done = refactor(tmp_path, *command)
    assert "php: wide: $this->$W0$W1 → self::$W0$W1" in done.stderr
    assert "b.php:2: left out: wide: only `this ->` is as in the example" in done.stderr
    assert "1 place in 1 file edited, 1 left out, 1 of them wide: --wide takes them" in done.stderr
    assert (done.returncode, (tmp_path / "b.php").read_text()) == (3, files["b.php"])
    assert refactor(tmp_path, *command, "--wide").returncode == 0
    assert (tmp_path / "b.php").read_text() == files["b.php"].replace("$this->", "self::")


def test_so_many_places_of_a_reason_have_a_line_each(tmp_path: Path) -> None:
    example = "def f(pump):\n    pump.stop()\n"
    text = example + "def g(music):\n    music.stop()\n" * (MOST_SHOWN + 2)
    repository(tmp_path, {"a.py": text, "old": example, "new.py": example.replace("stop", "halt")})
    done = refactor(tmp_path, "a.py", "--example", "old", "new.py")
    assert done.stderr.count("a.py:") == MOST_SHOWN
    assert "midspan: 2 more places left out: doubtful: its receiver" in done.stderr


def test_two_files_are_an_example(tmp_path: Path) -> None:
    repository(tmp_path, FILES)
    (tmp_path / "new.py").write_text("from pathlib import Path\nx = Path.cwd()\n")
    done = refactor(tmp_path, "c.py", "--example", "a.py", "new.py")
    assert "+print(Path.cwd())" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((".",), "give one of --from with --to, --example and --since"),
        ((".", "--from", "a()"), "--from and --to belong together"),
        ((".", *CODE, "--json", "--apply"), "exclude each other"),
        (("none.py", *CODE), "no such file: none.py"),
        ((".", "--since", "nowhere"), "give a revision of this repository"),
        ((".", "--from", "a(", "--to", "b("), "the example has syntax errors in python"),
        ((".", *CODE, "--language", "cobol"), "--language 'cobol' is not known"),
    ],
)
def test_bad_input_gets_one_line(tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    repository(tmp_path, FILES)
    done = refactor(tmp_path, *arguments)
    assert done.returncode == 2
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1


SWAPPED = {"a.py": "f(x, y)\nf(y, z)\nf(x, z)\n"}


def test_the_edit_of_the_working_tree_stays_as_the_user_made_it(tmp_path: Path) -> None:
    repository(tmp_path, SWAPPED)
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "a.py").write_text(SWAPPED["a.py"].replace("f(x, y)", "f(y, x)"))
    done = refactor(tmp_path, ".", "--since", "HEAD", "--apply")
    assert "2 places in 1 file edited, 0 left out" in done.stderr
    assert (tmp_path / "a.py").read_text() == "f(y, x)\nf(z, y)\nf(z, x)\n"


MIXED = {
    "a.py": "x = load\n",
    "b.yaml": "run: load(a)\n",
    "c.md": "call load(a)\n",
    "d.go": "package p\n\nfunc f() {\n\tx := load\n}\n",
}


def test_each_language_says_what_was_searched_there_and_why_nothing_was_found(tmp_path: Path) -> None:
    repository(tmp_path, MIXED)
    done = refactor(tmp_path, ".", "--from", "load($A, $B)", "--to", "read($A, $B)")
    lines = done.stderr.splitlines()
    assert "yaml: not searched: to yaml this code is a piece of text, without a syntax" in lines
    assert "markdown: not searched: to markdown this code is a piece of text, without a syntax" in lines
    assert "python: load($A, $B) → read($A, $B)" in lines
    assert "midspan: python: 1 of 1 file has these words, but not this code" in lines
    assert "0 places in 0 files found, 0 left out" in lines
    assert "Midspan" not in done.stderr + done.stdout
    assert done.returncode == 1


def test_nothing_found_is_a_failure_that_names_the_words(tmp_path: Path) -> None:
    repository(tmp_path, {"a.py": "x = load(1)\n", "b.py": "depth = 2\n"})
    for code, words in (("store()", "'store'"), ("height[load]", "'height'"), ("depth[load]", "'depth' with 'load'")):
        done = refactor(tmp_path, ".", "--from", code, "--to", "read()")
        assert done.stderr.splitlines()[-1] == f"midspan: python: none of 2 files has {words}"
        assert done.returncode == 1


def test_a_name_that_nothing_defines_is_said_before_a_file_is_written(tmp_path: Path) -> None:
    files = {"a.py": "print(1)\nprint(2)\n", "b.py": "from log import logger\n\nprint(3)\n"}
    repository(tmp_path, files)
    done = refactor(tmp_path, ".", "--from", "print($X)", "--to", "logger.info($X)", "--apply")
    said = "the edit uses `logger`, which nothing defines or imports in a.py (2 places)"
    assert said in done.stderr
    assert done.stderr.index(said) < done.stderr.index("3 places in 2 files edited")


@pytest.mark.parametrize(
    ("name", "text", "before", "after", "expected"),
    [
        ("a.py", "def f(a: Optional[int], b: dict[str, Optional[A]]) -> None: ...\nB = Optional[C]\n",
         "Optional[$T]", "$T | None", "def f(a: int | None, b: dict[str, A | None]) -> None: ...\nB = C | None\n"),
        ("a.py", "def f(a: Optional[int]) -> Optional[str]: ...\n",
         "Optional[int]", "int | None", "def f(a: int | None) -> str | None: ...\n"),
        ("a.go", "package p\n\nfunc f() {\n\tx, err := db.Query(r)\n\tdb.Query(s)\n}\n",
         "db.Query(q)", "db.QueryContext(ctx, q)",
         "package p\n\nfunc f() {\n\tx, err := db.QueryContext(ctx, r)\n\tdb.QueryContext(ctx, s)\n}\n"),
        ("a.go", "package p\n\nfunc f() {\n\tx, err := ioutil.ReadFile(r)\n}\n",
         "ioutil.ReadFile(p)", "os.ReadFile(p)", "package p\n\nfunc f() {\n\tx, err := os.ReadFile(r)\n}\n"),
        ("a.tsx", 'let b = <B color="a" x={y} />;\n', 'color="$C"', 'kind="$C"', 'let b = <B kind="a" x={y} />;\n'),
        ("a.ts", "try { f() } catch (e: any) { g(e) }\n", "catch (e: any)", "catch (e: unknown)",
         "try { f() } catch (e: unknown) { g(e) }\n"),
        ("a.ts", "let e: any;\nfunction f(e: any) {}\n", "e: any", "e: unknown",
         "let e: unknown;\nfunction f(e: unknown) {}\n"),
        ("a.py", "PORT = 8080\nserve(port=8080)\nx = {8080: 1}\n", "8080", "9090",
         "PORT = 9090\nserve(port=9090)\nx = {9090: 1}\n"),
        ("a.ts", "const o = { port: 8080 };\nserve(8080);\n", "8080", "9090",
         "const o = { port: 9090 };\nserve(9090);\n"),
        ("a.rs", "fn f() { match g() { Some(x) => Some(x), _ => h } }\n", "Some($X)", "Ok($X)",
         "fn f() { match g() { Ok(x) => Ok(x), _ => h } }\n"),
        ("A.java", "class A { @Before void f() {} }\n",
         "@Before", "@BeforeEach", "class A { @BeforeEach void f() {} }\n"),
        ("A.java", "class A { private Date a; void f(Date b) {} }\n", "private Date $X;", "private Instant $X;",
         "class A { private Instant a; void f(Date b) {} }\n"),
    ],
)  # fmt: skip
def test_code_is_found_wherever_its_language_has_it(
    tmp_path: Path, name: str, text: str, before: str, after: str, expected: str
) -> None:
    (tmp_path / name).write_text(text)
    done = refactor(tmp_path, name, "--from", before, "--to", after, "--apply")
    assert (tmp_path / name).read_text() == expected, done.stderr


def test_the_same_code_in_another_syntax_is_listed(tmp_path: Path) -> None:
    text = "function f(e: any) {}\nclass A {\n  constructor(private e: any) {}\n}\n// e: any\n"
    (tmp_path / "a.ts").write_text(text)
    done = refactor(tmp_path, "a.ts", "--from", "e: any", "--to", "e: unknown", "--apply")
    assert (tmp_path / "a.ts").read_text() == text.replace("f(e: any)", "f(e: unknown)")
    assert "a.ts:3" in done.stdout + done.stderr
    assert "it has another syntax here than in the example" in done.stdout + done.stderr
    assert "a.ts:5" not in done.stdout + done.stderr


def test_a_place_that_only_looks_alike_ends_with_three(tmp_path: Path) -> None:
    before = "void f() { wait_for(1000); }\n"
    (tmp_path / "old.cc").write_text(before)
    (tmp_path / "new.cc").write_text(before.replace("wait_for(1000)", "pause(1)"))
    (tmp_path / "a.cc").write_text("void g() { wait_for(1000); }\n")
    (tmp_path / "b.cc").write_text("void h() { wait_for(9 * 1000); auto k = wait_for; }\n")
    example = ("--example", "old.cc", "new.cc", "--apply")
    done = refactor(tmp_path, "a.cc", "b.cc", *example)
    assert done.returncode == 3
    assert "2 more places have `wait_for" in done.stderr
    assert (tmp_path / "a.cc").read_text() == "void g() { pause(1); }\n"
    (tmp_path / "a.cc").write_text("void g() { wait_for(1000); }\n")
    assert refactor(tmp_path, "a.cc", *example).returncode == 0

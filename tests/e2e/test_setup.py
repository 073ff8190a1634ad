"""`midspan setup` with a home of its own: what it writes, and that it takes back exactly that."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parents[2]
EDITORS = ROOT / ".editors" / "debian" / "root" / "usr" / "bin"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs of these homes are shell scripts")


@attrs.frozen
class Home:
    """A bare home folder. Only the programs in `programs` are on the PATH."""

    folder: Path

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    def has(self, name: str, text: str) -> None:
        self.programs.mkdir(exist_ok=True)
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(stat.S_IRWXU)

    def has_real(self, name: str) -> None:
        if not (EDITORS / name).exists():
            pytest.skip(f"{name} is not here: make editors")
        self.programs.mkdir(exist_ok=True)
        (self.programs / name).symlink_to(EDITORS / name)

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run `midspan setup` and return what it says on both outputs."""
        return self.ask(sys.executable, "-m", "engine.cli", "setup", *arguments, status=status)

    def ask(self, *command: str, status: int = 0, also: Mapping[str, str] | None = None) -> str:
        """Run a program as this home's user, with `also` in its environment; return what it says on both outputs."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "MIDSPAN_"))}
        places = {"HOME": str(self.folder), "MIDSPAN_DATA_DIR": str(self.folder / "data")}
        environment = {**kept, **places, "PATH": f"{self.programs}:/usr/bin:/bin", **(also or {})}
        program = shutil.which(command[0], path=environment["PATH"])
        assert program, command
        done = subprocess.run(
            [program, *command[1:]], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def files(self) -> dict[str, bytes]:
        """Return all files but the programs and Neovim's own logs, by their paths."""
        paths = [path for path in self.folder.rglob("*") if path.is_file() and self.programs not in path.parents]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths if path.name != "nvim.log"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_machine_without_editors_is_told_which_ones_setup_knows(home: Home) -> None:
    assert "no editor was found; setup knows vscode, vscodium" in home.run()
    assert "no editor was found" in home.run("--yes", status=1)
    assert home.files() == {}


def test_a_name_that_setup_does_not_know_is_bad_input(home: Home) -> None:
    assert home.run("nano", status=2).startswith("midspan: setup knows no 'nano'; it knows vscode, ")


def test_without_a_name_it_only_says_what_it_would_do(home: Home) -> None:
    home.has_real("nvim")
    said = home.run()
    assert "Neovim       would write the plugin to" in said
    assert "better modelqwen" not in said
    assert said.splitlines()[-1].startswith("do it: midspan setup --yes"), "one line, also in a narrow terminal"
    assert home.files() == {}


def test_neovims_plugin_is_written_and_taken_back(home: Home) -> None:
    home.has_real("nvim")
    assert "done: write the plugin" in home.run("neovim")
    plugin = home.folder / ".local/share/nvim/site/pack/midspan/start/midspan"
    assert (plugin / "lua/midspan/init.lua").exists()
    assert "midspan-lsp" in (plugin / "lua/midspan/installed.lua").read_text()
    assert "done" in home.run("neovim")
    home.run("--remove")
    assert home.files() == {}
    assert not plugin.parents[1].exists()


def test_a_plugin_that_the_user_put_there_is_never_touched(home: Home) -> None:
    home.has_real("nvim")
    clone = home.folder / "clone"
    shutil.copytree(ROOT / "editors" / "neovim", clone)
    pack = home.folder / ".local/share/nvim/site/pack/midspan/start"
    pack.mkdir(parents=True)
    (pack / "midspan").symlink_to(clone)
    before = home.files()
    assert "is not as setup wrote it; move it away" in home.run("neovim", status=1)
    home.run("--remove", "neovim")
    assert home.files() == before


def test_a_plugin_that_cannot_be_written_is_one_line_and_leaves_nothing(home: Home) -> None:
    home.has_real("nvim")
    in_the_way = home.folder / ".local/share/nvim/site/pack/midspan/start/midspan/plugin"
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("a file, where the plugin has a folder")
    said = home.run("neovim", status=1)
    assert said.startswith("Neovim       not done: ")
    assert len(said.splitlines()) == 1
    assert list(home.files()) == [str(in_the_way.relative_to(home.folder))]


def test_a_file_that_was_changed_is_left_and_said(home: Home) -> None:
    home.has_real("nvim")
    home.run("neovim")
    changed = home.folder / ".local/share/nvim/site/pack/midspan/start/midspan/lua/midspan/installed.lua"
    changed.write_text("-- mine")
    assert "is not as setup wrote it; move it away" in home.run("neovim", status=1)
    assert f"{changed} was changed, so it is left" in home.run("--remove", "neovim")
    assert list(home.files().values()) == [b"-- mine"]


def test_helix_keeps_its_servers_and_the_users_lines(home: Home) -> None:
    home.has_real("hx")
    languages = home.folder / ".config/helix/languages.toml"
    languages.parent.mkdir(parents=True)
    mine = '# mine\n[[language]]\nname = "go"\nlanguage-servers = ["gopls"]\n'
    languages.write_text(mine)
    assert 'add "midspan" to the language-servers of go' in home.run("helix")
    configured = tomllib.loads(languages.read_text())
    servers = {entry["name"]: entry["language-servers"] for entry in configured["language"]}
    assert servers["go"] == ["gopls"]
    assert servers["python"][-1] == "midspan"
    assert "pylsp" in servers["python"]
    assert configured["language-server"]["midspan"]["command"].endswith("midspan-lsp")
    home.run("helix")
    assert tomllib.loads(languages.read_text()) == configured
    assert re.search(r"✓.* midspan: ", home.ask("hx", "--health", "python"))
    home.run("--remove", "helix")
    assert languages.read_text() == mine
    home.run("helix")
    languages.write_text(mine)  # The user has taken the lines out by hand.
    home.run("helix")
    assert tomllib.loads(languages.read_text()) == configured


def test_lines_of_helix_that_were_changed_are_left_and_said(home: Home) -> None:
    home.has("hx", "#!/bin/sh\n")
    home.run("helix")
    languages = home.folder / ".config/helix/languages.toml"
    changed = languages.read_text().replace("completionItems", "wholeLines")
    languages.write_text(changed)
    assert "were changed, so they are left" in home.run("--remove")
    assert languages.read_text() == changed


def test_emacs_gets_a_file_and_the_line_that_loads_it_is_said(home: Home) -> None:
    home.has("emacs", "#!/bin/sh\n")
    path = home.folder / ".emacs.d/midspan.el"
    assert f'(load "{path}")' in home.run("emacs")
    assert "midspan-lsp" in path.read_text()
    home.run("--remove", "emacs")
    assert not path.exists()


def test_without_a_built_extension_one_line_says_how_to_build_it(home: Home) -> None:
    if (ROOT / "dist" / "midspan.vsix").exists():
        pytest.skip("dist has an extension: rm dist/midspan.vsix")
    home.has("code", "#!/bin/sh\n")
    said = home.run("vscode", status=1)
    assert "not done: midspan.vsix is missing" in said
    assert "run `make dist` in a clone of Midspan, then setup again" in said


def test_an_editor_that_is_not_here_is_said(home: Home) -> None:
    assert "not done: cursor is not on the PATH" in home.run("cursor", status=1)
    said = home.run("neovim", status=1)
    assert "not done: neovim is not on the PATH: install Neovim 0.12 or newer" in said
    assert "PATH=FOLDER:$PATH midspan setup neovim (nvim is sought)" in said


def test_all_that_midspan_keeps_is_named_and_removed_with_all(home: Home) -> None:
    home.has_real("nvim")
    home.has("git", "#!/bin/sh\n")
    folders = {"MIDSPAN_DATA_DIR": "", "XDG_RUNTIME_DIR": str(home.folder / "run")}
    (home.folder / "run").mkdir(mode=0o700)
    midspan = (sys.executable, "-m", "engine.cli")
    home.ask(*midspan, "setup", "neovim", also=folders)
    home.ask(*midspan, "models", "use", "embedded", also=folders)
    home.ask(*midspan, "engine", "start", also=folders)
    (home.folder / ".local/share/midspan/statistics.jsonl").write_text("{}\n")

    said = home.ask(*midspan, "setup", "--remove", also=folders)
    assert "midspan (statistics)" in said
    assert "remove them too: midspan setup --remove --all" in said
    assert home.ask(*midspan, "engine", "status", also=folders), "nothing but the editors is touched"

    said = home.ask(*midspan, "setup", "--remove", "--all", also=folders)
    assert "ended the engine of embedded" in said
    assert "close your editors" in said, "an open editor would start it again"
    home.ask(*midspan, "engine", "status", also=folders, status=1)
    left = [path for path in home.files() if "midspan" in path.lower()]
    assert left == []


def test_a_folder_that_a_variable_names_may_be_shared_and_is_left(home: Home) -> None:
    (home.folder / "data").mkdir()
    (home.folder / "data" / "mine.txt").write_text("mine")
    assert f"left {home.folder / 'data'} (statistics)" in home.run("--remove", "--all")
    assert (home.folder / "data" / "mine.txt").exists()


def test_all_is_for_removing_and_takes_no_names(home: Home) -> None:
    assert "--all is for `setup --remove --all`" in home.run("--all", status=2)
    assert "--all is for `setup --remove --all`" in home.run("--remove", "--all", "neovim", status=2)


def test_a_damaged_receipt_is_one_line(home: Home) -> None:
    receipt = home.folder / "data" / "setup.json"
    receipt.parent.mkdir(parents=True)
    receipt.write_text(json.dumps({"editors": 3}))
    (line,) = home.run("--remove", status=1).splitlines()
    assert "setup.json cannot be read" in line

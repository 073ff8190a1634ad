"""Repositories whose settings name a program wherever git knows a key for one. The program leaves a marker."""

import os
import subprocess
from pathlib import Path

from support.git_folder import git, repository, write

FILES = {
    ".gitattributes": "* filter=evil diff=evil merge=evil\n",
    ".gitmodules": '[submodule "sub"]\n\tpath = sub\n\turl = ext::sh -c true\n\tupdate = !true\n',
    ".gitignore": "ignored.py\n",
    "area.py": "import os\n\n\ndef here():\n    return os.getcwd()\n",
    "other.py": "import os\n\nprint(os.getcwd())\n",
    "third.py": "import os\n\nx = os.getcwd()\n",
}
# From git-config's and gitattributes' documentation: what names a program, or a folder or a file with more of that.
PROGRAM_KEYS = (
    "alias.cat-file",
    "alias.ls-files",
    "alias.ls-tree",
    "alias.rev-parse",
    "browser.evil.cmd",
    "core.alternateRefsCommand",
    "core.askPass",
    "core.editor",
    "core.fsmonitor",
    "core.gitProxy",
    "core.pager",
    "core.sshCommand",
    "credential.helper",
    "diff.evil.command",
    "diff.evil.textconv",
    "diff.external",
    "difftool.evil.cmd",
    "filter.evil.clean",
    "filter.evil.process",
    "filter.evil.smudge",
    "gc.recentObjectsHook",
    "gpg.openpgp.program",
    "gpg.program",
    "gpg.ssh.defaultKeyCommand",
    "gpg.ssh.program",
    "gpg.x509.program",
    "guitool.evil.cmd",
    "hook.evil.command",
    "imap.tunnel",
    "instaweb.httpd",
    "interactive.diffFilter",
    "man.evil.cmd",
    "merge.evil.driver",
    "mergetool.evil.cmd",
    "pager.ls-files",
    "remote.origin.receivepack",
    "remote.origin.uploadpack",
    "sendemail.smtpServer",
    "sequence.editor",
    "submodule.sub.update",
    "tar.evil.command",
    "trailer.evil.cmd",
    "trailer.evil.command",
    "uploadpack.packObjectsHook",
    "web.browser",
)
URLS = ("ssh://127.0.0.1/x", "ext::{program}", "{elsewhere}", "evil::x", "git://127.0.0.1/x", "http://127.0.0.1:9/x")
HOOKS = ("post-index-change", "reference-transaction", "fsmonitor-watchman", "post-checkout", "pre-auto-gc")


def marker_program(folder: Path, marker: Path) -> Path:
    """Write a program that makes the marker."""
    program = folder / "evil.sh"
    program.write_text(f"#!/bin/sh\necho $0 $@ >> {marker}\ncat >/dev/null 2>&1 </dev/null\n")
    program.chmod(0o755)
    return program


def hostile_repository(folder: Path, marker: Path, url: str = URLS[0]) -> Path:
    """Make a repository with every key, and an index entry of a blob that git would have to fetch from `url`."""
    repository(folder, FILES)
    git(folder, "commit", "-qm", "first")
    program = marker_program(folder / ".git", marker)
    _lose(folder, ".gitignore")
    arm(folder / ".git", program, url)
    (folder / "area.py").write_text(
        FILES["area.py"].replace("import os", "from pathlib import Path").replace("os.getcwd()", "Path.cwd()")
    )
    return folder


def bare_folder(folder: Path, marker: Path) -> Path:
    """Make a folder of plain files, as a clone brings it, that git takes for a bare repository with a work tree."""
    hostile = hostile_repository(folder.with_name("source"), marker)
    folder.mkdir(parents=True)
    git(hostile, "config", "core.bare", "false")
    git(hostile, "config", "core.worktree", str(folder))
    for name in ("HEAD", "config", "index", "objects", "refs", "hooks"):  # the program stays where the settings name it
        (hostile / ".git" / name).rename(folder / name)
    write(folder, {name: text for name, text in FILES.items() if name.endswith(".py")})
    return folder


def arm(git_folder: Path, program: Path, url: str) -> None:
    """Set every key in a repository's own settings, half of them through an included file; install every hook."""
    elsewhere = git_folder / "elsewhere.git"
    subprocess.run(["git", "init", "-q", "--bare", str(elsewhere)], check=True, env=_CLEAN)
    lines = ["[extensions]\n\tpartialClone = origin\n[core]\n\trepositoryFormatVersion = 1\n"]
    lines.append(f'[remote "origin"]\n\tpromisor = true\n\turl = {url.format(program=program, elsewhere=elsewhere)}\n')
    for number, key in enumerate(PROGRAM_KEYS):
        value = f"!{program}" if key.startswith(("alias.", "credential.")) else str(program)
        section, _, name = key.rpartition(".")
        section, _, part = section.partition(".")
        text = f'[{section} "{part}"]\n\t{name} = {value}\n' if part else f"[{section}]\n\t{name} = {value}\n"
        if number % 2:
            lines.append(text)
        else:
            with (git_folder / "more").open("a") as file:
                file.write(text)
    lines.append(f"[include]\n\tpath = more\n[core]\n\thooksPath = {git_folder / 'hooks'}\n\tuntrackedCache = true\n")
    lines.append('[protocol]\n\tallow = always\n[protocol "ext"]\n\tallow = always\n[index]\n\tsparse = true\n')
    with (git_folder / "config").open("a") as file:
        file.writelines(lines)
    (git_folder / "hooks").mkdir(exist_ok=True)
    for hook in HOOKS:
        (git_folder / "hooks" / hook).write_text(program.read_text())
        (git_folder / "hooks" / hook).chmod(0o755)


_CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def _lose(folder: Path, path: str) -> None:
    """Make a tracked file one that is only in the index, with a blob that is not in the repository."""
    entry = subprocess.run(
        ["git", "ls-files", "-s", path], cwd=folder, env=_CLEAN, capture_output=True, text=True, check=True
    ).stdout
    blob = entry.split()[1]
    git(folder, "update-index", "--skip-worktree", path)
    (folder / path).unlink()
    lost = folder / ".git" / "objects" / blob[:2] / blob[2:]
    lost.chmod(0o600)
    lost.unlink()

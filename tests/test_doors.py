"""A stranger's data come in through few modules, and each bound on them is said in SECURITY.md."""

import re
from pathlib import Path

import pytest
from support.doors import complaints, doors

from engine import bounds

ROOT = Path(__file__).parent.parent


def test_no_module_has_a_door_of_its_own() -> None:
    assert complaints(ROOT) == []


@pytest.mark.parametrize(
    "line",
    [
        "subprocess.run(['git', 'ls-files'])",
        "await asyncio.create_subprocess_exec('git')",
        "from subprocess import run",
        "os.system('git')",
        "open(path).read()",
        "path.open('rb')",
        "self.folder.joinpath(name).read_bytes()",
        "os.open(path, os.O_RDONLY)",
        "for folder, _, files in os.walk(path): pass",
        "list(path.rglob('*.py'))",
        "path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)",
        "os.makedirs(path)",
        "json.loads(body)",
        "from json import loads",
        "pickle.loads(body)",
    ],
)
def test_a_second_way_is_found(line: str, tmp_path: Path) -> None:
    assert list(doors(line if not line.startswith("await") else f"async def f():\n    {line}"))
    (tmp_path / "engine" / "http").mkdir(parents=True)
    (tmp_path / "engine" / "http" / "new.py").write_text(f"async def f():\n    {line}\n")
    assert any(complaint.startswith("engine/http/new.py:2 may not") for complaint in complaints(tmp_path))


def test_each_bound_is_in_the_table_of_the_doors() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    table = text[text.index("| door |") :].partition("\n\n")[0]
    names = {name for name in vars(bounds) if name.isupper()}
    assert names == set(re.findall(r"`([A-Z_]{3,})`", table))

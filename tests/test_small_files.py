"""The list of small files that `make lint` prints."""

from pathlib import Path

from support.small_files import small_files


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_small_file_with_one_importer_beside_it_is_below_the_floor(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "engine/room/__init__.py": "",
            "engine/room/small.py": "X = 1\n" * 59,
            "engine/room/large.py": "X = 1\n" * 60,
            "engine/room/user.py": "from engine.room import large\nfrom engine.room.small import X\n",
            "lsp_server/user.py": "import engine.room.user\n",
        },
    )
    assert small_files(tmp_path) == {Path("engine/room/small.py"): Path("engine/room/user.py")}


def test_what_is_run_loaded_late_shared_or_between_rooms_may_be_small(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "engine/room/__main__.py": "from engine.room import shared\n",
            "engine/room/late.py": "",
            "engine/room/shared.py": "",
            "engine/room/border.py": "",
            "engine/room/user.py": "from engine.room import shared\ndef f():\n    import engine.room.late\n",
            "engine/other/user.py": "from engine.room import border\n",
        },
    )
    assert small_files(tmp_path) == {}

"""The frozen source files that the tests read: text for tiny tokenizers and corpora.

They are a copy of this project's own files at one commit, as text, so that no search for code finds them. The live
files would change the random models with every edit.
"""

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


def source_paths() -> list[Path]:
    """Return the frozen Python files, sorted by name. `stem` is the name that a file had."""
    return sorted((DATA / "sources").glob("*.py.txt"))

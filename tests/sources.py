"""The frozen source files that the tests read: text for tiny tokenizers and corpora.

They are a copy of this project's own files at one commit. The project's live files would change the random models with
every edit.
"""

from pathlib import Path

DATA = Path(__file__).parent / "data"


def source_paths() -> list[Path]:
    """Return the frozen Python files, sorted by name."""
    return sorted((DATA / "sources").glob("*.py"))

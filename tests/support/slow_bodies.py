"""A server that reads one body for as long as a test wants: others must get their answers meanwhile.

The server's Python loads a `sitecustomize` that waits at two pipes where such a body is parsed.
"""

import os
from pathlib import Path

import attrs

MARK = "read me slowly"
_CODE = """
import engine.json_file

parse = engine.json_file.parse_small_json

def parse_slowly(text, *most):
    if {mark!r} in text:
        open({begun!r}, "w").close()
        open({end!r}).close()
    return parse(text, *most)

engine.json_file.parse_small_json = parse_slowly
"""


@attrs.frozen
class SlowBodies:
    """Where such a server waits. Each `begun` needs an `end`."""

    folder: Path

    @classmethod
    def of(cls, folder: Path) -> "SlowBodies":
        """Make the pipes in a folder."""
        folder.mkdir()
        slow = cls(folder)
        for pipe in (slow._begun, slow._end):
            os.mkfifo(pipe)
        code = _CODE.format(mark=MARK.encode(), begun=str(slow._begun), end=str(slow._end))
        (folder / "sitecustomize.py").write_text(code)
        return slow

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the server's process."""
        return {"PYTHONPATH": str(self.folder)}

    def begun(self) -> None:
        """Wait until a body with MARK is being parsed."""
        self._begun.read_bytes()

    def end(self) -> None:
        """Let the server parse it."""
        self._end.write_bytes(b"")

    @property
    def _begun(self) -> Path:
        return self.folder / "begun"

    @property
    def _end(self) -> Path:
        return self.folder / "end"

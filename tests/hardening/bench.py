"""What the examples of the editing machine share: a server, its engine, and the counts."""

import sys
from pathlib import Path

from hardening.editing import SETTINGS, Counts
from hardening.language_server import Broken, LanguageServer
from hardening.running_engine import Engine


class Bench:
    """The server that the examples share. A new one is started after a failure, so that a failure can be replayed."""

    def __init__(self, runtime: Path) -> None:
        self.engine = Engine(runtime)
        self.counts = Counts()
        self.told: set[str] = set()
        self._server: LanguageServer | None = None

    def server(self) -> LanguageServer:
        if self._server is None:
            self._server = LanguageServer(self.engine.runtime, SETTINGS)
        return self._server

    def renew(self) -> None:
        """End the server; the next example gets a new one."""
        if self._server is not None:
            self._server.kill()
            self._server = None

    def note(self, error: BaseException) -> None:
        """Tell a failure at once: shrinking it takes minutes."""
        if isinstance(error, Broken) and str(error) not in self.told:
            self.told.add(str(error))
            print(f"after {self.counts.operations} operations: {error}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

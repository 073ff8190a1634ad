"""Serves the page on loopback, with a token that only its address has."""

import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path

from engine.http.access import Hosts, Tokens
from engine.http.server import ServeOptions, listen, serve_app
from engine.play.app import PlayApp
from engine.play.editor import Connect, PageEditor
from engine.play.engine_link import EngineLink, Start
from engine.play.folder import Folder
from engine.play.sudoku import SudokuBoards

LOOPBACK = "127.0.0.1"


async def serve(
    folder: Path | None,
    port: int,
    connect: Callable[[Path], Connect],
    start_engine: Start,
    ready: Callable[[str], None],
) -> None:
    """Serve until a signal ends the process. `ready` is called with the page's address, the token in its fragment.

    The language server is started at once, beside the page. Its workspace is `folder`, which is a real path, else an
    empty one. Raises ModelError in one line for a port that is taken.
    """
    options = ServeOptions(host=LOOPBACK, port=port)
    listening = listen(options)
    token = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="midspan-play-") as empty, listening:
        workspace = Path(empty) if folder is None else folder
        editor = PageEditor(workspace, connect(workspace))
        named = None if folder is None else Folder(workspace)
        link, boards = EngineLink(start_engine), SudokuBoards()
        app = PlayApp(editor, link, boards, named, Tokens({"page": token}), Hosts(LOOPBACK))
        editor.begin()
        try:
            await serve_app(app, options, listening, lambda url: ready(f"{url}/play#{token}"))
        finally:
            await boards.close()
            await link.close()

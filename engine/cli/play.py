"""`midspan play`: a page in the browser that shows how a hole is filled."""

import asyncio
import logging
import sys
import webbrowser
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.console import OptionalModel, OptionalPrecision
from engine.cli.lsp_client import LspSession
from engine.client.launcher import EngineOptions
from engine.errors import ModelError
from engine.library.store import DEFAULT

if TYPE_CHECKING:
    from engine.play.editor import Connect, LanguageServer
    from engine.protocol.editor_messages import FillProgress


def play(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="A folder whose files the page may open, and whose code the fills may look up; or `sudoku`, for the "
            "page with a Sudoku first."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The page's port; 0 takes a free one.")] = 0,
    browser: Annotated[
        bool, typer.Option(help="Open the page in the browser; without it only its address is said.")
    ] = True,
    model: OptionalModel = None,
    precision: OptionalPrecision = None,
) -> None:
    """Watch a model fill holes, on a page in the browser: docs/play.md."""
    # The server's packages load only here.
    from engine.http.access import knows_users
    from engine.http.engine_links import EngineLinks
    from engine.play.app import serve
    from engine.protocol.editor_messages import FillProgress

    sudoku = folder == Path("sudoku") and not folder.is_dir()
    options = EngineOptions(model or DEFAULT, precision=precision or "auto")

    def ready(address: str) -> None:
        if sudoku:
            address = address.replace("/play#", "/play?sudoku#")
        typer.echo(f"midspan play: {address}\nCtrl+C ends it; nothing that is typed there is kept", err=True)
        # The browser's command line has the token. Where every user can read that, a connection must tell its user.
        if browser and (knows_users() or sys.platform in ("darwin", "win32")):
            asyncio.get_running_loop().run_in_executor(None, webbrowser.open, address)

    async def run() -> None:
        async with AsyncExitStack() as sessions:

            def connector(workspace: Path) -> "Connect":
                async def connect(on_progress: "Callable[[FillProgress], None]") -> "LanguageServer":
                    session = await sessions.enter_async_context(LspSession(model, precision, workspace))
                    session.rpc.listen("midspan/fillProgress", FillProgress, on_progress)
                    return session.rpc

                return connect

            named = None if folder is None or sudoku else folder.resolve()
            await serve(named, port, connector, EngineLinks(options, name="midspan-play"), ready)

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.getLogger("engine.http").addHandler(handler)
    if folder is not None and not folder.is_dir() and not sudoku:
        raise ModelError(f"{folder} is not a folder; name one whose files the page may open")
    with suppress(KeyboardInterrupt):  # how a person ends it
        asyncio.run(run())

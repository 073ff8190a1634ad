"""`midspan serve`: the engine over HTTP, for the plugins of others."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.console import BAD_INPUT, FAILED, leave
from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.cli.lsp_messages import FillOptions
from engine.cli.options import Model, Precision
from engine.client.launcher import EngineOptions
from engine.client.trusted_hosts import trust_for_now
from engine.errors import MidspanError, ModelError
from engine.library.chosen_model import DEFAULT
from engine.protocol.messages import ModelInfo


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on. Others need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8012,
    name: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="A name by which clients call this machine. Repeatable.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with a token, or a name and a token, on each line.")
    ] = None,
    workspace: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A folder to learn: fills may look up what its files say. Repeatable."),
    ] = None,
    rate: Annotated[float, typer.Option(min=0, help="Requests a second for each token; 0 for any number.")] = 100.0,
    at_once: Annotated[int, typer.Option(min=1, max=64, help="Requests at once for each token.")] = 32,
    certificate: Annotated[Path | None, typer.Option(help="A PEM file with the certificate, for HTTPS.")] = None,
    key: Annotated[Path | None, typer.Option(help="A PEM file with the certificate's key.")] = None,
    log: Annotated[bool, typer.Option("--log", help="Write a line of JSON for each request to stderr.")] = False,
    model: Model = DEFAULT,
    precision: Precision = "auto",
) -> None:
    """Serve suggestions over HTTP, as llama.cpp, OpenAI, Mistral, Ollama and Tabby do: docs/http.md."""
    # The server's packages load only here.
    from engine.cli.next_edit import NextEdits
    from engine.http.access import Limits
    from engine.http.server import ServeOptions, rules_of
    from engine.http.server import serve as run

    folders = tuple(workspace or ())
    options = ServeOptions(host, port, tuple(name or ()), token_file, folders, Limits(rate, at_once), certificate, key)
    try:
        if (certificate is None) != (key is None):
            raise ModelError("HTTPS needs both --certificate and --key; give the other one too")
        rules_of(options)
    except MidspanError as error:
        leave(error, BAD_INPUT)

    async def learn(folder: Path) -> None:
        await _learn(folder, model, precision)

    _log_to_stderr(log)
    trust_for_now(model)

    async def run_all() -> None:
        next_edits = NextEdits()
        try:
            await run(EngineOptions(model=model, precision=precision), options, _ready, learn, next_edits.find)
        finally:
            await next_edits.close()

    try:
        asyncio.run(run_all())
    except MidspanError as error:
        leave(error, FAILED)
    except KeyboardInterrupt:
        pass  # how a person ends it


async def _learn(folder: Path, model: str, precision: str) -> None:
    """Have the language server read a folder as it does for an editor: by git, without what is excluded.

    The explained fill of a document that is never written waits until all is read.
    """
    cursor = Cursor(folder / "midspan_serve.py", "", 0, 0)
    async with LspSession(model, precision, folder) as session:
        await session.open(cursor.path, cursor.text)
        await session.fill(cursor, FillOptions(explain=True))
        await session.close(cursor.path)


def _ready(url: str, model: ModelInfo) -> None:
    typer.echo(f"midspan serve: {url} answers with {model.name}; Ctrl+C ends it", err=True)


def _log_to_stderr(each_request: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.getLogger("engine.http").addHandler(handler)
    requests = logging.getLogger("midspan.access")
    requests.propagate = False
    if each_request:
        requests.addHandler(handler)
        requests.setLevel(logging.INFO)

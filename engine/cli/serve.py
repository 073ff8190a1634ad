"""`midspan serve`: the engine over HTTP, for the plugins of others."""

import asyncio
import importlib.util
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.console import Model, Precision, leave
from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.client.address import remote_host_of, resolve_model, trust_for_now
from engine.client.launcher import EngineOptions
from engine.errors import MidspanError, ModelError
from engine.library.extras import CLUSTER, how_to_install
from engine.library.store import DEFAULT, NO_MODEL, chosen_for_edits
from engine.protocol.editor_messages import FillOptions
from engine.protocol.messages import ModelInfo

if TYPE_CHECKING:
    from engine.cluster.replica_links import ReplicaLinks
    from engine.http.engine_links import EngineLinks


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
    replicas: Annotated[
        int, typer.Option(min=0, max=64, help="Engines that Ray keeps (extra `cluster`); 0 is this user's one.")
    ] = 0,
    ray: Annotated[
        str, typer.Option(metavar="ADDRESS", help="A Ray cluster to join; by default one starts here.")
    ] = "",
    threads: Annotated[int, typer.Option(min=0, help="Threads of each replica; 0 shares the cores among them.")] = 0,
    gpus: Annotated[float, typer.Option(min=0, help="GPUs of each replica, which can be a part of one.")] = 0.0,
    model: Model = DEFAULT,
    precision: Precision = "auto",
) -> None:
    """Serve suggestions over HTTP, as llama.cpp, OpenAI, Mistral, Ollama and Tabby do: docs/http.md."""
    # The server's packages load only here.
    from engine.cli.next_edit import NextEdits
    from engine.cluster.deployment import Replicas, core_of
    from engine.cluster.replica_links import ReplicaLinks
    from engine.http.access import Limits
    from engine.http.engine_links import EngineLinks, Links
    from engine.http.server import ServeOptions, rules_of
    from engine.http.server import serve as run

    folders = tuple(workspace or ())
    options = ServeOptions(host, port, tuple(name or ()), token_file, folders, Limits(rate, at_once), certificate, key)
    try:
        if (certificate is None) != (key is None):
            raise ModelError("HTTPS needs both --certificate and --key; give the other one too")
        if replicas and folders:
            raise ModelError("replicas learn no folder of this machine; editors with midspan+URL send them theirs")
        # Imported later: Ray reads the environment, with the token of its ports, as it is then.
        if replicas and importlib.util.find_spec("ray") is None:
            raise ModelError(f"--replicas needs ray; {how_to_install(CLUSTER)}")
        rules_of(options)
    except MidspanError as error:
        leave(error)

    async def learn(folder: Path) -> None:
        await _learn(folder, model, precision)

    _log_to_stderr(log)
    trust_for_now(model)

    def links_of(on_engine: Callable[[], None]) -> Links:
        if not replicas:
            return EngineLinks(EngineOptions(model=model, precision=precision), on_engine)
        core = core_of(resolve_model(model), replicas, threads, precision)
        links = ReplicaLinks(Replicas(replicas, core, ray, cpus=core.threads, gpus=gpus))
        _update_on_hangup(links)
        return links

    async def run_all() -> None:
        next_edits = NextEdits()
        try:
            await run(links_of, options, _ready, learn, next_edits.find, _edits(replicas))
        finally:
            await next_edits.close()

    with suppress(KeyboardInterrupt):  # how a person ends it
        asyncio.run(run_all())


def _edits(replicas: int) -> "EngineLinks | None":
    """Return the way to the model for edits of this machine; None without one. Its engine starts when it is asked."""
    from engine.http.engine_links import EngineLinks

    model = chosen_for_edits().model
    if replicas or model == NO_MODEL or remote_host_of(model) is not None:
        return None
    return EngineLinks(EngineOptions(model=model))


def _update_on_hangup(links: "ReplicaLinks") -> None:
    """Replace the replicas one by one at SIGHUP, as after a change of the model's files."""
    if sys.platform == "win32":
        return
    updating: set[asyncio.Task[None]] = set()

    async def update() -> None:
        try:
            await links.update()
            typer.echo("midspan serve: all replicas are replaced", err=True)
        except MidspanError as error:
            typer.echo(f"midspan serve: {error}", err=True)

    def begin() -> None:
        task = asyncio.create_task(update())
        updating.add(task)
        task.add_done_callback(updating.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, begin)


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

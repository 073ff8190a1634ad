"""`midspan engine start|status|stop`: the user's engine process."""

import asyncio
import json

import attrs
import typer

from engine.cli.console import FAILED, AsJson, Model, OptionalModelToStop, Precision, err, labelled, out
from engine.client.address import resolve_model
from engine.client.connection import EngineClient
from engine.client.launcher import EngineOptions, connect_or_start, connect_running, stop_all, stop_running
from engine.library.store import DEFAULT
from engine.protocol.messages import Status

app = typer.Typer(
    help="The engine process. The first fill starts it, so you rarely need these commands.", no_args_is_help=True
)

_CLIENT = "midspan-cli"


@app.command()
def start(model: Model = DEFAULT, precision: Precision = "auto", as_json: AsJson = False) -> None:
    """Start the engine if it is not running, and show its status."""
    options = EngineOptions(model=resolve_model(model), precision=precision)
    with err.status("starting the engine"):
        status = asyncio.run(_start(options))
    _show(status, options, as_json)


@app.command("status")
def show_status(model: Model = DEFAULT, precision: Precision = "auto", as_json: AsJson = False) -> None:
    """Show the status of the running engine. The exit status is 1 if none is running."""
    options = EngineOptions(model=resolve_model(model), precision=precision)
    status = asyncio.run(_status(options))
    _show(status, options, as_json)
    if status is None:
        raise typer.Exit(FAILED)


@app.command()
def stop(model: OptionalModelToStop = None, precision: Precision = "auto", as_json: AsJson = False) -> None:
    """End all engines of yours, or the one of a model, and wait for their end."""
    if model is None:
        stopped = asyncio.run(stop_all(_CLIENT))
    else:
        options = EngineOptions(model=resolve_model(model), precision=precision)
        stopped = [options.model] if asyncio.run(stop_running(options, _CLIENT)) else []
    if as_json:
        typer.echo(json.dumps({"running": False, "stopped": stopped}))
    elif stopped:
        out.print(f"stopped: {', '.join(f'the engine of {name}' for name in stopped)}", soft_wrap=True)
    else:
        out.print("no engine is running" + (f" for the model {model}" if model else ""))


async def _start(options: EngineOptions) -> Status:
    client = await connect_or_start(options, _CLIENT)
    return await _status_of(client)


async def _status(options: EngineOptions) -> Status | None:
    client = await connect_running(options, _CLIENT)
    return None if client is None else await _status_of(client)


async def _status_of(client: EngineClient) -> Status:
    try:
        return await client.status()
    finally:
        await client.close()


def _show(status: Status | None, options: EngineOptions, as_json: bool) -> None:
    if as_json:
        fields = {} if status is None else attrs.asdict(status)
        typer.echo(json.dumps({"running": status is not None, **fields}))
    elif status is None:
        out.print(f"no engine is running for the model {options.model}; the next fill starts one")
    else:
        out.print(labelled(_rows(status, options)))


def _rows(status: Status, options: EngineOptions) -> list[tuple[str, str]]:
    model = status.model
    if model.server:
        name, place = model.name, f"the server {model.server}"
    else:
        facts = [f"{model.parameters / 1e6:.1f}M parameters", model.licence]
        if not model.name.lower().startswith(model.family.lower()):
            facts.insert(0, model.family)
        name = f"{model.name} ({', '.join(facts)})"
        place = f"{model.device}, {model.dtype}, {status.threads} threads"
    holes = f"{status.fills} filled, {status.cancelled} cancelled, {status.active} active, {status.waiting} waiting"
    return [
        ("engine", f"{status.version}, process {status.pid}, up {status.uptime_s / 60:.1f} minutes"),
        ("model", name),
        ("runs on", place),
        ("clients", str(status.clients)),
        ("holes", holes),
        ("time", f"median {status.median_ms:.1f} ms a fill, {status.passes} passes of the network in all"),
        ("cache", f"{status.cache_hit_rate:.0%} of context tokens reused, {status.cache_bytes / 1e6:.1f} MB held"),
        ("log", str(options.paths.log)),
    ]

"""`midspan doctor`: check the installation and say what to do."""

import asyncio
import json
import os
from collections.abc import Iterator

import attrs
import typer
from rich.text import Text

from engine.cli import checks
from engine.cli.checks import Check, Verdict
from engine.cli.console import FAILED, err, out
from engine.cli.lsp_client import LspSession
from engine.cli.options import AsJson
from engine.client.address import make_private, runtime_paths_of
from engine.client.connection import EngineClient
from engine.client.launcher import EngineOptions, connect_running
from engine.errors import EngineUnavailable, MidspanError
from engine.library.chosen_model import DEFAULT, chosen_model

_STYLES: dict[Verdict, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(as_json: AsJson = False) -> None:
    """Check the installation and say how to fix it. The exit status is 1 if Midspan cannot work."""
    results = []
    with err.status("checking"):
        for check in _all_checks():
            results.append(check)
            if not as_json:
                _show(check)
    if as_json:
        healthy = all(check.verdict != "fail" for check in results)
        typer.echo(json.dumps({"healthy": healthy, "checks": [attrs.asdict(check) for check in results]}))
    if any(check.verdict == "fail" for check in results):
        raise typer.Exit(FAILED)


def _all_checks() -> Iterator[Check]:
    yield from checks.installation()
    yield model_in_use()
    yield runtime_folder()
    yield asyncio.run(language_server())
    yield asyncio.run(engine())
    yield checks.editors()


def model_in_use() -> Check:
    """Check that the chosen model is here."""
    choice = chosen_model()
    if choice.problem:
        return Check("model in use", "warn", choice.model, choice.problem)
    return Check("model in use", "ok", choice.model)


def runtime_folder() -> Check:
    """Check that this user, and nobody else, can write to the folder of socket, lock and log."""
    folder = runtime_paths_of(DEFAULT).directory
    try:
        make_private(folder)
    except EngineUnavailable as error:
        return Check("runtime folder", "fail", str(error))
    if not os.access(folder, os.W_OK | os.X_OK):
        return Check("runtime folder", "fail", f"{folder} cannot be written", f"chmod u+rwx {folder}")
    return Check("runtime folder", "ok", str(folder))


async def language_server() -> Check:
    """Check that midspan-lsp starts and answers."""
    try:
        async with LspSession() as session:
            milliseconds = session.initialize_ms
    except MidspanError as error:
        return Check("language server", "fail", str(error), "run `midspan-lsp --stdio` by hand and read its errors")
    return Check("language server", "ok", f"answers {milliseconds:.0f} ms after its start")


async def engine() -> Check:
    """Check the running engine. It is no problem if none is running."""
    try:
        client: EngineClient | None = await connect_running(EngineOptions(), "midspan-doctor")
        if client is None:
            return Check("engine", "ok", "not running; the first fill starts it")
        status, memory = await client.status(), await client.memory_status("")
        await client.close()
    except MidspanError as error:
        return Check("engine", "warn", str(error), "midspan engine stop; the next fill starts a new one")
    found = f"process {status.pid}, {status.model.name} on {status.model.device}, {status.fills} holes filled"
    return Check("engine", "ok", f"{found}; memory: {memory.readable}")


def _show(check: Check) -> None:
    style = _STYLES[check.verdict]
    out.print(Text.assemble((f"{check.verdict:<5}", style), (f"{check.name:<16}", "cyan"), check.found), soft_wrap=True)
    if check.advice:
        out.print(Text.assemble(" " * 21, ("→ " + check.advice, style)), soft_wrap=True)

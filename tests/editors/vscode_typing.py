"""What several tests of VS Code do: type until there is ghost text, and read counts."""

import asyncio
import time

from workbench import CHOICE, Workbench, eventually

from engine.client.launcher import EngineOptions, connect_running
from engine.protocol.messages import Status


def type_until_ghost(vscode: Workbench, text: str, at_least: int = 1) -> tuple[str, str]:
    """Type `text` key by key until ghost text of `at_least` characters is shown; return what was typed, and it."""
    for number in range(1, len(text) + 1):
        vscode.type(text[number - 1])
        ghost = vscode.wait_for_ghost(2.0)
        if len(ghost) >= at_least:
            return text[:number], ghost
    raise AssertionError(f"typing {text!r} has shown no ghost text")


def choose(vscode: Workbench, label: str) -> None:
    """Choose an entry of the list that has opened."""
    row = f'{CHOICE}[aria-label^="{label}"]'
    eventually(lambda: vscode.texts(row), f"the choice {label!r}")
    vscode.ask("click", selector=row)


def count(vscode: Workbench, what: str) -> int:
    """Return one of the counts that the command Show Status tells."""
    if vscode.notifications():
        vscode.command("Notifications: Clear All Notifications")
        eventually(lambda: not vscode.notifications(), "the notifications to go")
    vscode.command("Midspan: Show Status")
    (report,) = eventually(lambda: [line for line in vscode.notifications() if " shown, " in line], "the status")
    before = report.partition(f" {what}")[0]
    return int(before.rpartition(" ")[2])


def engine_fills() -> int:
    return _engine_status().fills


def engine_fills_at_rest() -> int:
    """Return `engine_fills` once the fills ahead that an earlier test set off have ended: a second brings no more."""
    before = engine_fills()

    def rests() -> bool:
        nonlocal before
        time.sleep(1.0)
        last, before = before, engine_fills()
        return before == last

    eventually(rests, "the engine at rest")
    return before


def engine_passes() -> int:
    return _engine_status().passes


def _engine_status() -> Status:
    async def ask() -> Status:
        client = await connect_running(EngineOptions(model="embedded"), "test")
        assert client is not None
        status = await client.status()
        await client.close()
        return status

    return asyncio.run(ask())

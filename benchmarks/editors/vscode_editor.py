"""Types in a real VS Code, with a clock at the key, at the language server and at the screen."""

import sys
from pathlib import Path

from benchmarks.common.sources import Span
from benchmarks.editors.keystroke import ROOT, TIMEOUT_MS, Keystroke, with_passages, write_relay

sys.path.append(str(ROOT / "tests" / "editors"))

from code_server import CodeServer, package_extension, what_is_missing
from workbench import GHOST, Workbench

# From the workbench.js of code-server 4.139.1: FeatureDebounce "InlineCompletionsDebounce" waits 50 ms before the
# request. Its editor.inlineSuggest.minShowDelay, a wait after the answer, is 0.
DEBOUNCE_MS = 50


def missing() -> str | None:
    """Return one line that says why VS Code cannot be measured here; None if it can."""
    return what_is_missing()


def type_in_vscode(spans: list[Span], model: str, folder: Path) -> list[Keystroke]:
    """Type every span in a window of its own profile; return the keys that showed ghost text.

    A key is pressed when the page receives it. Its ghost text is shown when the frame that has it is on the screen.
    """
    # Without the gate more keys show ghost text; each takes as long as with it.
    settings = {"midspan.server.path": str(write_relay(folder)), "midspan.model": model, "midspan.gate": 0}
    server = CodeServer(folder / "vscode", settings)
    workbench = None
    try:
        server.start(package_extension())
        workbench = Workbench(server)
        workbench.open_window("first.py")
        keys: list[Keystroke] = []
        for number, span in enumerate(spans):
            text = f"{span.text[: span.offset]}{{cursor}}{span.text[span.offset :]}"
            workbench.open(f"span_{number}{span.path.suffix}", text, cursor="{cursor}")
            for key in span.middle:
                seen = workbench.ask("keyToGhost", key=key, selector=GHOST, timeoutMs=TIMEOUT_MS)
                if seen["shown"] is not None:
                    keys.append(Keystroke(seen["pressed"], seen["drawn"], seen["shown"]))
            workbench.remove(f"span_{number}{span.path.suffix}")
    finally:
        if workbench is not None:
            workbench.close()
        server.stop()
    return with_passages(keys, folder)

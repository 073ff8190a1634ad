"""A VS Code window in a headless Chromium, as a user has it: keys go in, what is on the screen comes out."""

import time
from collections.abc import Callable
from pathlib import Path

from code_server import HOME, CodeServer, chromium, node
from support.browser_driver import Driver, Seen
from support.browser_driver import eventually as eventually_within

PATIENCE_S = 120.0
# What goes beyond the menu's selected entry has a class of its own.
GHOST_INLINE = ".ghost-text-decoration, .ghost-text-decoration-preview"
GHOST_LINES = ".suggest-preview-text .view-line"
GHOST = f"{GHOST_INLINE}, {GHOST_LINES}"
STATUS = '.statusbar-item[id="midspan.midspan.status"]'
ACTION = ".action-widget .monaco-list-row"
POSITION = '.statusbar-item[id="status.editor.selection"]'
NOTIFICATION = ".notification-list-item-message"
CHOICE = ".quick-input-list .monaco-list-row"
_ICONS = {
    "starting": "loading",
    "ready": "circle-filled",
    "subtle": "eye-closed",
    "snoozed": "bell-slash",
    "off": "circle-slash",
    "error": "error",
}


class Workbench(Driver):
    """One window at a time on a running CodeServer."""

    def __init__(self, server: CodeServer) -> None:
        self.server = server
        super().__init__(str(node()), Path(__file__).parent / "vscode" / "driver.mjs", HOME, chromium())

    def open_window(self, name: str) -> None:
        """Open the workspace, with an empty file of this name, in a fresh profile; wait until Midspan is ready."""
        self.open_first(name)
        self.wait_for_status("ready")

    def open_first(self, name: str) -> None:
        """Open the workspace, with an empty file of this name, in a fresh profile."""
        (self.server.folder / name).write_text("\n", "utf-8")
        self.ask("open", url=self.server.url())
        self.open_in_explorer(name)

    def open(self, name: str, text: str, cursor: str = "|") -> None:
        """Write a file of the workspace and open it; what `cursor` is in `text` is the cursor."""
        before, _, after = text.partition(cursor)
        (self.server.folder / name).write_text(before + after, "utf-8")
        self.open_in_explorer(name)
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        self.press("Control+G")
        self._type_into_box(f"{line}:{column}")
        self.press("Enter")
        at = f"Ln {line}, Col {column}"
        eventually(lambda: at in self.texts(POSITION), f"the cursor at {at}")

    def open_in_explorer(self, name: str) -> None:
        """Open a file of the workspace by a double click, and press no key."""
        row = f'.explorer-folders-view .monaco-list-row[aria-label^="{name}"]'
        eventually(lambda: self.texts(row), f"{name} in the explorer")
        tab = f'.tab.active[data-resource-name="{name}"]'
        self._again_until(lambda: self.ask("doubleClick", selector=row), lambda: bool(self.texts(tab)), f"{name} open")
        eventually(self._is_focused, "the editor focused")

    def focus_editor(self) -> None:
        """Take the keys from a preview back to the editor beside it."""
        self._again_until(lambda: self.press("Control+1"), self._is_focused, "the editor focused")

    def _is_focused(self) -> bool:
        return bool(self.texts(".editor-instance .monaco-editor.focused"))

    def type(self, text: str) -> None:
        self.ask("type", text=text, delay=30)

    def press(self, key: str) -> None:
        self.ask("press", key=key)

    def texts(self, selector: str) -> list[str]:
        """Return the texts of the elements that match and are shown, with plain spaces."""
        return [plain(text) for text in self.ask("texts", selector=selector)]

    def decorations(self) -> list[str]:
        """Return the texts that are drawn after what is in the editor, line by line."""
        return [plain(text) for text in self.ask("decorations")]

    def cursor_is_at(self, line: int) -> bool:
        return any(text.startswith(f"Ln {line}, ") for text in self.texts(POSITION))

    def texts_in_webview(self, selector: str) -> list[str]:
        """Return the texts of the elements in webviews that match and are shown."""
        return [plain(text) for text in self.ask("webviewTexts", selector=selector)]

    def choose_action(self, title: str) -> None:
        """Open the menu of code actions at the cursor, as often as it takes until it has this one, and choose it."""

        def opened() -> bool:
            # The server may not have looked at the text yet. A menu without actions closes by itself.
            self.press("Control+.")
            until_s = time.monotonic() + 1.0
            while not (rows := self.texts(f"{ACTION}.action")) and time.monotonic() < until_s:
                time.sleep(0.03)
            if rows and title not in rows:
                self.press("Escape")
            return title in rows

        eventually(opened, f"the action {title!r}")
        self.ask("click", selector=f'{ACTION}:has-text("{title}")')

    def line(self) -> str:
        """Return the first line of the file."""
        return self.texts(".editor-instance .view-lines .view-line")[0]

    def ghost(self) -> str:
        """Return the ghost text on the screen, its lines joined; empty where there is none."""
        inline, lines = "".join(self.texts(GHOST_INLINE)), self.texts(GHOST_LINES)
        return "\n".join([inline, *lines] if inline else lines)

    def menu(self) -> list[str]:
        """Return the rows of the completion menu."""
        return self.texts(".suggest-widget.visible .monaco-list-row")

    def menu_for(self, word: str) -> list[str]:
        """Type `word` where the line is empty, and ask for the completion menu; return its rows."""
        self.press("Shift+Home")
        self.type(word)
        self.press("Control+Space")
        deadline = time.monotonic() + 3.0
        while not (rows := self.menu()) and time.monotonic() < deadline:
            time.sleep(0.03)
        return rows

    def command(self, title: str) -> None:
        """Run a command from the palette."""
        self.press("F1")
        self._type_into_box(title)
        row = ".quick-input-list .monaco-list-row.focused"
        eventually(lambda: any(text.startswith(title) for text in self.texts(row)), f"the command {title}")
        self.press("Enter")

    def _type_into_box(self, text: str) -> None:
        eventually(lambda: self.texts(".quick-input-widget"), "the box")
        self.type(text)

    def saved(self, name: str) -> str:
        """Save the file and return what is on the disk."""
        dirty = f'.tab.active.dirty[data-resource-name="{name}"]'
        self._again_until(lambda: self.press("Control+S"), lambda: not self.texts(dirty), f"{name} saved")
        return (self.server.folder / name).read_text("utf-8")

    def save_all(self) -> None:
        """Save every open file."""
        command = "File: Save All"
        self._again_until(lambda: self.command(command), lambda: not self.texts(".tab.dirty"), "all files saved")

    def _again_until(self, act: Callable[[], None], look: Callable[[], bool], what: str) -> None:
        """Act until `look` is true, again every ten seconds: VS Code may lose a command after an undo of several files,
        a key while a preview changes or closes, and a click while the explorer or a message is drawn anew."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            act()
            asked = time.monotonic()
            while time.monotonic() < asked + 10:
                if look():
                    return
                time.sleep(0.03)
            assert time.monotonic() < deadline, f"waited {PATIENCE_S:.0f} s in vain for {what}"

    def close_all(self) -> None:
        """Save and close every open file."""
        self.save_all()
        self.command("View: Close All Editors")
        eventually(lambda: not self.texts(".tab"), "all files closed")

    def remove(self, name: str) -> None:
        """Close the file, which is the active one, and delete it."""
        self.saved(name)
        self.ask("click", selector=f'.tab.active[data-resource-name="{name}"] .tab-actions .action-label')
        eventually(lambda: not self.texts(f'.tab[data-resource-name="{name}"]'), f"{name} closed")
        (self.server.folder / name).unlink()

    def notifications(self) -> list[str]:
        return self.texts(NOTIFICATION)

    def press_button(self, label: str) -> None:
        """Press a button of a notification, which ends it."""
        buttons = ".notification-list-item .monaco-button"

        def is_there() -> bool:
            return label in self.texts(buttons)

        def click() -> None:
            if is_there():
                self.ask("click", selector=f'{buttons}:has-text("{label}")')

        eventually(is_there, f"the button {label}")
        self._again_until(click, lambda: not is_there(), f"the notification with {label} ended")

    def shows(self, state: str) -> bool:
        """Return whether the status item shows `state`: starting, ready, subtle, snoozed, off or error."""
        icon = _ICONS[state]
        return bool(self.ask("texts", selector=f"{STATUS} .codicon-{icon}"))

    def wait_for_status(self, state: str) -> None:
        eventually(lambda: self.shows(state), f"the status item showing {state}")

    def wait_for_ghost(self, seconds: float) -> str:
        """Return the ghost text as soon as there is some; empty when none comes within `seconds`."""
        deadline = time.monotonic() + seconds
        while not (ghost := self.ghost()) and time.monotonic() < deadline:
            time.sleep(0.03)
        return ghost

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.ask("screenshot", path=str(path))

    def keep(self, path: Path) -> None:
        """Keep what a failure is understood from: a picture of the window, and a text of what it does not show."""
        self.screenshot(path.with_suffix(".png"))
        label = self.ask("attribute", selector=STATUS, name="aria-label")
        seen = [f"status: {label}", *self.notifications(), self.server.log.read_text("utf-8", "replace")]
        path.with_suffix(".txt").write_text("\n".join(seen), "utf-8")


def eventually(look: Callable[[], Seen], what: str) -> Seen:
    """Return what `look` returns as soon as that is true; fails naming `what` when it does not come."""
    return eventually_within(look, what, PATIENCE_S)


def plain(text: str) -> str:
    """Monaco draws spaces as no-break spaces, and marks some of them by a middle dot."""
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{MIDDLE DOT}", " ")

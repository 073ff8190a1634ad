"""What the person of net_time.py types in: paper, paper with word completion, and a real Neovim with our plugin."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.editors.minutes_neovim import NeovimFile
from benchmarks.editors.minutes_pieces import Piece
from benchmarks.editors.minutes_typing import check
from benchmarks.editors.neovim_editor import Neovim
from benchmarks.editors.net_time_person import PART, Part, Seen
from benchmarks.quality.prices import Recorded
from benchmarks.quality.typing_tasks import TypingTask
from benchmarks.quality.typists import WordCompletion
from engine.protocol.confidence import Price
from engine.protocol.messages import Filled, ModelInfo
from lsp_server.settings import Settings

KEYMAPS = {"accept": "<Tab>", "accept_line": "<C-l>", "accept_word": "<C-f>", "dismiss": "<C-e>"}
_TAKE: dict[Part, str] = {"all": "<Tab>", "line": "<C-l>", "word": "<C-f>"}
_POLL_S = 0.01
_STATE = "return { current_moment(), answered_moment == current_moment() }"


class Paper:
    """No tool: nothing is ever shown."""

    def __init__(self) -> None:
        self._task = TypingTask("", "", "", "", "")
        self._written = ""

    def start(self, task: TypingTask) -> None:
        """Take an empty sheet."""
        self._task, self._written = task, ""

    def press(self, key: str) -> None:
        """Type a key."""
        self._written += key

    def erase(self) -> None:
        """Erase a character."""
        self._written = self._written[:-1]

    def take(self, part: Part) -> None:
        """Take nothing: there is nothing."""

    def dismiss(self) -> None:
        """Dismiss nothing."""

    def move(self, lines: int) -> None:
        """Look elsewhere: what is written there is not changed."""

    def look(self, seconds: float) -> Seen:
        """Return that nothing is shown."""
        return Seen()

    def written(self) -> str:
        """Return what is written."""
        return self._written

    def end(self) -> None:
        """Raise RuntimeError if it is not the task."""
        if self._written != self._task.text:
            raise RuntimeError(f"{self._task.path} is not what was typed:\n{self._written}")


class Words(Paper):
    """Word completion as benchmarks/quality has it, shown at once, with a key that takes the word."""

    def look(self, seconds: float) -> Seen:
        """Return the rest of the word."""
        if not self._task.text.startswith(self._written):
            return Seen()
        return Seen(asyncio.run(WordCompletion(self._task)(len(self._written))).text)

    def take(self, part: Part) -> None:
        """Take the word."""
        self._written += self.look(0).text

    def move(self, lines: int) -> None:
        """Look elsewhere, where nobody types a word."""


class Replayed(Paper):
    """The language server's plan, gate and restraint without an editor, with fills that prices.py recorded.

    Nothing comes too late, and nothing is shown beside a typo. `fills`: of one task, by the characters typed.
    """

    def __init__(self, gate: Price, model: ModelInfo, tasks: Sequence[tuple[TypingTask, dict[int, Filled]]]) -> None:
        super().__init__()
        self._settings, self._model = Settings(gate=gate), model
        self._fills = dict(tasks)
        self._shown: tuple[int, str] = (-1, "")
        self._suggest: Recorded | None = None

    def start(self, task: TypingTask) -> None:
        """Open the file."""
        super().start(task)
        self._shown = (-1, "")
        self._suggest = Recorded(self._fills[task], self._model, task, self._settings)

    def look(self, seconds: float) -> Seen:
        """Return the ghost text."""
        typed = len(self._written)
        if self._suggest is None or not typed < len(self._task.text) or not self._task.text.startswith(self._written):
            return Seen()
        if self._shown[0] != typed:
            self._shown = (typed, asyncio.run(self._asked(self._suggest, typed)))
        return Seen(self._shown[1])

    def take(self, part: Part) -> None:
        """Take so much of the ghost text."""
        taken = PART[part].match(self._shown[1])
        self._written += taken[0] if taken else ""

    @staticmethod
    async def _asked(suggest: Recorded, typed: int) -> str:
        return (await suggest(typed)).text


class InNeovim(NeovimFile):
    """A file in Neovim with our plugin. Requests and answers are real.

    A pause ends as soon as the answer is there, so that nobody waits for a person who reads. Until then it is `slower`
    times as long as the person's.
    """

    def __init__(self, opened: Neovim, project: Path, slower: float = 1.0) -> None:
        super().__init__(opened, project)
        self._slower = slower
        self._before = ""
        self._piece = Piece("", "", "", "", "")

    def learn(self) -> None:
        """Wait until the workspace is learned, as it is once somebody types in it."""
        self._nvim.input("i")
        self._neovim.eventually(lambda: self._neovim.report()["memory"], "the workspace is not learned")

    def start(self, task: TypingTask) -> None:
        """Open the file without the task's text, in insert mode at its place."""
        self._piece = Piece(task.path, "", task.above, task.text, task.below)
        self.open(self._piece)
        self._before = ""

    def press(self, key: str) -> float:
        """Type a key."""
        self._note()
        return super().press(key)

    def erase(self) -> None:
        """Press backspace."""
        self._do("<BS>")

    def take(self, part: Part) -> None:
        """Press the key that takes so much."""
        self._do(_TAKE[part])

    def dismiss(self) -> None:
        """Press the key that dismisses."""
        self._press("<C-e>")

    def move(self, lines: int) -> None:
        """Press an arrow key so often."""
        self._do(("<Down>" if lines > 0 else "<Up>") * abs(lines))

    def look(self, seconds: float) -> Seen:
        """Return the ghost text."""
        until = time.monotonic() + self._slower * seconds
        while not (answered := self._answered()) and time.monotonic() < until:
            time.sleep(_POLL_S)
        if answered:
            self._before = ""
        return Seen(self._neovim.ghost() or "", not answered)

    def written(self) -> str:
        """Return the text between the place and the cursor."""
        return self._neovim.around_cursor()[0][len(self._piece.before) :]

    def end(self) -> None:
        """Save the file, with which it is as its author wrote it."""
        check(self._piece, self.text())

    def _answered(self) -> bool:
        """Return whether Neovim has done the last key, and what was asked after it is answered."""
        moment, answered = self._neovim.lua(_STATE)
        return bool(answered) and moment != self._before

    def _note(self) -> None:
        self._before = str(self._neovim.lua(_STATE)[0])

    def _do(self, keys: str) -> None:
        self._note()
        self._press(keys)

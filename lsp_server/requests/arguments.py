"""What a call gets for the parameters that are new: each is a hole, and the model that fills code fills it."""

import logging
import re
from collections.abc import Awaitable, Callable, Sequence

import attrs

from engine.protocol.confidence import FREE
from engine.protocol.messages import Candidate, Fill
from lsp_server.documents.store import Snapshot
from lsp_server.languages.language import Language, balance
from lsp_server.refactor.signatures import CallPlace
from lsp_server.session import Session
from lsp_server.suggest.pipeline import Plan
from lsp_server.suggest.rewritten import JudgedEdit, likely, worse

_logger = logging.getLogger(__name__)
_BUDGET_MS = 10_000.0
_MAX_TOKENS = 24
_ENDS = frozenset(",;)]}\n")
_NEXT_LABEL = re.compile(r"(,|(?<!\s))\s*(\b\w+(=|: ))?$")
"""What is before an argument: it is not there yet while the one before it is filled."""

Ask = Callable[[Snapshot, int], Awaitable[Candidate | None]]
"""Fills the hole at an offset of a text; None without a model."""


@attrs.frozen
class ArgumentPrice:
    """How likely an argument must be, as a geometric mean over its tokens.

    bound: that of the variable which has the parameter's name, where one is known at the call. See docs/next-edit.md.
    """

    mean: float = 0.95
    bound: float = 0.4


class Arguments:
    """Asks the model that fills for the arguments of calls."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def edit(self, snapshot: Snapshot, call: CallPlace) -> JudgedEdit | None:
        """Return the edit of a call, with the reason if it is not offered; None without a model.

        A call that only loses arguments needs none, and one in another file than its function a model that may read
        both. To cancel it cancels the engine.
        """
        client = self._session.link.connected
        if (
            call.parameters
            and call.head
            and (client is None or not self._session.may_read_others(client.welcome.model))
        ):
            return None
        edit = await argument_edit(snapshot, call, ArgumentPrice(), self._filled)
        if edit is not None:
            _logger.debug("an argument: %s", edit.reason or "offered")
        return edit

    async def _filled(self, opened: Snapshot, at: int) -> Candidate | None:
        """Return the model's text for an argument. It starts no engine: typing does that."""
        # Whoever made the edit may have switched suggestions off since.
        is_wanted = self._session.is_automatic and self._session.configuration.is_on(opened.language.id)
        client = self._session.link.connected if is_wanted else None
        if client is None:
            return None
        settings = attrs.evolve(self._session.configuration.settings, gate=FREE)
        plan = self._session.plan_unasked(opened, at, client.welcome.model, settings)
        filled = await self._session.link.fill(client, fill_of(plan))
        return filled.candidates[0]


def fill_of(plan: Plan) -> Fill:
    """Return the request for an argument: nobody waits for it."""
    return attrs.evolve(plan.fill, extent="line", max_tokens=_MAX_TOKENS, budget_ms=_BUDGET_MS, ahead=True)


async def argument_edit(snapshot: Snapshot, call: CallPlace, price: ArgumentPrice, ask: Ask) -> JudgedEdit | None:
    """Return the edit that gives a call its arguments, with the reason if it is not offered; None without a model.

    The holes are filled one after the other. One that is not sure enough ends it.
    """
    place, written, reason = call.place, list[str](), ""
    mean = least = 1.0
    for parameter, is_bound in zip(call.parameters, place.bound, strict=True):
        answer = await ask(*_opened_at(snapshot, call, written))
        if answer is None:
            return None
        text = leading_argument(answer, snapshot.language)
        start = answer.text.find(text)
        sure, lowest = likely(answer, start, start + len(text)) if text else (0.0, 0.0)
        mean, least = min(mean, sure), min(least, lowest)
        if text == parameter and not is_bound:
            reason = "unknown name"
        elif not text or sure < (price.bound if text == parameter else price.mean):
            reason = "unsure"
        if reason:
            return JudgedEdit(place.start, place.end, "", reason, mean, least)
        written.append(text)
    edit = JudgedEdit(place.start, place.end, place.written(written), "", mean, least)
    return attrs.evolve(edit, reason=worse(snapshot, edit))


def _opened_at(snapshot: Snapshot, call: CallPlace, written: Sequence[str]) -> tuple[Snapshot, int]:
    """Return the text with a hole in the place of the argument after those that are written, and its offset.

    What is called in another file is a comment above: without it the model cannot know what the new parameter is.
    """
    place, count = call.place, len(written)
    before = place.pieces[0] + "".join(map("".join, zip(written, place.pieces[1:], strict=False)))
    after = place.pieces[count + 1]
    if count + 2 < len(place.pieces):
        after = _NEXT_LABEL.sub("", after) + place.pieces[-1]
    opened, at = snapshot.replaced(place.start, place.end, before + after), place.start + len(before)
    marks = snapshot.language.line_comments
    if not (call.head and marks):
        return opened, at
    comment, above = f"{marks[0]} {call.head}\n", _start_of_code_around(snapshot, place.start)
    return opened.replaced(above, above, comment), at + len(comment)


def _start_of_code_around(snapshot: Snapshot, offset: int) -> int:
    """Return where the line begins on which the outermost code around an offset begins."""
    byte = snapshot.source.byte_at(offset)
    outermost = snapshot.nodes_around(byte, byte)[-2:-1]
    start = snapshot.source.offset_of_byte(outermost[0].start_byte) if outermost else offset
    return snapshot.text.rfind("\n", 0, start) + 1


def leading_argument(answer: Candidate, language: Language) -> str:
    """Return the start of a fill that is one argument; "" if the fill ended inside of it."""
    text = answer.text
    for end, char in enumerate(text):
        if char in _ENDS:
            before = balance(text[:end], language)
            if not before.opened and not before.quote:
                return text[:end].strip()
    return text.strip() if answer.finish == "complete" else ""

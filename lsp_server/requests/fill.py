"""The request midspan/fill, which fills a hole on demand."""

from collections.abc import Callable
from typing import get_args

import attrs
from pygls.exceptions import JsonRpcContentModified, JsonRpcException, JsonRpcInvalidParams

from engine.errors import MidspanError
from engine.protocol.confidence import FREE, first_line_confidence
from engine.protocol.editor_messages import FillParams, FillProgress, FillResult, FillTrace, HoleCut, Verdict
from engine.protocol.lsp_messages import Position, Range
from engine.protocol.messages import Filled, Progress, RuleName
from lsp_server.documents.source import normalize_newlines
from lsp_server.documents.store import Snapshot, offset_in, position_in
from lsp_server.protocol import refusal
from lsp_server.session import PARSE_PATIENCE_S, Session
from lsp_server.suggest.pipeline import Plan, present, weigh
from lsp_server.suggest.silence import Silence

_LEAST_WORTH = -99.0
"""Keys. A text below the setting's least probability is worth minus infinity, which JSON cannot say."""


def judge(plan: Plan, filled: Filled) -> Verdict:
    """Return what `plan.settings` would show of the first candidate, and why."""
    candidate = filled.candidates[0]
    weighed = weigh(candidate, plan)
    shown = weighed.shown
    return Verdict(
        written=candidate.text,
        shaped=weighed.shaped,
        shown=shown.text if shown is not None else "",
        is_start=shown is not None and shown.is_start,
        confidence=weighed.confidence,
        needed=weighed.needed,
        worth=max(_LEAST_WORTH, weighed.worth),
    )


async def fill_request(session: Session, params: FillParams, send: Callable[[FillProgress], None]) -> FillResult:
    """Fill the hole, waiting for the engine to start. The text is shaped, and no gate hides it.

    Raises JsonRpcException with one line when the document is not open or is excluded, the rule does not exist, the
    engine is not available, or the text changed meanwhile.
    """
    uri = params.text_document.uri
    snapshot = await _open_snapshot(session, uri)
    rule = _rule(params.rule)
    try:
        client = await session.link.client()
    except MidspanError as error:
        raise refusal(str(error)) from None
    # The editor may have told its settings only meanwhile.
    _check(session, snapshot)
    offset = offset_in(snapshot.source, params.position, session.encoding)
    # The user asked for this fill: a gate of 0 neither ends it early nor hides any of it.
    settings = attrs.evolve(session.configuration.settings, gate=FREE)
    plan = _with_params(session.plan(snapshot, offset, client.welcome.model, settings), params, rule)

    if params.explain:
        await session.memory.wait_until_read(snapshot.path)

    def on_progress(progress: Progress) -> None:
        if params.progress_token is not None:
            token = params.progress_token
            send(FillProgress(token, progress.step, progress.canvas, progress.cells, progress.ms))

    try:
        filled = await session.link.fill(client, plan.fill, on_progress)
    except MidspanError as error:
        raise refusal(str(error)) from None
    if not session.documents.is_current(snapshot):
        raise _changed(uri)
    candidate, presented = filled.candidates[0], present(plan, filled)
    at = position_in(snapshot.source, offset, session.encoding)
    cursor = Position(at.line, at.character)
    return FillResult(
        text=presented[0].text if presented else "",
        tokens=candidate.tokens,
        steps=filled.steps,
        finish=candidate.finish,
        confidence=presented[0].confidence if presented else first_line_confidence(candidate, ""),
        rule=filled.rule,
        context_tokens=filled.context_tokens,
        cached_tokens=filled.cached_tokens,
        ms=filled.ms,
        model=client.welcome.model.name,
        range=Range(cursor, cursor),
        source=candidate.source,
        origins=presented[0].origins if presented else [],
        trace=_trace(session, plan, filled) if params.trace else None,
        chosen_from=filled.chosen_from,
        silence=_silence(attrs.evolve(plan, settings=session.configuration.settings), filled) if params.explain else "",
    )


def _silence(plan: Plan, filled: Filled) -> str:
    """Return why nothing of an answer is shown to a user who types, "" if something is."""
    return "" if present(plan, filled) else Silence("answered", plan=plan, filled=filled).line


def _trace(session: Session, plan: Plan, filled: Filled) -> FillTrace:
    """Return how the hole was cut, and what an editor with the user's own settings would show."""
    hole, snapshot = plan.hole, plan.snapshot
    hidden = 0 if hole.suffix.startswith(normalize_newlines(hole.line_after)) else len(hole.line_after)
    first = max(0, hole.offset - len(hole.prefix))
    last = min(len(snapshot.text), hole.offset + hidden + len(hole.suffix))
    positions = (position_in(snapshot.source, offset, session.encoding) for offset in (first, last))
    read = Range(*(Position(position.line, position.character) for position in positions))
    settings = session.configuration.settings
    return FillTrace(
        HoleCut(read, hidden, hole.extent, hole.cursor_context), judge(attrs.evolve(plan, settings=settings), filled)
    )


async def _open_snapshot(session: Session, uri: str) -> Snapshot:
    asked = session.documents.find(uri)
    await session.settle(uri, PARSE_PATIENCE_S)
    snapshot = session.documents.snapshot(uri)
    if asked is not None and not session.documents.is_current(asked):
        raise _changed(uri)
    if snapshot is None:
        if (reason := session.why_unfit(uri)) is not None:
            raise _left_alone(uri, reason)
        raise JsonRpcInvalidParams(f"{uri} is not open; send textDocument/didOpen first")
    _check(session, snapshot)
    return snapshot


def _check(session: Session, snapshot: Snapshot) -> None:
    if (reason := session.why_excluded(snapshot)) is not None:
        raise _left_alone(snapshot.uri, reason)


def _changed(uri: str) -> JsonRpcContentModified:
    return JsonRpcContentModified(f"{uri} changed while its hole was filled; ask again")


def _left_alone(uri: str, reason: str) -> JsonRpcException:
    return refusal(f"{uri} is left alone: the file {reason}")


def _with_params(plan: Plan, params: FillParams, rule: RuleName | None) -> Plan:
    fill = attrs.evolve(
        plan.fill,
        rule=rule or plan.fill.rule,
        steps=plan.fill.steps if params.steps is None else params.steps,
        # A trace says what an editor would show while somebody types, which is one text. Else the engine chooses.
        choose_from=plan.fill.choose_from if params.trace else 0,
        budget_ms=params.budget_ms or plan.fill.budget_ms,
        progress=params.progress_token is not None,
        explain=params.explain or params.trace,
        trace=params.trace,
    )
    return attrs.evolve(plan, fill=fill)


def _rule(name: str | None) -> RuleName | None:
    for rule in get_args(RuleName):
        if name == rule:
            return rule  # type: ignore[no-any-return]
    if name is not None:
        raise JsonRpcInvalidParams(f"no rule is called {name!r}; there are {', '.join(get_args(RuleName))}")
    return None

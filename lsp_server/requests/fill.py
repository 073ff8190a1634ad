"""The request midspan/fill: fill one hole on demand, and return all that the engine says about it."""

from collections.abc import Callable
from typing import get_args

import attrs
from pygls.exceptions import JsonRpcContentModified, JsonRpcException, JsonRpcInvalidParams

from engine.errors import MidspanError
from engine.protocol.confidence import first_line_confidence
from engine.protocol.editor_messages import (
    FillParams,
    FillProgress,
    FillResult,
    FillTrace,
    HoleCut,
    Position,
    Range,
    Verdict,
)
from engine.protocol.messages import Filled, Progress, RuleName
from engine.protocol.price import FREE
from lsp_server.documents.source import normalize_newlines
from lsp_server.documents.store import Snapshot, offset_in, position_in
from lsp_server.protocol import refusal
from lsp_server.session import PARSE_PATIENCE_S, Session
from lsp_server.suggest.gate import gated
from lsp_server.suggest.pipeline import Plan, present
from lsp_server.suggest.shape import shape

_LEAST_WORTH = -99.0
"""Keys. A text below the setting's least probability is worth minus infinity, which JSON cannot say."""


def judge(plan: Plan, filled: Filled) -> Verdict:
    """Return what `plan.settings` would show of the first candidate, and why."""
    candidate, price = filled.candidates[0], plan.settings.gate
    shaped = shape(candidate.text, plan.hole, plan.snapshot, plan.settings.max_lines) or ""
    presented = gated(candidate, shaped, plan.hole, plan.snapshot.language, plan.settings) if shaped else None
    judged = presented.text if presented is not None else shaped
    confidence = presented.confidence if presented is not None else first_line_confidence(candidate, shaped)
    characters = len(judged.strip().partition("\n")[0].rstrip())
    return Verdict(
        written=candidate.text,
        shaped=shaped,
        shown=presented.text if presented is not None else "",
        is_start=presented is not None and presented.is_start,
        confidence=confidence,
        needed=price.least_probability(characters),
        worth=max(_LEAST_WORTH, price.worth(confidence, characters)),
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
    )


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

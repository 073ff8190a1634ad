"""The request midspan/fill: one hole filled because somebody asked, with all that the engine has to tell about it."""

from collections.abc import Callable
from typing import get_args

import attrs
from lsprotocol import types
from pygls.exceptions import JsonRpcContentModified, JsonRpcException, JsonRpcInvalidParams

from engine.errors import MidspanError
from engine.protocol.messages import Progress, RuleName
from lsp_server.documents.store import offset_at, position_at
from lsp_server.messages import FillParams, FillProgress, FillResult
from lsp_server.requests.session import Session
from lsp_server.suggest.gate import confidence_of
from lsp_server.suggest.shape import shape


async def fill_request(session: Session, params: FillParams, send: Callable[[FillProgress], None]) -> FillResult:
    """Fill the hole, waiting for the engine to start; the text is shaped, the gate is not asked.

    Raises JsonRpcException with one line: a document that is not open or is excluded, a rule that does not exist, an
    engine that cannot be had, a text that changed meanwhile.
    """
    uri = params.text_document.uri
    snapshot = session.documents.snapshot(uri)
    why = session.why_unfit(uri) if snapshot is None else session.why_excluded(snapshot)
    if why is not None:
        raise _refusal(f"{uri} is left alone: the file {why}")
    if snapshot is None:
        raise JsonRpcInvalidParams(f"{uri} is not open; send textDocument/didOpen first")
    rule = _rule(params.rule)
    try:
        client = await session.link.client()
    except MidspanError as error:
        raise _refusal(str(error)) from None
    offset = offset_at(snapshot, params.position, session.encoding)
    hole = session.cut(snapshot, offset, client.welcome.model)
    fill = session.plan_fill(snapshot, hole, client.welcome.model)
    token = params.progress_token
    fill = attrs.evolve(
        fill,
        rule=rule or fill.rule,
        steps=fill.steps if params.steps is None else params.steps,
        budget_ms=params.budget_ms or fill.budget_ms,
        progress=token is not None,
    )

    def on_progress(progress: Progress) -> None:
        if token is not None:
            send(FillProgress(token, progress.step, progress.canvas))

    try:
        filled = await session.link.fill(client, fill, on_progress)
    except MidspanError as error:
        raise _refusal(str(error)) from None
    current = session.documents.snapshot(uri)
    if current is None or current.version != snapshot.version:
        raise JsonRpcContentModified(f"{uri} changed while its hole was filled; ask again")
    candidate = filled.candidates[0]
    text = shape(candidate.text, hole, snapshot, session.configuration.settings.max_lines) or ""
    cursor = position_at(snapshot, offset, session.encoding)
    return FillResult(
        text=text,
        tokens=candidate.tokens,
        steps=filled.steps,
        finish=candidate.finish,
        confidence=confidence_of(candidate, text),
        rule=filled.rule,
        context_tokens=filled.context_tokens,
        cached_tokens=filled.cached_tokens,
        ms=filled.ms,
        model=client.welcome.model.name,
        range=types.Range(cursor, cursor),
    )


def _rule(name: str | None) -> RuleName | None:
    for known in get_args(RuleName):
        if name == known:
            return known  # type: ignore[no-any-return]
    if name is not None:
        raise JsonRpcInvalidParams(f"no rule is called {name!r}; there are {', '.join(get_args(RuleName))}")
    return None


def _refusal(message: str) -> JsonRpcException:
    return JsonRpcException(message, code=types.LSPErrorCodes.RequestFailed.value)

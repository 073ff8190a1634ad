"""The page and what it asks for, served on loopback with a token that only the page's address has.

The page's own files need no token; everything else does.
"""

import asyncio
import secrets
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import attrs
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from engine import __version__
from engine.bounds import LONGEST_NAME, LONGEST_PATH, MOST_NAMES, MOST_PAGE_BYTES
from engine.http.access import Hosts, Tokens, check_user
from engine.http.body import in_thread, json_object, read_body
from engine.http.connection import ClientGone, Problem, problem_of
from engine.http.engine_links import EngineLinks
from engine.http.exchange import to_json
from engine.http.server import ServeOptions, listen, serve_app
from engine.play.editor import Connect, PageCursor, PageEditor, Traced
from engine.play.engine_link import EngineLink
from engine.play.folder import Folder
from engine.play.sudoku import SudokuBoards
from engine.protocol.lsp_messages import Command
from engine.protocol.messages import RuleName

PAGE = Path(__file__).parent / "page"
_COMPRESSED = ".gz"
"""A file that is sent as it is: each browser can read it."""
_FILES = {"": "index.html", "/page.js": "page.js.gz", "/page.css": "page.css"}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
_HEADERS = {
    # Nothing comes from elsewhere, and nothing goes there. The editor writes its style into the page.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}

_Answerer = Callable[[Mapping[str, Any]], Awaitable[object]]


class PlayApp:
    """An ASGI application: the page at /play, and its questions below /play/api."""

    def __init__(
        self,
        editor: PageEditor,
        link: EngineLink,
        boards: SudokuBoards,
        folder: Folder | None,
        tokens: Tokens,
        hosts: Hosts,
    ) -> None:
        self._editor, self._link, self._boards = editor, link, boards
        self._folder, self._tokens, self._hosts = folder, tokens, hosts
        answers: dict[str, _Answerer] = {
            "hello": self._hello,
            "files": self._files,
            "read": self._read,
            "suggest": self._suggest,
            "trace": self._trace,
            "accepted": self._accepted,
            "engine": self._engine,
            "leave": self._leave,
            "heat": self._heat,
            "puzzles": self._puzzles,
            "sudoku": self._sudoku,
        }
        routes = [Route(f"/play{path}", _page_file(PAGE / name), methods=["GET"]) for path, name in _FILES.items()]
        routes += [
            Route(f"/play/api/{name}", self._question(answer), methods=["POST"]) for name, answer in answers.items()
        ]
        self._starlette = Starlette(routes=routes, exception_handlers={HTTPException: _not_here})
        self._starlette.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. One of another site's page, another user's, and one without the token get an empty 403."""
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        try:
            self._hosts.check(headers)
            if scope["path"] not in {f"/play{path}" for path in _FILES}:
                self._tokens.owner_of(headers)
                await in_thread(check_user, scope["client"], scope["server"])
        except Problem:
            await Response(status_code=403)(scope, receive, send)
            return
        with suppress(ClientGone):  # nobody reads an answer
            await self._starlette(scope, receive, send)

    def _question(self, answer: _Answerer) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            try:
                fields = await in_thread(json_object, await read_body(request.scope, request.receive))
                value, status = await answer(fields), 200
            except ClientGone:
                raise
            except Exception as error:
                problem = problem_of(error)
                value, status = {"problem": str(problem)}, problem.status
            return Response(to_json(value), status, _HEADERS, "application/json")

        return respond

    async def _hello(self, fields: Mapping[str, Any]) -> object:
        folder = None if self._folder is None else self._folder.path.name or str(self._folder.path)
        return {"version": __version__, "folder": folder}

    async def _files(self, fields: Mapping[str, Any]) -> object:
        return await in_thread(self._named.files)

    async def _read(self, fields: Mapping[str, Any]) -> object:
        return {"text": await in_thread(self._named.read, _name(fields, "path"))}

    @property
    def _named(self) -> Folder:
        if self._folder is None:
            raise Problem(404, "no folder was named; start it as `midspan play FOLDER` to open files")
        return self._folder

    async def _suggest(self, fields: Mapping[str, Any]) -> object:
        ghost = await self._editor.suggest(_place(fields))
        return {"text": ghost.text, "tag": None if ghost.tag is None else ghost.tag.arguments[:1]}

    async def _trace(self, fields: Mapping[str, Any]) -> object:
        rule = fields.get("rule")
        if rule is not None and rule not in get_args(RuleName):
            raise Problem(400, "no such rule; reload the page")
        return _trace_fields(await self._editor.trace(_place(fields), rule))

    async def _accepted(self, fields: Mapping[str, Any]) -> object:
        tag = fields.get("tag")
        if tag is None:  # a ghost that was made of an older one has none
            return {}
        if not isinstance(tag, list) or len(tag) != 1 or not _is_tag(tag[0]):
            raise Problem(400, "`tag` is none that a ghost had; reload the page")
        await self._editor.accepted(Command("", tag))
        return {}

    async def _engine(self, fields: Mapping[str, Any]) -> object:
        report = await self._editor.status()
        known = await self._link.memories() if report.engine is not None else []
        names = {str(self._folder.path): self._folder.path.name} if self._folder is not None else {}
        memories = [
            {"name": names.get(each.workspace) or Path(each.workspace).name, "memory": each.readable} for each in known
        ]
        return {**attrs.asdict(report), "workspaces": memories}

    async def _heat(self, fields: Mapping[str, Any]) -> object:
        place = _place(fields)
        return {"tokens": await self._link.heat(place.text, place.path, place.at)}

    async def _puzzles(self, fields: Mapping[str, Any]) -> object:
        return {"puzzles": await asyncio.to_thread(self._boards.puzzles)}

    async def _sudoku(self, fields: Mapping[str, Any]) -> object:
        return await self._boards.fill(_string(fields, "puzzle"), _string(fields, "way"))

    async def _leave(self, fields: Mapping[str, Any]) -> object:
        await self._editor.leave(_name(fields, "page"))
        return {}


def _trace_fields(traced: Traced) -> object:
    answer = traced.answer
    return {
        **{name: value for name, value in attrs.asdict(answer).items() if name not in ("trace", "range")},
        "verdict": traced.trace.verdict,
        "hole": {
            "read": traced.read,
            "hidden": traced.hidden,
            "extent": traced.trace.hole.extent,
            "context": traced.trace.hole.cursor_context,
        },
        "passes": [{"step": step.step, "ms": step.ms, "cells": step.cells} for step in traced.steps],
    }


def _place(fields: Mapping[str, Any]) -> PageCursor:
    """Return the cursor of a question. Raises Problem for a text that is too long."""
    text, at, edit = _string(fields, "text"), _count(fields, "at"), _count(fields, "edit")
    if len(text) > MOST_PAGE_BYTES:
        raise Problem(413, "the text has more than 1 MB; take a part of it")
    if "\0" in text:
        raise Problem(415, "the text is binary: it has NUL bytes; paste text")
    return PageCursor(_name(fields, "page"), _name(fields, "path"), text, at, edit)


def _count(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Problem(400, f"`{name}` is not a number from 0; reload the page")
    return value


def _string(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise Problem(400, f"`{name}` is missing; reload the page")
    return value.encode("utf-8", "replace").decode()


def _name(fields: Mapping[str, Any], name: str) -> str:
    value = _string(fields, name)
    if len(value) > LONGEST_PATH:
        raise Problem(400, f"`{name}` has {len(value)} characters; at most {LONGEST_PATH} are allowed")
    return value


def _is_tag(value: object) -> bool:
    """Return whether a value may be an offer's tag: a few names with small numbers and words."""
    return (
        isinstance(value, dict)
        and len(value) <= MOST_NAMES
        and all(
            isinstance(each, str | int) and len(str(each)) <= LONGEST_NAME for pair in value.items() for each in pair
        )
    )


def _page_file(path: Path) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        try:
            content = await asyncio.to_thread(path.read_bytes)
        except OSError:
            return Response("the page is not here; `make play-page` builds it", 404, _HEADERS, "text/plain")
        headers = {**_HEADERS, "content-type": _TYPES[Path(path.name.removesuffix(_COMPRESSED)).suffix]}
        if path.suffix == _COMPRESSED:
            headers["content-encoding"] = "gzip"
        return Response(content, 200, headers)

    return respond


async def _not_here(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Response(to_json({"problem": "nothing is here; the page is at /play"}), error.status_code, _HEADERS)


LOOPBACK = "127.0.0.1"


async def serve(
    folder: Path | None,
    port: int,
    connect: Callable[[Path], Connect],
    links: EngineLinks,
    ready: Callable[[str], None],
) -> None:
    """Serve until a signal ends the process. `ready` is called with the page's address, the token in its fragment.

    The language server is started at once, beside the page. Its workspace is `folder`, which is a real path, else an
    empty one. Raises ModelError in one line for a port that is taken.
    """
    options = ServeOptions(host=LOOPBACK, port=port)
    listening = listen(options)
    token = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="midspan-play-") as empty, listening:
        workspace = Path(empty) if folder is None else folder
        editor = PageEditor(workspace, connect(workspace))
        named = None if folder is None else Folder(workspace)
        boards = SudokuBoards()
        app = PlayApp(editor, EngineLink(links), boards, named, Tokens({"page": token}), Hosts(LOOPBACK))
        editor.begin()
        try:
            await serve_app(app, options, listening, lambda url: ready(f"{url}/play#{token}"))
        finally:
            await boards.close()
            await links.close()

"""What an answer of the server must be: a list, at the place that was asked for, and an error of one line."""

from typing import Any

import attrs

from hardening.edited_text import EditedText, Position
from hardening.language_server import Answer, Broken

_CANCELLED = {-32800, -32801, -32802}
_REFUSED = -32803
_NOT_OPEN = -32602


@attrs.define
class Asked:
    """A request without an answer yet, and the text that it was asked for. `closed`: its document was closed since."""

    number: int
    method: str
    uri: str
    content: EditedText
    position: Position
    closed: bool = False
    edited: int = 0
    """The number of a request that was sent after an edit of this text."""


def items_of(answer: Answer) -> list[dict[str, Any]]:
    if answer.error is not None:
        raise Broken(f"an inline completion was answered with an error: {answer.error}")
    if answer.result is None or not isinstance(answer.result["items"], list):
        raise Broken(f"an answer was no list: {answer.result!r}")
    return list(answer.result["items"])


def check_item(asked: Asked, item: dict[str, Any]) -> None:
    if not item["insertText"]:
        raise Broken("an item without text")
    check_range(asked, item["range"])


def check_range(asked: Asked, found: dict[str, Any]) -> None:
    """An item changes nothing but the place of the cursor."""
    here = asked.content.position(asked.content.offset(asked.position)).json
    if found["start"] != here or found["end"] != here:
        raise Broken(f"asked at {asked.position}, which is {here}; the answer is for {found}")


def check_error(asked: Asked, error: dict[str, Any]) -> None:
    code, message = error["code"], error["message"]
    if asked.closed and code == _NOT_OPEN:
        return
    allowed = _CANCELLED if asked.method == "textDocument/inlineCompletion" else {*_CANCELLED, _REFUSED}
    if code not in allowed or "\n" in message:
        raise Broken(f"{asked.method} was answered with error {code}: {message}")

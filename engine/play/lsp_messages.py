"""What the page needs of its language server besides engine/protocol/lsp_messages.py and editor_messages.py."""

from typing import Any, Protocol, TypeVar

import attrs

from engine.protocol.editor_messages import Range

Answer = TypeVar("Answer")


class LanguageServer(Protocol):
    """A connection to a running `midspan-lsp` that counts columns in code points. engine/cli/json_rpc.py is one."""

    @property
    def has_ended(self) -> bool:
        """Whether the server is gone."""
        ...

    async def request(self, method: str, params: object, answer_class: type[Answer]) -> Answer:
        """Send a request, return its result. Raises MidspanError with one line."""
        ...

    async def notify(self, method: str, params: object) -> None:
        """Send a notification. Raises MidspanError with one line."""


@attrs.frozen
class Command:
    """A command that the language server runs: the params of workspace/executeCommand."""

    command: str
    arguments: list[Any] = attrs.field(factory=list)


@attrs.frozen
class InlineItem:
    insert_text: str
    range: Range
    command: Command | None = None


@attrs.frozen
class InlineList:
    items: list[InlineItem]

"""Which edits leave a text as sound as it was: they add no syntax error."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from lsp_server.languages.language import Language
from lsp_server.languages.parsing import errors
from lsp_server.refactor.syntax import PARSE_SECONDS

_Place = TypeVar("_Place")


def is_sound(text: str, language: Language, most: int) -> bool:
    """Return whether a text can be parsed in time, with at most so many syntax errors."""
    tree = language.parse(text.encode("utf-8", "surrogatepass"), None, PARSE_SECONDS)
    return tree is not None and len(errors(tree.root_node)) <= most


def sound_parts(places: Sequence[_Place], are_sound: Callable[[Sequence[_Place]], bool]) -> list[Sequence[_Place]]:
    """Return the parts of a list that are sound, each alone: together they may not be so.

    Halves are tried: a parse for each place would take long.
    """
    if not places:
        return []
    if are_sound(places):
        return [places]
    middle = len(places) // 2
    if not middle:
        return []
    return sound_parts(places[:middle], are_sound) + sound_parts(places[middle:], are_sound)

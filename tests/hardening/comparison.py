"""How the server's text is compared with the editor's own: the server quotes it.

An inline completion whose selected menu item replaces the whole document has a `filterText` that begins with what is
replaced. So there must be something to suggest after the item's text, the seed. Where the model believes most that the
line ends after the seed, the best fill is empty, and equal requests get equal answers: then only another seed helps.
"""

from typing import Any

from hardening.answers import items_of
from hardening.edited_text import END, EditedText
from hardening.language_server import Answer, Broken

_LOOP, _MODULE, _RETURN = "for index in range(", "import os\nos.", "def add(first, second):\n    return "
_SEEDS = {
    "python": (_LOOP, _MODULE, _RETURN),
    "json": ('{"a": 1, "b": ', '{"name": "'),
    "go": ("if err != ", "package main\n\nimport "),
    "plaintext": (_MODULE, _LOOP, _RETURN),
}
"""Texts after which a model has something to suggest, nearly always."""
LANGUAGES = tuple(_SEEDS)


def seed_of(language: str, number: int) -> str:
    """Return one of a language's seeds; further numbers repeat them."""
    seeds = _SEEDS[language]
    return seeds[number % len(seeds)]


def quote_request(uri: str, seed: str, trigger: int) -> dict[str, Any]:
    """Return the params of an inline completion whose items quote the document."""
    whole = {"start": {"line": 0, "character": 0}, "end": END}
    context = {"triggerKind": trigger, "selectedCompletionInfo": {"range": whole, "text": seed}}
    return {"textDocument": {"uri": uri}, "position": whole["start"], "context": context}


def check_quote(answer: Answer, content: EditedText, seed: str) -> bool:
    """Return whether an answer quotes the server's text. Raises Broken if that is not `content`."""
    for item in items_of(answer):
        quoted, inserted = item.get("filterText"), item["insertText"]
        if quoted is not None:
            told = EditedText.of(quoted.removesuffix(inserted.removeprefix(seed)))
            if told != content:
                raise Broken(f"the server has another text: {_difference(told, content)}")
        elif not inserted.startswith(content.text):  # The item begins with the server's text, so nothing is quoted.
            raise Broken(f"the server has another text: it begins {inserted!r}; ours: {content.units[:40]!r}")
        return True
    return False


def _difference(told: EditedText, ours: EditedText) -> str:
    pairs = enumerate(zip(told.units, ours.units, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(told.units), len(ours.units)))
    parts = [f"{len(each.units)} units, {each.units[same : same + 20]!r} from {same} on" for each in (told, ours)]
    return "; ours: ".join(parts)

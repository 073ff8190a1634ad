"""Random expressions in many languages, and random changes of a part of one."""

import random
import re
from collections.abc import Iterator

from lsp_server.languages.registry import language_for
from lsp_server.refactor.code.syntax import parse

Expression = tuple[object, ...]
"""A kind, and its parts: ("call", function, *arguments), ("member", value, name), ("not", value) and the like."""
OPERATORS = {"python": ("+", "*", "and", "or", "<"), "php": ("+", "*", "&&", "||", ".")}
SIGNS = ("+", "*", "&&", "||", "<")
OTHERS = {"a": "hh", "b": "ii", "c": "jj", "d": "oo"}


class ExpressionEdits:
    """Makes expressions of a language, and changes of them."""

    def __init__(self, language: str) -> None:
        self.random = random.Random(language)
        self.language = language
        self.signs = OPERATORS.get(language, SIGNS)

    def expression(self, depth: int) -> Expression:
        kinds = ["name", "member", "call", "method", "operation", "not", "item"] if depth else ["name"]
        kind = self.random.choice(kinds)

        def inner() -> Expression:
            return self.expression(depth - 1)

        match kind:
            case "member":
                return kind, inner(), self.random.choice("mn")
            case "call":
                return kind, self.random.choice("fg"), *(inner() for _ in range(self.random.randint(0, 2)))
            case "method":
                return kind, inner(), self.random.choice("pq"), *(inner() for _ in range(self.random.randint(0, 2)))
            case "operation":
                return kind, inner(), self.random.choice(self.signs), inner()
            case "not":
                # The grammar of Kotlin has the operand of `!` end before a dot.
                return (kind, inner()) if self.language != "kotlin" else inner()
            case "item":
                return kind, inner(), inner()
        return kind, self.random.choice("abcd")

    def changed(self, whole: Expression) -> Expression:
        """Return an expression of which a part, chosen at random, is another one."""
        path, part = self.random.choice(list(parts(whole)))
        z: Expression = ("name", "z")
        choices: list[Expression] = [
            z, ("call", "w", part), ("call", "w", part, z), ("member", part, "r"), ("method", part, "r"),
            ("operation", part, self.random.choice(self.signs), z), ("method", ("name", "y"), "t", part),
            ("item", part, z),
        ]  # fmt: skip
        # What is around a value goes. Parentheses that it needed there may stay.
        choices += [one for one in part if isinstance(one, tuple) and one[0] not in ("not", "operation")]
        if part[0] in ("call", "method"):
            head, arguments = part[: 2 + (part[0] == "method")], part[2 + (part[0] == "method") :]
            choices += [(*head, *arguments, z), (*head, *arguments[1:]), (*head, *arguments[::-1])]
        if part[0] == "operation":
            choices += [("operation", part[3], part[2], part[1]), ("call", "w", part[1], part[3])]
        return with_part(whole, path, self.random.choice(choices))

    def written(self, one: Expression, *, is_operand: bool = False) -> str:
        """Return an expression as code."""
        text, is_loose = self._text(one)
        return f"({text})" if is_operand and is_loose else text

    def _text(self, one: Expression) -> tuple[str, bool]:
        dot = "->" if self.language == "php" else "."
        values = [self.written(part, is_operand=True) if isinstance(part, tuple) else str(part) for part in one[1:]]
        lists = ", ".join(self.written(part) for part in one[2:] if isinstance(part, tuple))
        match one[0]:
            case "name":
                return ("$" if self.language == "php" else "") + values[0], False
            case "member":
                return values[0] + dot + values[1], False
            case "call":
                return f"{values[0]}({lists})", False
            case "method":
                return f"{values[0]}{dot}{values[1]}({lists})", False
            case "item":
                return f"{values[0]}[{lists}]", False
            case "not":
                return ("not " if self.language == "python" else "!") + values[0], True
        return " ".join(values), True


def parts(whole: Expression, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Expression]]:
    yield path, whole
    for at, part in enumerate(whole):
        if isinstance(part, tuple):
            yield from parts(part, (*path, at))


def with_part(whole: Expression, path: tuple[int, ...], new: Expression) -> Expression:
    if not path:
        return new
    inner = whole[path[0]]
    assert isinstance(inner, tuple)
    return (*whole[: path[0]], with_part(inner, path[1:], new), *whole[path[0] + 1 :])


def renamed(code: str) -> str:
    return re.sub(r"(?<![\w.>])([abcd])(?![\w(])", lambda found: OTHERS[found[1]], code)


def tokens(language: str, text: str) -> list[str]:
    syntax = parse(text.encode(), language_for(language, ""))
    assert syntax is not None
    return [leaf.text for leaf in syntax.root.leaves()] if not syntax.errors else []

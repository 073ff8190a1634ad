"""Sentences about where a text came from, for the command line and for editors."""

from engine.protocol.messages import Origin, SourceName

_MOST = 60
"""Characters of a quoted text."""
_NAMES: dict[SourceName, str] = {"file": "this file", "workspace": "the workspace"}


def origin_line(origin: Origin) -> str:
    """Return one line, such as `"Loader(path)" as in engine/loader.py:120, 7 of 7 times; the model alone: 12 %`."""
    seen = f"{quoted(origin.text)} as in {origin.path}:{origin.line}, {origin.count} of {origin.total} times"
    return f"{seen}; the model alone: {_percent(origin.alone)}"


def source_line(text: str, source: SourceName, origins: list[Origin]) -> str:
    """Return one line about the whole text, to be shown above the lines of its origins."""
    if not text.strip():
        return "nothing is suggested here"
    if not origins:
        return f"{quoted(text)} comes from the model; no known file gave more to any part of it"
    if source == "model":
        return f"{quoted(text)} comes from the model and from known files"
    return f"{quoted(text)} comes mostly from {_NAMES[source]}"


def quoted(text: str) -> str:
    """Return the first line of a text in quotes, cut to a readable length."""
    first, newline, _ = text.strip().partition("\n")
    shown = first if len(first) <= _MOST else first[: _MOST - 1]
    return f'"{shown}{"…" if newline or shown != first else ""}"'


def _percent(probability: float) -> str:
    return "under 1 %" if probability < 0.005 else f"{100 * probability:.0f} %"

"""Prompts in which a plugin wrote a model's tags: they are read back into the parts of a hole.

Midspan's model has tags of its own, and its engine wants the parts. If the user's file contains such a tag as text, the
prompt is ambiguous: the outermost tags count.

Zed's zeta2 format has a region of a file, related files and the latest edits, and wants the region back. The form is
that of zed's crates/zeta_prompt, `seed_coder`: the text below the region, then related files, the edit history and the
file itself, in which the region has a marker where the cursor is.
"""

import re
from collections import deque

import attrs

from engine.http.completion import Asked, Rewriting, Written
from engine.protocol.framing import MAX_SNIPPETS
from engine.protocol.messages import Snippet
from engine.remote.request import ALL_TAGS, FimTags

_CODESTRAL = FimTags("[PREFIX]", "[SUFFIX]", "")
_GLM = FimTags("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>")
_SEED = FimTags("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>")
_FILE_MARKS = ("<|file_sep|>", "<file_sep>", "<filename>")


@attrs.frozen
class Parts:
    """What a prompt says about a hole. `snippets` has the most important one first."""

    prefix: str
    suffix: str
    path: str = ""
    snippets: tuple[Snippet, ...] = ()


def parts_of(prompt: str) -> Parts:
    """Return the parts of a prompt with tags of any known family; a prompt without tags is all prefix."""
    for tags in (*ALL_TAGS, _GLM, _SEED, _CODESTRAL):
        if (parts := _parts(prompt, tags)) is not None:
            return parts
    return Parts(prompt, "")


def _parts(prompt: str, tags: FimTags) -> Parts | None:
    """Return the parts if the prompt has these tags, in either order: prefix first, or suffix first."""
    middle = tags.middle.strip()
    text = prompt.rstrip("\r\n ") if middle else prompt
    if not text.endswith(middle):
        return None
    text = text.removesuffix(middle)
    if middle and tags.middle.startswith(" "):
        text = text.removesuffix(" ")
    prefix_tag, suffix_tag = tags.prefix.strip(), tags.suffix.strip()
    begin, cut = text.find(prefix_tag), text.find(suffix_tag)
    if begin < 0 or cut < 0:
        return None
    prefix_at, suffix_at = begin + len(prefix_tag), cut + len(suffix_tag)
    if begin < cut:
        prefix, suffix = text[prefix_at:cut], text[suffix_at:]
    else:
        # Mistral's prompt has no tag at its end, so nothing but the order tells it from text about tags.
        if not middle and cut != 0:
            return None
        prefix, suffix = text[prefix_at:], text[suffix_at:begin]
    if begin < cut and not middle:
        return None
    if tags.prefix.endswith(" "):
        prefix = prefix.removeprefix(" ")
    if tags.suffix.startswith(" "):
        prefix = prefix.removesuffix(" ")
    path, snippets = _files(text[: min(begin, cut)])
    return Parts(prefix, suffix, path, snippets)


def _files(head: str) -> tuple[str, tuple[Snippet, ...]]:
    """Return the path of the hole's file and the other files, which stand before the tags."""
    mark = next((mark for mark in _FILE_MARKS if mark in head), None)
    if mark is None:
        return "", ()
    # Before the first mark is the name of the repository. The last files are the most important ones.
    files = head.partition(mark)[2].rsplit(mark, MAX_SNIPPETS + 1)
    named = [file.partition("\n") for file in files]
    path = ""
    if named and not named[-1][2].strip():
        path = named.pop()[0].strip()
    return path, tuple(Snippet(name.strip(), text) for name, _, text in reversed(named) if text.strip())


_SUFFIX, _PREFIX, _MIDDLE = "<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"
_FILE, _HISTORY, _CURSOR = "<filename>", "edit_history", "<|user_cursor|>"
_BEGIN, _SEPARATOR, END = "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED\n"
_DIFF = re.compile(r"^(?:// User accepted prediction:\n)?--- a/(.*)\n\+\+\+ b/(.*)\n", re.MULTILINE)


@attrs.frozen
class ZetaPrompt:
    """What a prompt says. `snippets` are the related files in the client's order, the most important one first."""

    rewriting: Rewriting
    snippets: tuple[Snippet, ...]


def read_zeta(prompt: str) -> ZetaPrompt | None:
    """Return what a prompt of this format says; None for any other prompt."""
    text = prompt.rstrip("\n")
    if not text.startswith(_SUFFIX) or not text.endswith(_MIDDLE):
        return None
    below, found, head = text.removeprefix(_SUFFIX).removesuffix(_MIDDLE).partition(_PREFIX)
    head, is_marked, current = head.rpartition(_BEGIN)
    region, ended, rest = current.rpartition(_SEPARATOR)
    if not (found and is_marked and ended) or rest or region.count(_CURSOR) != 1:
        return None
    other_files, _, own = head.rpartition(_FILE)
    path, _, above = own.partition("\n")
    files = [file.partition("\n") for file in other_files.rsplit(_FILE, MAX_SNIPPETS + 1)[1:]]
    history = "".join(text for name, _, text in files if name.strip() == _HISTORY)
    related = tuple(Snippet(name.strip(), text) for name, _, text in files if name.strip() != _HISTORY and text.strip())
    cursor = region.index(_CURSOR)
    region = region.replace(_CURSOR, "")
    return ZetaPrompt(Rewriting(path.strip(), above, region, below, cursor, _latest(history, path.strip())), related)


def _latest(history: str, path: str) -> str:
    """Return the hunks of the newest edit if it was made in this file; "" otherwise."""
    newest = next(iter(deque(_DIFF.finditer(history), maxlen=1)), None)
    if newest is None or not path.endswith(newest[2].lstrip("/")):
        return ""
    return history[newest.end() :].rstrip("\n")


def written(asked: Asked, region: str) -> Written:
    """Return a region as the text of an answer. Zed's zeta2 reads NO_EDITS as text: no edit is the region as it was."""
    stopped = any(END.startswith(stop) for stop in asked.stops)
    return Written(region if stopped else region + END, [], [], "stop", END.strip() if stopped else "")

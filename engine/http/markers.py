"""Prompts in which a plugin wrote a model's tags: they are read back into the parts of a hole.

Midspan's model has tags of its own, and its engine wants the parts. If the user's file contains such a tag as text, the
prompt is ambiguous: the outermost tags count.
"""

import attrs

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
    """Return the path of the hole's file and the other files, which come before the tags."""
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

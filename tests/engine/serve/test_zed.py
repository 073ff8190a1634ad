"""Zed's zeta2 format: the prompt that its source writes, and the region that its parser reads back."""

from typing import Any

import pytest
from http_service import HttpService

from engine.cli.next_edit import undone
from engine.http.markers import END, read_zeta

_ABOVE = "import os\n\n\ndef main():\n"
_REGION = '    print("one", flush=True)\n    print("two")\n    print("three")\n    value = <|user_cursor|>\n'
_BELOW = "\n\nmain()\n"
_RELATED = "<filename>solid.py\ndef volume(a, b, c):\n    return a * b * c\n\n"
_DIFF = '@@ -4,2 +4,2 @@\n def main():\n-    print("one")\n+    print("one", flush=True)\n'


def _prompt(region: str = _REGION, diff: str = "", path: str = "src/app.py") -> str:
    history = f"<filename>edit_history\n--- a/{path}\n+++ b/{path}\n{diff}\n" if diff else ""
    return (
        f"<[fim-suffix]>{_BELOW}<[fim-prefix]>{_RELATED}{history}<filename>src/app.py\n{_ABOVE}"
        f"<<<<<<< CURRENT\n{region}=======\n<[fim-middle]>"
    )


def _ask(service: HttpService, prompt: str, **fields: Any) -> str:
    # As zed's crates/edit_prediction/src/open_ai_compatible.rs sends it.
    body = {"model": "midspan", "prompt": prompt, "max_tokens": 64, "temperature": None, "stop": [], **fields}
    answer = service.post("/v1/completions", body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["id"]
    text: str = answer.json()["choices"][0]["text"]
    return text


def test_a_prompt_is_read_into_region_cursor_files_and_the_newest_edit() -> None:
    found = read_zeta(_prompt(diff=_DIFF))
    assert found is not None
    assert (found.rewriting.above, found.rewriting.below) == (_ABOVE, _BELOW)
    assert found.rewriting.filled("<|user_cursor|>") == _REGION
    assert found.rewriting.path == "src/app.py"
    assert found.rewriting.latest == _DIFF.rstrip("\n")
    assert [snippet.path for snippet in found.snippets] == ["solid.py"]
    other = read_zeta(_prompt(diff=_DIFF, path="src/other.py"))
    assert other is not None
    assert other.rewriting.latest == "", "an edit of another file is none of this one"


@pytest.mark.parametrize(
    "prompt",
    ["", "x = 1", _prompt("no cursor\n"), _prompt("no cursor\n")[:-5]],
)
def test_any_other_prompt_is_no_region(prompt: str) -> None:
    assert read_zeta(prompt) is None


_FIRST, _SECOND = _REGION.splitlines(keepends=True)[:2], _REGION.splitlines(keepends=True)[2:]
_MARKED = f"<|marker_1|>{''.join(_FIRST)}<|marker_2|>{''.join(_SECOND)}<|marker_3|>\n"


def _prompt_of_zeta21(marked: str = _MARKED, diff: str = "") -> str:
    return _prompt(diff=diff).partition("<<<<<<< CURRENT")[0] + marked + "<[fim-middle]>"


@pytest.mark.parametrize(
    "prompt",
    [
        _prompt(_REGION * 2),
        _prompt()[:-5],
        _prompt().replace("=======", "=="),
        _prompt_of_zeta21()[:-5],
        _prompt_of_zeta21(_MARKED.replace("<|marker_2|>", "").replace("<|marker_3|>", "")),
        _prompt_of_zeta21(_MARKED.replace("<|marker_2|>", "")),
    ],
)
def test_a_region_that_is_cut_off_is_refused_and_never_answered_with_a_part(service: HttpService, prompt: str) -> None:
    answer = service.post("/v1/completions", {"model": "midspan", "prompt": prompt, "max_tokens": 8})
    assert answer.status_code == 400
    assert "cut off" in answer.json()["error"]["message"]


def test_numbered_regions_are_read_and_come_back_between_the_first_and_the_last_mark(service: HttpService) -> None:
    found = read_zeta(_prompt_of_zeta21(diff=_DIFF))
    assert found is not None
    assert (found.rewriting.above, found.rewriting.below) == (_ABOVE, _BELOW)
    assert found.rewriting.filled("<|user_cursor|>") == _REGION
    assert found.rewriting.marks == (0, len("".join(_FIRST)), len(_REGION) - len("<|user_cursor|>"))
    text = _ask(service, _prompt_of_zeta21())
    before, _, after = _REGION.partition("<|user_cursor|>")
    if text != "<|marker_1|>" * 2:  # which is no edit
        assert text.startswith(f"<|marker_1|>{before}")
        assert text.endswith(f"{after}<|marker_3|>")
    assert _ask(service, _prompt_of_zeta21(diff=_DIFF)) == (
        '<|marker_1|>    print("one", flush=True)\n    print("two", flush=True)\n    print("three")\n    value = \n'
        "<|marker_3|>"
    )


def test_a_region_comes_back_with_the_fill_at_the_cursor(service: HttpService) -> None:
    text = _ask(service, _prompt())
    before, _, after = _REGION.partition("<|user_cursor|>")
    assert text.startswith(before)
    assert text.endswith(after + END)
    assert _ask(service, _prompt(), stop=[END]) == text.removesuffix(END)


def test_the_last_edit_is_repeated_in_the_region(service: HttpService) -> None:
    assert _ask(service, _prompt(diff=_DIFF)) == (
        '    print("one", flush=True)\n    print("two", flush=True)\n    print("three")\n    value = \n' + END
    )


def test_a_streamed_region_comes_as_a_whole(service: HttpService) -> None:
    body = {"model": "midspan", "prompt": _prompt(diff=_DIFF), "stream": True, "max_tokens": 64}
    answer = service.post("/v1/completions", body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert 'two\\", flush=True' in answer.text
    assert answer.text.endswith("data: [DONE]\n\n")


def test_an_edit_is_undone_next_to_the_cursor() -> None:
    text = "a\nnew\nb\nnew\nc\n"
    assert undone(text, "@@ -1 +1 @@\n-old\n+new", 3) == "a\nnew\nb\nold\nc\n"
    assert undone(text, "@@ -1 +1 @@\n-old\n+new", 0) == "a\nold\nb\nnew\nc\n"
    assert undone(text, "@@ -1,2 +1,1 @@\n a\n-gone\n", 0) == "a\ngone\nnew\nb\nnew\nc\n"
    assert undone(text, "@@ -1 +1 @@\n-old\n+never there", 0) is None
    assert undone(text, "no diff at all", 0) == text

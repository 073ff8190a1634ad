"""Zed's zeta2 format: the prompt that its source writes, and the region that its parser reads back."""

import os
from pathlib import Path
from typing import Any

import pytest
from http_service import HttpService, http_service
from support.coder import coder_or_skip
from support.lsp_editor import engine_home

from engine.cli.next_edit import undone
from engine.client.launcher import EngineOptions
from engine.http.rewriting import Rewriting
from engine.http.zeta import END, read_zeta
from engine.library.store import choose_for_edits
from engine.protocol.messages import Fill
from engine.protocol.rewrite import PastEdit, Rewrite

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


_HISTORY = (
    "<filename>edit_history\n--- a/a.py\n+++ b/a.py\n@@ -3,2 +3,2 @@\n x\n-old\n+new\n@@ -9,1 +9,1 @@\n-one\n+two\n"
    "// User accepted prediction:\n--- a/b.py\n+++ b/b.py\n@@ -1,1 +1,1 @@\n-f(1)\n+f(1, 2)\n\n"
)


def test_the_edit_history_is_read_hunk_by_hunk_for_a_model_for_edits() -> None:
    found = read_zeta(_prompt().replace("<filename>src/app.py", f"{_HISTORY}<filename>src/app.py"))
    assert found is not None
    assert [*found.rewriting.edits] == [
        PastEdit("a.py", "x\nold\n", "x\nnew\n", 3),
        PastEdit("a.py", "one\n", "two\n", 9),
        PastEdit("b.py", "f(1)\n", "f(1, 2)\n", 1),
    ]


_EDIT = PastEdit("a.py", "f(1)\n", "f(2)\n")


def test_a_model_for_edits_is_asked_for_the_whole_region_with_one_kind_of_line_end() -> None:
    region = Rewriting("a.py", "above\r\n", "x\r\nf(2)", "below\r\n", 3, edits=(_EDIT,))
    asked = region.asked_of(Fill(1, "", ""))
    assert asked is not None
    assert (asked.prefix, asked.suffix) == ("above\n", "below\n")
    assert asked.rewrite == Rewrite("x\nf(2)\n", 2, edits=[_EDIT])
    assert region.answered("x\nf(3)\n") == "x\r\nf(3)"


@pytest.mark.parametrize("odd", ["<<<<<<< HEAD\n", "=======\n", "a\rb\n", "a\x0cb\n", "a\u202eb\n"])
def test_a_region_with_merge_marks_or_odd_characters_is_not_rewritten(odd: str) -> None:
    assert Rewriting("a.py", "", f"x\n{odd}", "", 0).asked_of(Fill(1, "", "")) is None


@pytest.mark.parametrize("answer", ["x\nf(2)\n", "x\nf(1)\n", "x\n<<<<<<< CURRENT\nf(2)\n"])
def test_no_change_one_that_takes_the_edit_back_and_one_with_marks_are_none(answer: str) -> None:
    assert Rewriting("a.py", "", "x\nf(2)\n", "", 0, edits=(_EDIT,)).answered(answer) is None


def test_a_model_for_edits_rewrites_what_no_rule_knows_and_a_fill_comes_where_it_is_silent(
    running: EngineOptions, tmp_path: Path
) -> None:
    coder = coder_or_skip()
    with pytest.MonkeyPatch.context() as patch, engine_home(Path(os.environ["MIDSPAN_RUNTIME_DIR"]), coder):
        patch.setenv("MIDSPAN_CONFIG_DIR", str(tmp_path))
        choose_for_edits(str(coder))
        with http_service(Path(running.model)) as service:
            region = "def pay(cart):\n    <|user_cursor|>return price(cart.items, cart.tax)\n"
            diff = "@@ -1,1 +1,1 @@\n-def price(items, tax):\n+def price(items, tax, currency):\n"
            asked = _prompt(region, diff)
            assert "price(cart.items, cart.tax, cart.currency)\n" in _ask(service, asked)
            marked = asked.replace("<<<<<<< CURRENT\n", "<|marker_1|>").replace("=======\n", "<|marker_2|>\n")
            assert _ask(service, marked).startswith(
                "<|marker_1|>def pay(cart):\n    return price(cart.items, cart.tax, "
            )
            before, _, after = _REGION.partition("<|user_cursor|>")
            text = _ask(service, _prompt())
            assert text.startswith(before)
            assert text.endswith(after + END)


def test_an_edit_is_undone_next_to_the_cursor() -> None:
    text = "a\nnew\nb\nnew\nc\n"
    assert undone(text, "@@ -1 +1 @@\n-old\n+new", 3) == "a\nnew\nb\nold\nc\n"
    assert undone(text, "@@ -1 +1 @@\n-old\n+new", 0) == "a\nold\nb\nnew\nc\n"
    assert undone(text, "@@ -1,2 +1,1 @@\n a\n-gone\n", 0) == "a\ngone\nnew\nb\nnew\nc\n"
    assert undone(text, "@@ -1 +1 @@\n-old\n+never there", 0) is None
    assert undone(text, "no diff at all", 0) == text

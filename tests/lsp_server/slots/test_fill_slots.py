"""What the file itself says is filled in without a model, and taken back to the last byte."""

import pytest
from support.slot_texts import snapshot_of

from lsp_server.refactor.file_edit import digest_of
from lsp_server.slots.fill import NO_MODEL, fill_slots
from lsp_server.slots.find import find_slots

TEXTS = {
    "plain": "def f(a: int) -> int:\n    return a\n\n\ndef g(b=0, c=''):\n    print(b)\n",
    "Windows' line ends": "def f(a: int) -> int:\r\n    return a\r\n\r\n\r\ndef g(b=0, c=''):\r\n    print(b)\r\n",
    "wide characters": "x = '🙂é'\ndef f(a: int) -> int: return a\n\n\ndef g(b=0, c=''): # 🙂\n    print(b)\n",
    "tabs": "class A:\n\tdef f(a: int) -> int: return a\n\n\tdef g(self, b=0, c=''):\n\t\tprint(b)\n",
    "a syntax error elsewhere": "def f(a: int) -> int: return a\n\n\ndef g(b=0, c=''):\n    print(b)\n\nx = (\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_known_types_are_filled_in_and_taken_back(text: str) -> None:
    snapshot = snapshot_of(text)
    done: list[None] = []
    result = await fill_slots(snapshot, find_slots(snapshot, "annotations"), None, lambda: done.append(None))
    edit = result.file_edit(with_doubtful=False)
    after = edit.applied(text)
    assert after == text.replace("b=0, c=''):", "b: int = 0, c: str = '') -> None:")
    assert edit.inverse(text).applied(after) == text
    assert edit.digest == digest_of(text)
    assert [place.reason for place in result.places] == ["its default is 0", "its default is ''", "it returns nothing"]
    assert len(done) == 3


async def test_what_the_file_does_not_say_is_left_out_with_the_reason() -> None:
    snapshot = snapshot_of("def f(a) -> int: ...\n")
    result = await fill_slots(snapshot, find_slots(snapshot, "annotations"), None, lambda: None)
    assert result.places == ()
    assert [omission.reason for omission in result.left_out] == [f"the type of `a`: {NO_MODEL}"]


@pytest.mark.parametrize("depth", [10, 3000])
async def test_deeply_nested_code_is_looked_at_or_left_alone(depth: int) -> None:
    chain = "if (a) { return 1; } else " * depth
    snapshot = snapshot_of(f"function f(a: number) {{ {chain} {{ return 2; }} }}\n", "/project/a.ts")
    slots = find_slots(snapshot, "annotations")
    assert len(slots) == 1 or depth > 10


async def test_a_function_that_does_not_parse_gets_no_annotations() -> None:
    snapshot = snapshot_of("def f(a: int) -> int:\n    return a\n\n\ndef g(b=0):\n    return (\n    print(\n")
    assert [slot.title for slot in find_slots(snapshot, "annotations") if "`g`" in slot.title] == []

"""The next edit by a model: which parts it may rewrite after an edit, and which of its changes are offered."""

import attrs
import pytest
from lsprotocol import types

from engine.models.edit_formats import EDIT_FORMATS, EditFormat, EditPrompt
from engine.protocol.messages import Candidate
from engine.protocol.rewrite import changed_part
from lsp_server.documents.edits import MOST_PARSED
from lsp_server.documents.store import Documents, Snapshot, position_in
from lsp_server.requests.model_edits import rewrite_of
from lsp_server.suggest.region import MOST_LINES, Region, past_edits, regions_of
from lsp_server.suggest.rewritten import EditPrice, JudgedEdit, asked_text, judged, worse

CODE = """\
def load(path):
    with open(path) as file:
        return file.read()


def main(args):
    text = load(args.path)  # load it
    print(text, "load")
"""
PRICE = EditPrice(mean=0.8, least=0.4)


def edited(text: str, *changes: tuple[str, str], path: str = "app.py") -> Snapshot:
    """Return a document after changes by hand, each of the first place of its old text."""
    documents, uri = Documents(2.0, lambda _: None), f"file:///project/{path}"
    documents.open(uri, "", 1, text)
    for version, (old, new) in enumerate(changes, 2):
        before = documents.snapshot(uri)
        assert before is not None
        start, end, new_end = changed_part(before.text, after := before.text.replace(old, new, 1))
        encoding = types.PositionEncodingKind.Utf16
        place = types.Range(*(position_in(before.source, at, encoding) for at in (start, end)))
        change = types.TextDocumentContentChangePartial(place, after[start:new_end])
        documents.change(uri, version, [change], encoding)
    snapshot = documents.snapshot(uri)
    assert snapshot is not None
    return snapshot


def answered(snapshot: Snapshot, region: Region, old: str, new: str, sureness: float = 1.0) -> list[JudgedEdit]:
    """Return the judged on the answer that changes a text of a region, which is one token as sure as that."""
    asked = asked_text(snapshot, region)
    assert asked is not None
    start, _, new_end = changed_part(asked, text := asked.replace(old, new))
    tokens = [text[:start], text[start:new_end], text[new_end:]]
    return judged(snapshot, region, Candidate(text, tokens, [1.0, sureness, 1.0], "complete"), PRICE)


def reasons(snapshot: Snapshot, old: str, new: str, sureness: float = 1.0, number: int = -1) -> list[str]:
    return [one.reason for one in answered(snapshot, regions_of(snapshot)[number], old, new, sureness)]


@pytest.fixture
def signature() -> Snapshot:
    return edited(CODE, ("load(path)", "load(path, encoding)"))


def test_a_changed_signature_asks_about_its_body_and_then_about_the_call(signature: Snapshot) -> None:
    body, call = regions_of(signature)
    assert signature.text[body.free : body.end].startswith("    with open(path)")
    assert signature.text[call.start : call.free] == "def main(args):\n"
    assert signature.text[call.free : call.end].startswith("    text = load(")


def test_the_edit_itself_is_kept_as_it_is(signature: Snapshot) -> None:
    fill = rewrite_of(signature, regions_of(signature)[0])
    assert fill is not None
    assert fill.rewrite is not None
    assert fill.rewrite.region[: fill.rewrite.kept] == "def load(path, encoding):\n"
    (edit,) = past_edits(signature)
    assert (edit.before, edit.after, edit.line) == ("def load(path):\n", "def load(path, encoding):\n", 1)


def test_a_long_function_is_read_in_part() -> None:
    long = CODE + "".join(f"    step({number})\n" for number in range(200)) + "    load(1)\n"
    for region in regions_of(edited(long, ("load(path)", "load(path, encoding)"))):
        assert long.count("\n", region.start, region.end) <= MOST_LINES + 1


def test_lines_are_the_editor_s_below_lone_carriage_returns_too() -> None:
    def below(head: str) -> list[str]:
        snapshot = edited(head + CODE, ("load(path)", "load(path, encoding)"))
        return [snapshot.text[region.start : region.end] for region in regions_of(snapshot)]

    assert below("# " + "a\r" * 30 + "\n") == below("# a\n" * 31) != []


def test_names_in_comments_and_texts_are_no_uses() -> None:
    assert len(regions_of(edited('x = one("two")  # three\n\n\nprint("x")\n', ("x = ", "x: int = ")))) == 1


def test_a_fitting_change_is_offered_where_it_is(signature: Snapshot) -> None:
    (one,) = answered(signature, regions_of(signature)[-1], "args.path)", "args.path, 'utf-8')")
    assert (one.reason, one.text) == ("", ", 'utf-8'")
    assert signature.text[: one.start].endswith("load(args.path")


@pytest.mark.parametrize(
    ("reason", "old", "new"),
    [
        ("formatting", "load(args.path)", "load( args.path )"),
        ("syntax", "load(args.path)", "load(args.path, ("),
        ("deletion", '    print(text, "load")\n', ""),
        ("other names", 'print(text, "load")', 'print(text, "load", 1)'),
        ("comment", "# load it", "# load it again"),
        ("outside", "def main(args):", "def main(args, load):"),
        ("marks", "    text = load", "<<<<<<< CURRENT\n    text = load"),
    ],
)
def test_what_is_held_back(signature: Snapshot, reason: str, old: str, new: str) -> None:
    if reason == "other names":
        signature = edited(CODE.replace(', "load"', ""), ("load(path)", "load(path, encoding)"))
        old, new = "print(text)", "print(text, 1)"
    assert reasons(signature, old, new) == [reason]


def test_an_unsure_change_is_held_back(signature: Snapshot) -> None:
    assert reasons(signature, "args.path)", "args.path, 1)", sureness=0.7) == ["unsure"]
    assert reasons(signature, "args.path)", "args.path, 1)", sureness=0.81) == [""]


@pytest.mark.parametrize(
    ("change", "back"),
    [
        (("file.read()", "file.read().strip()"), ("file.read().strip()", "file.read()")),
        (("file.read()", "file.close()"), ("file.close()", "file.read()")),
        (("as file:", "as stream:"), ("as stream:", "as file:")),
    ],
)
def test_what_was_just_done_is_never_taken_back(change: tuple[str, str], back: tuple[str, str]) -> None:
    snapshot = edited(CODE, change)
    region = Region(0, len(snapshot.text), 0)
    assert {one.reason for one in answered(snapshot, region, *back)} == {"reversal"}


def test_a_deletion_as_large_as_the_edit_s_own_is_offered() -> None:
    snapshot = edited(CODE.replace("load(args.path)", "load(args.path, 1)"), ("load(path)", "load()"))
    assert reasons(snapshot, "args.path, 1", "1") == ["deletion"]
    assert reasons(snapshot, ", 1)", ")") == [""]


def test_line_ends_and_tabs_stay_as_they_are() -> None:
    crlf = edited(CODE.replace("    ", "\t").replace("\n", "\r\n"), ("load(path)", "load(path, encoding)"))
    region = regions_of(crlf)[-1]
    (one,) = answered(crlf, region, "\tprint(text", "\tcheck(text)\n\tload(text")
    after = crlf.text[: one.start] + one.text + crlf.text[one.end :]
    assert after.count("\n") == after.count("\r\n") == crlf.text.count("\n") + 1
    assert '\tcheck(text)\r\n\tload(text, "load")\r\n' in after


def test_a_change_is_where_it_belongs_in_a_file_whose_lines_end_in_two_ways() -> None:
    mixed = CODE.replace("\n", "\r\n").replace("load it\r\n", "load it\n")
    snapshot = edited(mixed, ("load(path)", "load(path, encoding)"))
    old, new = "args.path)  # load it\n    print(", "args.path, encoding)  # load it\n    show("
    (one,) = answered(snapshot, regions_of(snapshot)[-1], old, new)
    after = snapshot.text[: one.start] + one.text + snapshot.text[one.end :]
    assert after.replace("\r", "") == snapshot.text.replace("\r", "").replace(old, new)


@pytest.mark.parametrize("odd", ["<<<<<<< HEAD\n", "=======\n", "a\x0cb\n", "a\rb\n", "a\u202eb\n"])
def test_a_region_with_merge_marks_or_odd_characters_is_not_asked_about(odd: str) -> None:
    snapshot = edited(f"def load(path):\n    return 1\n{odd}", ("load(path)", "load(path, encoding)"))
    assert asked_text(snapshot, Region(0, len(snapshot.text), 0)) is None


def test_a_last_line_without_an_end_stays_without() -> None:
    snapshot = edited("def load(a):\n    return a\n\n\nload(1)", ("load(a)", "load(a, b)"))
    (one,) = answered(snapshot, regions_of(snapshot)[-1], "load(1)", "load(1, 2)")
    assert snapshot.text[: one.start] + one.text + snapshot.text[one.end :] == snapshot.text.replace("(1)", "(1, 2)")


def test_without_a_tree_nothing_is_asked() -> None:
    assert regions_of(edited("load path\nload path\n", ("path", "file"), path="notes.txt")) == []


def test_a_text_is_bounded_by_its_length_and_not_by_how_busy_the_machine_is(signature: Snapshot) -> None:
    call = signature.text.index("load(args")
    change = JudgedEdit(call, call, "")
    longer = attrs.evolve(change, text="x" * MOST_PARSED)
    assert (worse(signature, change), worse(signature, longer)) == ("", "no tree")


def offered(snapshot: Snapshot, region: Region, row: EditFormat, written: str) -> list[JudgedEdit]:
    """Return what is offered of a model's answer in a format, written with full certainty: `written` has no end yet."""
    fill = rewrite_of(snapshot, region)
    assert fill is not None
    assert fill.rewrite is not None
    asked = EditPrompt(fill.path, "", fill.rewrite.region, "", -1, fill.rewrite.kept, fill.rewrite.edits)
    text = row.read(asked, written)
    if text is None:
        return []
    found = judged(snapshot, region, Candidate(text, [text], [1.0], "complete"), PRICE)
    return [one for one in found if not one.reason]


def ended(row: EditFormat, text: str, blocks: int = 2) -> str:
    """Return a text as a model of a format writes it to its end."""
    if row.name == "zeta2.1":
        return f"<|marker_1|>\n{text}<|marker_{blocks}|>"
    return text + row.stop.strip()


def rest(snapshot: Snapshot, region: Region, row: EditFormat) -> str:
    """Return what a model of a format writes again: the region, without what is kept unless it writes that too."""
    return snapshot.text[region.start if row.name == "zeta2.1" else region.free : region.end]


@pytest.mark.parametrize("row", EDIT_FORMATS, ids=lambda row: row.name)
class TestAnswersOfModels:
    def test_a_fitting_one_is_offered(self, signature: Snapshot, row: EditFormat) -> None:
        region = regions_of(signature)[-1]
        text = rest(signature, region, row).replace("args.path)", "args.path, 'utf-8')")
        (one,) = offered(signature, region, row, ended(row, text))
        assert one.text == ", 'utf-8'"

    @pytest.mark.parametrize(
        "answer", ["", "\n", "Sure! Here is the code:\n", "NO_EDITS\n", "<|marker_7|>\n", "```python\n"]
    )
    def test_one_without_the_region_offers_nothing(self, signature: Snapshot, row: EditFormat, answer: str) -> None:
        for region in regions_of(signature):
            for written in (answer, ended(row, answer)):
                assert offered(signature, region, row, written) == []

    def test_half_a_region_deletes_nothing(self, signature: Snapshot, row: EditFormat) -> None:
        for region in regions_of(signature):
            text = rest(signature, region, row)
            for stop in range(1, len(text)):
                for written in (text[:stop], ended(row, text[:stop]), ended(row, f"{text[:stop]}\n")):
                    for one in offered(signature, region, row, written):
                        after = signature.text[: one.start] + one.text + signature.text[one.end :]
                        assert len(after) >= len(signature.text), written

    def test_another_file_is_not_put_in_its_place(self, signature: Snapshot, row: EditFormat) -> None:
        other = "import os\n\n\nclass Shop:\n    def close(self):\n        os.remove(self.path)\n"
        for region in regions_of(signature):
            assert offered(signature, region, row, ended(row, other)) == []
            assert offered(signature, region, row, ended(row, rest(signature, region, row) + other)) == []

    def test_what_is_outside_of_a_region_that_was_cut_stays(self, row: EditFormat) -> None:
        long = CODE + "".join(f"    step({number})\n" for number in range(200)) + "    load(1)\n"
        snapshot = edited(long, ("load(path)", "load(path, encoding)"))
        region = regions_of(snapshot)[1]
        text = rest(snapshot, region, row).replace("load(args.path)", "load(args.path, 1)")
        for written in (text, text[: text.rindex("step")], f"{text}    load(path, encoding)\n"):
            for one in offered(snapshot, region, row, ended(row, written)):
                assert region.free <= one.start <= one.end <= region.end

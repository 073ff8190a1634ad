"""Bulk edits in a real Neovim: through its own menu of code actions, and in our preview with tick boxes."""

from collections.abc import Callable
from pathlib import Path

from neovim import Neovim
from neovim_project import (
    APP,
    LOCAL,
    OTHER,
    PREVIEW_OFF,
    buffers,
    choose,
    edited,
    filetype,
    lines,
    preview,
    ticks,
)

Open = Callable[..., Neovim]


def test_neovims_own_menu_changes_several_files(open_app: Open, project: Path) -> None:
    neovim = open_app(extra=PREVIEW_OFF)

    choose(neovim, "in the workspace")
    neovim.eventually(lambda: "other.py" in buffers(neovim), "the other file is not changed")

    neovim.nvim.command("wall")
    assert (project / "app.py").read_text() == edited(APP)
    assert (project / "other.py").read_text() == edited(OTHER)
    assert (project / "sub" / "local.py").read_text() == LOCAL


def test_the_preview_shows_each_place_and_what_was_left_out(open_app: Open) -> None:
    neovim = open_app()

    shown = preview(neovim)

    assert shown[0] == "Repeat this edit: 3 places in 2 files"
    at = shown.index("app.py: 2 of 2 places")
    assert shown[at + 1].startswith("[x] app.py:6  as in app.py:3")
    assert shown[at + 2 : at + 4] == ["  - http.get(two)", "  + http.get(two, timeout=1)"]
    assert "other.py: 1 of 1 place" in shown
    assert "left out: 1 place" in shown
    assert shown[-1].startswith("    sub/local.py:2  ")
    assert neovim.lua("return vim.fn.foldclosed('$')") == shown.index("left out: 1 place") + 1


def test_the_preview_leaves_the_users_windows_as_they_are(open_app: Open) -> None:
    neovim = open_app(extra="vim.o.number, vim.o.wrap, vim.o.foldmethod = true, true, 'indent'")
    preview(neovim)

    neovim.keys("q")

    neovim.eventually(lambda: filetype(neovim) == "python", "the preview stays")
    kept = neovim.lua(
        "return { vim.wo.number, vim.wo.wrap, vim.wo.foldmethod, vim.o.number, #vim.api.nvim_list_wins() }"
    )
    assert kept == [True, True, "indent", True, 1]
    neovim.nvim.command("split")
    assert neovim.lua("return vim.wo.foldmethod") == "indent"


def test_what_is_ticked_is_applied_and_one_undo_a_file_takes_it_back(open_app: Open, project: Path) -> None:
    neovim = open_app()
    by_hand = neovim.text()
    preview(neovim)
    assert ticks(neovim) == ["[x] app.py:6", "[x] app.py:8", "[x] other.py:5"]

    neovim.keys("<Space>")
    neovim.eventually(lambda: ticks(neovim)[0] == "[ ] app.py:6", "the tick is not taken off")
    assert "app.py: 1 of 2 places" in lines(neovim)
    neovim.nvim.command("write")
    neovim.eventually(neovim.messages, "nothing is told")

    assert neovim.messages() == ["Midspan: 2 places in 2 files changed, not saved; :Midspan write or undo"]
    assert filetype(neovim) == "python", "the preview is closed"
    assert buffers(neovim) == {
        "app.py": (by_hand.replace("(three)", "(three, timeout=1)"), True, True),
        "other.py": (edited(OTHER), True, True),
    }
    assert (project / "other.py").read_text() == OTHER, "the user saves"
    neovim.keys("u")
    assert neovim.text() == by_hand
    neovim.nvim.command("buffer other.py")
    neovim.keys("u")
    assert neovim.text() == OTHER


def test_one_command_takes_the_edit_back_in_all_files(open_app: Open) -> None:
    neovim = open_app()
    by_hand = neovim.text()
    preview(neovim)
    neovim.keys("<C-y>")
    neovim.eventually(neovim.messages, "nothing is told")
    neovim.nvim.command("messages clear")

    neovim.nvim.command("Midspan undo")

    assert neovim.messages() == ["Midspan: taken back in 2 files, not saved"]
    assert buffers(neovim)["other.py"][0] == OTHER
    assert neovim.text() == by_hand


def test_the_files_of_a_bulk_edit_are_written_by_one_command(open_app: Open, project: Path) -> None:
    neovim = open_app()
    preview(neovim)
    neovim.keys("<C-y>")
    neovim.eventually(neovim.messages, "nothing is told")
    neovim.nvim.command("messages clear")

    neovim.nvim.command("Midspan write")

    assert neovim.messages() == ["Midspan: 2 files written"]
    assert (project / "other.py").read_text() == edited(OTHER)
    assert not any(modified for _, modified, _ in buffers(neovim).values())
    neovim.nvim.command("Midspan write")
    neovim.nvim.command("buffer app.py")
    neovim.keys("ggOnew<Esc>")
    neovim.nvim.command("Midspan undo")
    assert neovim.messages()[1:] == [
        "Midspan: no file of a bulk edit is to be written",
        "Midspan: app.py has changed since; `u` in each file takes its edit back",
    ]


def test_keys_tick_all_none_or_a_file(open_app: Open) -> None:
    neovim = open_app()
    preview(neovim)

    neovim.keys("n")
    assert [tick[:3] for tick in ticks(neovim)] == ["[ ]"] * 3
    neovim.keys("/^app.py:<CR>x")
    assert [tick[:3] for tick in ticks(neovim)] == ["[x]", "[x]", "[ ]"]
    neovim.keys("x")
    assert [tick[:3] for tick in ticks(neovim)] == ["[ ]"] * 3
    neovim.keys("<C-y>")
    neovim.eventually(neovim.messages, "nothing is told")
    assert neovim.messages() == ["Midspan: nothing is ticked, so there is nothing to apply"]
    neovim.keys("a")
    assert [tick[:3] for tick in ticks(neovim)] == ["[x]"] * 3


def test_return_goes_to_the_place_and_the_preview_stays(open_app: Open) -> None:
    neovim = open_app()
    preview(neovim)

    neovim.keys("/other.py:5<CR><CR>")

    neovim.eventually(lambda: neovim.nvim.current.buffer.name.endswith("other.py"), "the place is not opened")
    assert neovim.cursor()[0] == 5
    assert neovim.lua("return #vim.api.nvim_list_wins()") == 2


def test_a_command_previews_too_and_a_wrong_one_is_told(open_app: Open) -> None:
    neovim = open_app()
    neovim.nvim.command("Midspan repeat file")
    neovim.eventually(lambda: filetype(neovim) == "midspan-preview", "no preview opens")
    assert ticks(neovim) == ["[x] app.py:6", "[x] app.py:8"]

    neovim.keys("q")
    neovim.keys(":Midspan repeat everywhere<CR>:Midspan cancel<CR>")

    neovim.eventually(lambda: len(neovim.messages()) == 2, "not both are told")
    assert neovim.messages() == [
        "Midspan: :Midspan repeat takes file, workspace; not everywhere",
        "Midspan: nothing runs that could be cancelled",
    ]
    assert neovim.lua("return vim.fn.getcompletion('Midspan repeat ', 'cmdline')") == ["file", "workspace"]
    assert "docstrings" in neovim.lua("return vim.fn.getcompletion('Midspan ', 'cmdline')")


def test_of_several_answers_one_is_chosen(open_app: Open) -> None:
    neovim = open_app()
    edge = {"line": 5, "character": 0}
    place = {"uri": (neovim.file).as_uri(), "path": "app.py", "range": {"start": edge, "end": edge}, "before": "x = 1"}
    answers = [{**place, "id": number, "after": f"x = {number}", "reason": "", "doubtful": False} for number in (7, 8)]
    lists = {"places": answers, "leftOut": [], "reached": ["only 2 answers in time"], "following": []}

    neovim.lua(
        "require('midspan.preview').show(vim.lsp.get_clients()[1], ...)",
        {"uri": place["uri"], "range": place["range"]},
        {"id": 1, "title": "Fill this hole", "rule": "", "exclusive": True, **lists},
    )

    def circles() -> list[str]:
        return [line[:3] for line in lines(neovim) if line.startswith("(")]

    assert circles() == ["(x)", "( )"]
    assert "app.py: 2 answers" in lines(neovim)
    assert "only 2 answers in time" in lines(neovim)
    neovim.keys("/7$<CR>/x = 8<CR>x")
    neovim.eventually(lambda: circles() == ["( )", "(x)"], "the other answer is not chosen")


def test_the_preview_groups_sure_wide_doubtful_and_left_out_places(open_app: Open, project: Path) -> None:
    (project / "vendor").mkdir()
    (project / "vendor" / "theirs.py").write_text(OTHER)
    (project / "more.py").write_text("import http\n\n\ndef send(body):\n    http.post(body)\n")
    neovim = open_app()

    shown = preview(neovim)

    assert shown[0] == "Repeat this edit: 4 places in 3 files, 1 of them doubtful"
    narrow = ["[x] app.py:6", "[x] app.py:8", "[x] other.py:5", "[ ] vendor/theirs.py:5"]
    assert ticks(neovim) == [*narrow, "[ ] more.py:5"]
    assert "[ ] vendor/theirs.py:5  doubtful: `vendor` has code of others" in shown
    at = shown.index("wide, w takes them all: 0 of 1 place")
    assert shown[at + 1 : at + 4] == [
        "[ ] more.py:5  only `http` is as in the example",
        "  -     http.post(body)",
        "  +     http.post(body, timeout=1)",
    ]
    assert shown[shown.index("left out: 1 place") + 1].startswith("    sub/local.py:2  `http` is a parameter")
    assert any(row.endswith("r search, q close") for row in neovim.screen()), "the keys do not fit on a line"
    neovim.nvim.command("only | $")
    drawn = neovim.screen()
    assert any("[ ] vendor/theirs.py:5  doubtful: `vendor` has code of others" in row for row in drawn)
    folds = [row.strip("·") for row in drawn if row.startswith("+--")]
    assert folds == ["+--  4 lines: wide, w takes them all: 0 of 1 place", "+--  2 lines: left out: 1 place"]
    # Keys are read when Neovim gets to them.
    neovim.keys("w")
    neovim.eventually(lambda: ticks(neovim) == [*narrow, "[x] more.py:5"], "the wide place is not ticked")
    neovim.keys("na")
    ticked = [*narrow[:3], "[x] vendor/theirs.py:5", "[ ] more.py:5"]
    neovim.eventually(lambda: ticks(neovim) == ticked, "all but the wide place are not ticked")
    neovim.keys("w<C-y>")
    neovim.eventually(lambda: filetype(neovim) != "midspan-preview", "nothing is applied")
    neovim.nvim.command("Midspan write")
    assert "http.post(body, timeout=1)" in (project / "more.py").read_text()

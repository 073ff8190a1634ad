"""Bulk edits in a real Neovim that are stale, refused or cancelled: told, and nothing is changed."""

from collections.abc import Callable
from pathlib import Path

from neovim import Neovim
from neovim_project import OTHER, buffers, lines, offered, preview

Open = Callable[..., Neovim]


def test_a_stale_edit_is_told_and_can_be_searched_again(open_app: Open, project: Path) -> None:
    neovim = open_app()
    by_hand = neovim.text()
    preview(neovim)
    (project / "other.py").write_text(OTHER + "http.get(new)\n")

    neovim.keys("<C-y>")
    (told,) = neovim.eventually(neovim.messages, "nothing is told")

    assert "other.py has changed" in told
    assert f"{told.removeprefix('Midspan: ')}; r searches again" in lines(neovim)
    assert buffers(neovim)["app.py"][0] == by_hand, "no file is changed"
    neovim.keys("r")
    neovim.eventually(lambda: "  + http.get(new, timeout=1)" in lines(neovim), "it is not searched again")
    assert not any("r searches again" in line for line in lines(neovim)[3:])
    neovim.nvim.command("messages clear")
    neovim.keys("<C-y>")
    neovim.eventually(neovim.messages, "nothing is told")
    assert neovim.messages() == ["Midspan: 4 places in 2 files changed, not saved; :Midspan write or undo"]


def test_after_an_edit_elsewhere_searching_again_finds_the_same_edit(open_app: Open) -> None:
    neovim = open_app()
    first = [line for line in preview(neovim) if line.startswith("  + ")]

    neovim.keys("<C-w>pgg0O# about this file<Esc><C-w>p")
    neovim.keys("r")

    neovim.eventually(lambda: any("as in an earlier edit" in line for line in lines(neovim)), "nothing is found")
    assert [line for line in lines(neovim) if line.startswith("  + ")] == first


def test_lines_that_moved_are_searched_where_they_are(open_app: Open) -> None:
    neovim = open_app()
    where = neovim.lua(
        "local follow = require('midspan.tracked_range').follow\n"
        "local range = { start = { line = 5, character = 1 }, ['end'] = { line = 7, character = 4 } }\n"
        "local now = follow(vim.api.nvim_get_current_buf(), range)\n"
        "vim.api.nvim_buf_set_lines(0, 6, 6, false, { 'inside' })\n"
        "vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'above', 'above' })\n"
        "return now()"
    )
    assert where == {"start": {"line": 7, "character": 1}, "end": {"line": 10, "character": 4}}


def test_an_edit_for_texts_of_another_version_is_refused_as_a_whole(open_app: Open) -> None:
    neovim = open_app()
    preview(neovim)
    # The user types after the server has looked at the versions, and before its request arrives.
    neovim.lua(
        "local apply = require('midspan.apply_edit')\n"
        "local handle = apply.handle\n"
        "apply.handle = function(...)\n"
        "  vim.api.nvim_buf_set_lines(vim.fn.bufnr('app.py'), -1, -1, false, { 'typed' })\n"
        "  return handle(...)\n"
        "end"
    )

    neovim.keys("<C-y>")
    (told,) = neovim.eventually(neovim.messages, "nothing is told")

    assert "app.py has changed meanwhile" in told
    assert "timeout" not in buffers(neovim)["app.py"][0].partition("timeout=1")[2]


def test_nothing_is_changed_if_one_file_cannot_be(open_app: Open, project: Path) -> None:
    neovim = open_app()
    neovim.nvim.command(f"badd {project / 'other.py'}")
    neovim.lua("local buf = vim.fn.bufnr('other.py') vim.fn.bufload(buf) vim.bo[buf].modifiable = false")
    by_hand = neovim.text()
    preview(neovim)

    neovim.keys("<C-y>")
    (told,) = neovim.eventually(neovim.messages, "nothing is told")

    assert "other.py is not 'modifiable'" in told
    assert buffers(neovim)["app.py"][0] == by_hand


def test_a_search_can_be_cancelled(open_app: Open) -> None:
    neovim = open_app(extra="vim.keymap.set('n', '<C-c>', function() mine = true end)")
    by_hand = neovim.text()

    # One piece of Lua, so that no answer comes before the key.
    neovim.lua(
        "require('midspan.bulk').start('repeat', 'workspace')\nvim.api.nvim_feedkeys(vim.keycode('<C-c>'), 'mx', false)"
    )
    neovim.nvim.command("Midspan cancel")
    neovim.keys("<C-c>")

    neovim.eventually(lambda: neovim.lua("return mine"), "the key is not given back")
    assert neovim.messages() == [
        "Midspan: cancelled; nothing is changed",
        "Midspan: nothing runs that could be cancelled",
    ]
    assert offered(neovim), "the server goes on"
    assert (neovim.text(), len(neovim.nvim.windows)) == (by_hand, 1)

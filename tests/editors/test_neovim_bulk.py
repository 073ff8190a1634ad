"""Bulk edits in a real Neovim: through its own menu of code actions, and in our preview with tick boxes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from git_folder import repository
from neovim import Neovim

Open = Callable[..., Neovim]
APP = "import http\n\nhttp.get(one)\n\n\nhttp.get(two)\nprint(3)\nhttp.get(three)\n"
OTHER = "import http\n\n\ndef load():\n    name = '🦊', http.get(four)  # ü\n    return name\n"
LOCAL = "def load(http):\n    return http.get(five)\n"
PREVIEW_OFF = "vim.lsp.config('midspan', { capabilities = { experimental = { midspanPreview = false } } })"
MENU = """
local title = ...
vim.lsp.buf.code_action({ apply = true, filter = function(action)
  return action.title:find(title, 1, true) ~= nil
end })
"""
BUFFERS = """
local found = {}
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  if vim.bo[buf].buftype == '' then
    local name = vim.fs.basename(vim.api.nvim_buf_get_name(buf))
    local text = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\\n') .. '\\n'
    found[name] = { text, vim.bo[buf].modified, vim.bo[buf].buflisted }
  end
end
return found
"""
OFFERED = """
local client = vim.lsp.get_clients({ name = 'midspan', bufnr = 0 })[1]
if not client then return {} end
local params = vim.lsp.util.make_range_params(0, client.offset_encoding)
params.context = { diagnostics = {} }
local answer = client:request_sync('textDocument/codeAction', params, 5000, 0)
return vim.tbl_map(function(action) return action.title end, answer and answer.result or {})
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a git repository with two files that http.get(...) fits, and one where http is something else."""
    return repository(tmp_path / "project", {"other.py": OTHER, "sub/local.py": LOCAL})


@pytest.fixture
def open_app(in_neovim: Open, project: Path) -> Callable[..., Neovim]:
    """Return a function that opens the project's app.py, whose first call gets another argument by hand."""

    def open_and_edit(extra: str = "", **settings: Any) -> Neovim:
        options = {"settings": {"enabled": False, **settings}}
        neovim = in_neovim(APP, f"{project.name}/app.py", setup=options, extra=extra)
        neovim.eventually(lambda: neovim.lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0"), "no server")
        neovim.keys("3Gf)i, timeout=1<Esc>")
        neovim.eventually(lambda: offered(neovim), "the edit is not offered for repeating")
        return neovim

    return open_and_edit


def offered(neovim: Neovim) -> list[str]:
    """Return the titles of the code actions at the cursor."""
    titles: list[str] = neovim.lua(OFFERED)
    return titles


def choose(neovim: Neovim, title: str) -> None:
    """Choose a code action from Neovim's own menu."""
    neovim.lua(MENU, title)


def preview(neovim: Neovim, title: str = "in the workspace") -> list[str]:
    """Choose a code action and return the preview's lines."""
    choose(neovim, title)
    neovim.eventually(lambda: filetype(neovim) == "midspan-preview", "no preview opens")
    return lines(neovim)


def filetype(neovim: Neovim) -> str:
    kind: str = neovim.nvim.current.buffer.options["filetype"]
    return kind


def lines(neovim: Neovim) -> list[str]:
    return list(neovim.nvim.current.buffer[:])


def ticks(neovim: Neovim) -> list[str]:
    return [line.split("  ")[0] for line in lines(neovim) if line.startswith("[")]


def buffers(neovim: Neovim) -> dict[str, Any]:
    """Return text, whether modified and whether listed, of each file's buffer by the file's name."""
    found: dict[str, Any] = neovim.lua(BUFFERS)
    return {name: tuple(values) for name, values in found.items()}


def edited(text: str) -> str:
    """Return a text after the edit in all places."""
    for name in ("one", "two", "three", "four"):
        text = text.replace(f"http.get({name})", f"http.get({name}, timeout=1)")
    return text


def test_neovims_own_menu_changes_several_files(open_app: Callable[..., Neovim], project: Path) -> None:
    neovim = open_app(extra=PREVIEW_OFF)

    choose(neovim, "in the workspace")
    neovim.eventually(lambda: "other.py" in buffers(neovim), "the other file is not changed")

    neovim.nvim.command("wall")
    assert (project / "app.py").read_text() == edited(APP)
    assert (project / "other.py").read_text() == edited(OTHER)
    assert (project / "sub" / "local.py").read_text() == LOCAL


def test_the_preview_shows_each_place_and_what_was_left_out(open_app: Callable[..., Neovim]) -> None:
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


def test_the_preview_leaves_the_users_windows_as_they_are(open_app: Callable[..., Neovim]) -> None:
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


def test_what_is_ticked_is_applied_and_one_undo_a_file_takes_it_back(
    open_app: Callable[..., Neovim], project: Path
) -> None:
    neovim = open_app()
    by_hand = neovim.text()
    preview(neovim)
    assert ticks(neovim) == ["[x] app.py:6", "[x] app.py:8", "[x] other.py:5"]

    neovim.keys("<Space>")
    assert ticks(neovim)[0] == "[ ] app.py:6"
    assert "app.py: 1 of 2 places" in lines(neovim)
    neovim.nvim.command("write")
    neovim.eventually(neovim.messages, "nothing is told")

    assert neovim.messages() == ["Midspan: 2 places in 2 files changed"]
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


def test_keys_tick_all_none_or_a_file(open_app: Callable[..., Neovim]) -> None:
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


def test_return_goes_to_the_place_and_the_preview_stays(open_app: Callable[..., Neovim]) -> None:
    neovim = open_app()
    preview(neovim)

    neovim.keys("/other.py:5<CR><CR>")

    neovim.eventually(lambda: neovim.nvim.current.buffer.name.endswith("other.py"), "the place is not opened")
    assert neovim.cursor()[0] == 5
    assert neovim.lua("return #vim.api.nvim_list_wins()") == 2


def test_a_stale_edit_is_told_and_can_be_searched_again(open_app: Callable[..., Neovim], project: Path) -> None:
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
    assert neovim.messages() == ["Midspan: 4 places in 2 files changed"]


def test_lines_that_moved_are_searched_where_they_are(open_app: Callable[..., Neovim]) -> None:
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


def test_an_edit_for_texts_of_another_version_is_refused_as_a_whole(open_app: Callable[..., Neovim]) -> None:
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


def test_nothing_is_changed_if_one_file_cannot_be(open_app: Callable[..., Neovim], project: Path) -> None:
    neovim = open_app()
    neovim.nvim.command(f"badd {project / 'other.py'}")
    neovim.lua("local buf = vim.fn.bufnr('other.py') vim.fn.bufload(buf) vim.bo[buf].modifiable = false")
    by_hand = neovim.text()
    preview(neovim)

    neovim.keys("<C-y>")
    (told,) = neovim.eventually(neovim.messages, "nothing is told")

    assert "other.py is not 'modifiable'" in told
    assert buffers(neovim)["app.py"][0] == by_hand


def test_a_command_previews_too_and_a_wrong_one_is_told(open_app: Callable[..., Neovim]) -> None:
    neovim = open_app()
    neovim.nvim.command("Midspan repeat file")
    neovim.eventually(lambda: filetype(neovim) == "midspan-preview", "no preview opens")
    assert ticks(neovim) == ["[x] app.py:6", "[x] app.py:8"]

    neovim.keys("q")
    neovim.keys(":Midspan repeat everywhere<CR>:Midspan cancel<CR>")

    assert neovim.messages() == [
        "Midspan: :Midspan repeat takes file, workspace; not everywhere",
        "Midspan: nothing runs that could be cancelled",
    ]
    assert neovim.lua("return vim.fn.getcompletion('Midspan repeat ', 'cmdline')") == ["file", "workspace"]
    assert "docstrings" in neovim.lua("return vim.fn.getcompletion('Midspan ', 'cmdline')")


def test_a_search_can_be_cancelled(open_app: Callable[..., Neovim]) -> None:
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


def test_of_several_answers_one_is_chosen(open_app: Callable[..., Neovim]) -> None:
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
    assert circles() == ["( )", "(x)"]

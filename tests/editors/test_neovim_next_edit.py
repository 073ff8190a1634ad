"""The next edit in a real Neovim: shown where it is, jumped to, accepted, and dismissed for good."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from neovim import Neovim
from support.coder import coder_or_skip
from support.git_folder import repository
from support.lsp_editor import engine_home

Open = Callable[..., Neovim]
FAR = 60
APP = f"import http\n\nhttp.get(one)\n\n\nhttp.get(two){chr(10) * FAR}http.get(three)\n"
OTHER = "import http\n\n\ndef load():\n    return '🦊', http.get(four)\n"
ADDED = ", timeout=1"
_ANSWER_S = 40.0
# What is drawn: row, column and text of each virtual text, and the hint.
DRAWN = """
local found = {}
for _, name in ipairs({ 'midspan.next_edit', 'midspan.next_edit_hint' }) do
  local namespace = vim.api.nvim_create_namespace(name)
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
    local text = mark[4].virt_text and mark[4].virt_text[1][1]
    for _, line in ipairs(mark[4].virt_lines or {}) do
      text = (text and text .. '\\n' or '') .. line[1][1]
    end
    if text then
      table.insert(found, { mark[2] + 1, mark[3], text })
    end
  end
end
return found
"""
# Counts the answers, so that a test knows when there is nothing more to wait for.
COUNT_ANSWERS = """
next_edits_answered = 0
vim.api.nvim_create_autocmd('LspRequest', { callback = function(event)
  local request = event.data.request
  if request.type == 'complete' and request.method == 'textDocument/copilotInlineEdit' then
    next_edits_answered = next_edits_answered + 1
  end
end })
"""
COUNT_KEYS = """
pressed = ''
for name, key in pairs({ tab = '<Tab>', escape = '<Esc>' }) do
  vim.keymap.set('n', key, function() pressed = pressed .. name .. ' ' end)
end
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return repository(tmp_path / "project", {"other.py": OTHER})


@pytest.fixture
def open_app(in_neovim: Open, project: Path) -> Callable[..., Neovim]:
    """Return a function that opens the project's app.py and gives its first call another argument, by hand."""

    def open_and_edit(extra: str = COUNT_KEYS, **options: Any) -> Neovim:
        neovim = in_neovim(
            APP, f"{project.name}/app.py", setup={"keymaps": {"accept": "<Tab>"}, **options}, extra=extra
        )
        neovim.until_ready()
        neovim.keys(f"3Gf)i{ADDED}<Esc>")
        return neovim

    return open_and_edit


def drawn(neovim: Neovim) -> list[tuple[int, int, str]]:
    return [tuple(mark) for mark in neovim.lua(DRAWN)]


def eventually_drawn(neovim: Neovim, *marks: tuple[int, int, str]) -> None:
    neovim.eventually(lambda: drawn(neovim) == [*marks], f"{[*marks]} is not what is drawn")


def pressed(neovim: Neovim) -> str:
    keys: str = neovim.lua("return pressed")
    return keys


def test_tab_goes_through_all_places_of_all_files(open_app: Callable[..., Neovim]) -> None:
    neovim = open_app()
    eventually_drawn(neovim, (6, 12, ADDED))

    neovim.keys("<Tab>")
    neovim.eventually(lambda: neovim.cursor() == (6, 12), "the cursor is not there")
    neovim.keys("<Tab>")
    third = (6 + FAR, 14, ADDED)
    eventually_drawn(neovim, third, (6, 0, f"  ⇥ next edit: line {6 + FAR}"))
    neovim.keys("<Tab>")
    eventually_drawn(neovim, third)
    neovim.keys("<Tab>")
    eventually_drawn(neovim, (6 + FAR, 0, "  ⇥ next edit: other.py:5"))
    neovim.keys("<Tab>")
    neovim.eventually(lambda: neovim.nvim.current.buffer.name.endswith("other.py"), "the other file is not opened")
    eventually_drawn(neovim, (5, 32, ADDED))
    neovim.keys("<Tab>")
    neovim.eventually(lambda: neovim.text() == OTHER.replace("four", f"four{ADDED}"), "it is not changed")
    eventually_drawn(neovim)
    assert neovim.messages() == []

    neovim.keys("u")
    assert neovim.text() == OTHER
    neovim.nvim.command("buffer app.py")
    assert neovim.text().count(ADDED) == 3
    neovim.keys("u")
    assert neovim.text().count(ADDED) == 2
    assert pressed(neovim) == ""


def test_escape_ends_it_for_good_and_does_what_it_did_before(open_app: Callable[..., Neovim]) -> None:
    neovim = open_app()
    eventually_drawn(neovim, (6, 12, ADDED))

    neovim.keys("<Esc>")

    eventually_drawn(neovim)
    neovim.eventually(lambda: pressed(neovim) == "escape ", "the key is swallowed")
    neovim.keys("<Tab>")
    neovim.eventually(lambda: pressed(neovim) == "escape tab ", "the key is not given back")
    neovim.lua(COUNT_ANSWERS)
    neovim.keys("6Gf)ix<BS><Esc>")
    neovim.eventually(lambda: neovim.lua("return next_edits_answered > 0"), "it is not asked again")
    eventually_drawn(neovim)


def test_a_tab_inside_the_edited_text_does_not_bring_a_dismissed_one_back(open_app: Callable[..., Neovim]) -> None:
    neovim = open_app(extra="")
    eventually_drawn(neovim, (6, 12, ADDED))
    neovim.keys("<Esc>")
    eventually_drawn(neovim)
    neovim.lua(COUNT_ANSWERS)

    neovim.keys("3G0f,la<C-v><Tab><Esc>")

    neovim.eventually(lambda: "\ttimeout" in neovim.text(), "the tab is not there")
    neovim.eventually(lambda: neovim.lua("return next_edits_answered > 0"), "it is not asked again")
    eventually_drawn(neovim)


def test_tab_in_insert_mode_goes_on_if_nothing_is_suggested(
    open_app: Callable[..., Neovim], neovim_settings: dict[str, Any]
) -> None:
    neovim = open_app(settings={**neovim_settings, "gate": 1})
    eventually_drawn(neovim, (6, 12, ADDED))

    neovim.keys("i<Tab>")
    neovim.eventually(lambda: neovim.cursor() == (6, 12), "the cursor is not there")
    neovim.keys("<Tab>")
    neovim.eventually(lambda: neovim.text().count(ADDED) == 2, "it is not accepted")

    assert neovim.lua("return vim.api.nvim_get_mode().mode") == "i"
    assert "\t" not in neovim.text()


def test_another_change_takes_it_away(open_app: Callable[..., Neovim]) -> None:
    neovim = open_app()
    eventually_drawn(neovim, (6, 12, ADDED))

    neovim.keys("Goprint(1)")
    eventually_drawn(neovim)
    neovim.keys("<Esc><Tab>")

    neovim.eventually(lambda: pressed(neovim) == "tab ", "the key is not given back")


def test_keys_can_be_others_or_none(open_app: Callable[..., Neovim]) -> None:
    keymaps = {"next_edit": "<C-j>", "dismiss_next_edit": False}
    neovim = open_app(keymaps=keymaps)
    eventually_drawn(neovim, (6, 12, ADDED))

    neovim.keys("<Tab><Esc>")
    neovim.eventually(lambda: pressed(neovim) == "tab escape ", "the keys are not the user's")
    neovim.keys("<C-j>")
    neovim.eventually(lambda: neovim.cursor() == (6, 12), "the cursor is not there")
    neovim.keys("<C-j>")
    hint = f"  <C-j> next edit: line {6 + FAR}"
    eventually_drawn(neovim, (6 + FAR, 14, ADDED), (6, 0, hint))


def test_commands_do_the_same(open_app: Callable[..., Neovim]) -> None:
    neovim = open_app(extra="")
    eventually_drawn(neovim, (6, 12, ADDED))

    neovim.nvim.command("Midspan nextedit accept")
    eventually_drawn(neovim, (6 + FAR, 14, ADDED), (3, 0, f"  ⇥ next edit: line {6 + FAR}"))
    neovim.nvim.command("Midspan nextedit jump")
    neovim.eventually(lambda: neovim.cursor() == (6 + FAR, 14), "the cursor is not there")
    neovim.nvim.command("Midspan nextedit off")
    eventually_drawn(neovim)
    neovim.nvim.command("Midspan nextedit")

    assert neovim.messages() == ["Midspan: the next edit is off", "Midspan: no next edit is offered"]
    assert neovim.lua("return vim.fn.maparg('<Tab>', 'n')") == ""


def test_it_can_be_off_from_the_start(open_app: Callable[..., Neovim]) -> None:
    neovim = open_app(extra=COUNT_ANSWERS, next_edit=False)
    neovim.report()
    assert neovim.lua("return next_edits_answered") == 0

    neovim.nvim.command("Midspan nextedit on")
    neovim.keys("u<C-r>")

    eventually_drawn(neovim, (6, 12, ADDED))
    assert neovim.messages()[0] == "Midspan: the next edit is on"


@pytest.mark.parametrize(
    ("start", "end", "text", "marks"),
    [
        ((2, 11), (2, 11), ", 2", [(3, 11, ", 2")]),
        ((2, 0), (2, 13), "http.put(one)", [(3, 8, "put")]),
        ((5, 13), (5, 13), "\nprint(1)", [(6, 0, "print(1)")]),
        ((5, 0), (5, 0), "a = 1\nb = 2\n", [(6, 0, "a = 1\nb = 2")]),
        ((2, 0), (5, 13), "http.get(\n    🦊,\n)", [(6, 0, "http.get(\n    🦊,\n)")]),
        ((2, 0), (3, 0), "", []),
    ],
)
def test_any_edit_is_drawn_as_what_it_changes(
    in_neovim: Open,
    neovim_settings: dict[str, Any],
    start: tuple[int, int],
    end: tuple[int, int],
    text: str,
    marks: list[tuple[int, int, str]],
) -> None:
    neovim = in_neovim(APP, "app.py", setup={"settings": {**neovim_settings, "enabled": False}})
    neovim.eventually(lambda: neovim.lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0"), "no server")
    edges = [{"line": line, "character": character} for line, character in (start, end)]

    neovim.lua(
        "local range, text = ...\n"
        "local client = vim.lsp.get_clients({ name = 'midspan' })[1]\n"
        "local buf = vim.api.nvim_get_current_buf()\n"
        "local document = { uri = vim.uri_from_bufnr(buf), version = vim.lsp.util.buf_versions[buf] }\n"
        "require('midspan.next_edit_offer').show(client, { text = text, range = range, textDocument = document,\n"
        "  command = { title = '', command = 'midspan.nextEditAccepted' }, remaining = 1 })",
        {"start": edges[0], "end": edges[1]},
        text,
    )

    assert drawn(neovim) == marks
    before = neovim.text().split("\n")
    (from_row, from_column), (to_row, to_column) = start, end
    wanted = [
        *before[:from_row],
        before[from_row][:from_column] + text + before[to_row][to_column:],
        *before[to_row + 1 :],
    ]
    neovim.nvim.command("Midspan nextedit accept")
    neovim.eventually(lambda: neovim.text() == "\n".join(wanted), "the text is another")


@pytest.mark.timeout(300)
def test_a_model_for_edits_offers_what_no_rule_knows(in_neovim: Open, neovim_settings: dict[str, Any]) -> None:
    coder = coder_or_skip()
    cart = "def price(items, tax):\n    return sum(items)\n\n\ndef pay(cart):\n    return price(cart.items, cart.tax)\n"
    with engine_home(Path(os.environ["MIDSPAN_RUNTIME_DIR"]), coder):
        settings = {**neovim_settings, "editsModel": str(coder)}
        neovim = in_neovim(cart, "cart.py", setup={"settings": settings, "keymaps": {"accept": "<Tab>"}})
        neovim.until_ready()
        for _ in range(3):  # A busy machine may have no answer in its time.
            neovim.keys("1Gf)i, currency<Esc>")
            until = time.monotonic() + _ANSWER_S
            while drawn(neovim) == [] and time.monotonic() < until:
                time.sleep(0.05)
            if drawn(neovim) != []:
                break
            neovim.keys("u")
        neovim.eventually(lambda: drawn(neovim) != [], "nothing is offered")
        neovim.keys("<Tab>")
        neovim.eventually(lambda: neovim.cursor()[0] > 1, "the cursor is not there")
        neovim.keys("<Tab>")
        neovim.eventually(lambda: "price(cart.items, cart.tax, " in neovim.text(), "the call is not changed")


def test_neovim_answers_what_its_compilers_report(open_app: Callable[..., Neovim]) -> None:
    neovim = open_app()
    reported = neovim.lua("""
      local namespace = vim.api.nvim_create_namespace('a compiler')
      local function report(lnum, severity, message)
        return { lnum = lnum, col = 0, severity = severity, message = message }
      end
      vim.diagnostic.set(namespace, 0, { report(2, 1, 'wrong'), report(3, 2, 'odd'), report(4, 4, 'a hint') })
      local client = vim.lsp.get_clients({ name = 'midspan' })[1]
      return client.handlers['midspan/diagnostics'](nil, { uri = vim.uri_from_bufnr(0) }, {})
    """)
    assert reported == [{"line": 2, "message": "wrong"}, {"line": 3, "message": "odd"}]


def test_a_call_follows_its_changed_signature_with_the_embedded_model(in_neovim: Open) -> None:
    text = "def price(items, tax):\n    return sum(items) + tax\n\n\ndef pay(cart, currency):\n    total = 0\n"
    text += "    return price(cart.items, cart.tax)\n"
    with engine_home(Path(os.environ["MIDSPAN_RUNTIME_DIR"]), "embedded"):
        settings = {"model": "embedded"}
        neovim = in_neovim(text, "cart.py", setup={"settings": settings, "keymaps": {"accept": "<Tab>"}})
        neovim.until_ready()
        neovim.keys("1Gf)i, currency<Esc>")
        eventually_drawn(neovim, (7, 37, ", currency"))
        neovim.keys("<Tab>")
        neovim.eventually(lambda: neovim.cursor()[0] == 7, "the cursor is not there")
        neovim.keys("<Tab>")
        neovim.eventually(lambda: "price(cart.items, cart.tax, currency)" in neovim.text(), "the call is not changed")


def test_a_call_in_another_file_follows_its_changed_signature(in_neovim: Open, tmp_path: Path) -> None:
    text = "def price(items, tax):\n    return sum(items) + tax\n"
    pay = "from cart import price\n\n\ndef pay(cart, currency):\n    total = 0\n"
    pay += "    return price(cart.items, cart.tax)\n"
    shop = repository(tmp_path / "shop", {"pay.py": pay})
    with engine_home(Path(os.environ["MIDSPAN_RUNTIME_DIR"]), "embedded"):
        settings = {"model": "embedded"}
        neovim = in_neovim(text, f"{shop.name}/cart.py", setup={"settings": settings, "keymaps": {"accept": "<Tab>"}})
        neovim.until_ready()
        neovim.keys("1Gf)i, currency<Esc>")
        neovim.eventually(lambda: [text for *_, text in drawn(neovim)] == ["  ⇥ next edit: pay.py:6"], "no hint")
        neovim.keys("<Tab>")
        eventually_drawn(neovim, (6, 37, ", currency"))
        neovim.keys("<Tab>")
        neovim.eventually(lambda: "price(cart.items, cart.tax, currency)" in neovim.text(), "the call is not changed")
        assert "from cart import price" in neovim.text()

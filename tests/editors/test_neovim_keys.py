"""Keys in a real Neovim: one that is ours does what it did before, where nothing is shown or the menu has it."""

import os
import signal
import time
from collections.abc import Callable
from functools import partial

import pytest
from neovim import KEYMAPS, NOTES, Neovim

Open = Callable[..., Neovim]
TEXT = "one two\nthree four\n"
MENU = "vim.o.completeopt = 'menuone,noselect'"
NOTHING_SHOWN = {"settings": {"enabled": False}}


@pytest.fixture
def quiet(in_neovim: Open) -> Open:
    """Return a function that opens a Neovim where nothing is suggested and `action` has the key `key`."""

    def open_quiet(action: str, key: str, extra: str = "") -> Neovim:
        return in_neovim(TEXT, setup={"keymaps": {action: key}, **NOTHING_SHOWN}, extra=extra)

    return open_quiet


def mode(neovim: Neovim) -> str:
    name: str = neovim.nvim.api.get_mode()["mode"]
    return name


def menu_is_open(neovim: Neovim) -> bool:
    return bool(neovim.nvim.funcs.pumvisible())


def open_menu(neovim: Neovim) -> str:
    """Open Neovim's own menu below a suggestion, with no entry selected; return the suggestion."""
    neovim.keys("<C-x><C-n>")
    neovim.eventually(lambda: menu_is_open(neovim), "no menu opens")
    ghost: str = neovim.eventually(neovim.ghost, "there is no suggestion beside the menu")
    return ghost


@pytest.fixture
def with_menu(in_neovim: Open) -> Open:
    """Return a function that opens a Neovim in insert mode, after a word that the menu can complete."""

    def open_ready(extra: str = "", **keymaps: str) -> Neovim:
        neovim = in_neovim(NOTES + "shop shopping\nsh\n", setup={"keymaps": keymaps or KEYMAPS}, extra=MENU + extra)
        neovim.until_ready()
        neovim.keys("GA")
        return neovim

    return open_ready


@pytest.mark.parametrize("action", list(KEYMAPS))
def test_meta_and_a_letter_is_escape_and_the_letter(quiet: Open, action: str) -> None:
    neovim = quiet(action, "<M-e>")

    neovim.keys("i<M-e>")

    neovim.eventually(lambda: (mode(neovim), neovim.cursor()) == ("n", (1, 2)), "it is not the end of the word")
    assert neovim.text() == TEXT


@pytest.mark.parametrize(
    ("key", "typed", "text", "now"),
    [
        ("<C-e>", "i", TEXT, "tone two\nthree four\n"),
        ("<C-y>", "jI", TEXT, "one two\nothree four\n"),
        ("<Tab>", "i", TEXT, "\tone two\nthree four\n"),
        ("<C-w>", "A", TEXT, "one \nthree four\n"),
        ("<C-u>", "A", TEXT, "\nthree four\n"),
        ("<M-x>", "i", TEXT, "ne two\nthree four\n"),
        ("<M-Right>", "i", TEXT, TEXT),
    ],
)
def test_a_key_without_a_mapping_has_its_own_meaning(quiet: Open, key: str, typed: str, text: str, now: str) -> None:
    neovim = quiet("dismiss", key)

    neovim.keys(typed + key)

    neovim.eventually(lambda: neovim.text() == now, "it does something else")


@pytest.mark.parametrize("key", ["<M-Right>", "<M-Down>", "<M-End>", "<M-F5>"])
def test_one_word_more_than_there_is_leaves_the_user_in_insert_mode(quiet: Open, key: str) -> None:
    neovim = quiet("accept_word", key)

    neovim.keys(f"A{key} of")

    neovim.eventually(lambda: neovim.text() == TEXT.replace("two", "two of"), "what is typed next is no text")
    assert mode(neovim) == "i"


@pytest.mark.parametrize(
    "mapping",
    [
        "vim.keymap.set('i', '<M-e>', 'mine')",
        "vim.keymap.set('i', '<M-e>', function() vim.api.nvim_put({ 'mine' }, 'c', false, true) end)",
        "vim.keymap.set('i', '<M-e>', function() return 'mine' end, { expr = true })",
        "vim.keymap.set('i', 'zz', 'mine') vim.keymap.set('i', '<M-e>', 'zz', { remap = true })",
        "vim.keymap.set('i', '<M-e>', 'mine', { buffer = true })",
    ],
)
def test_a_mapping_of_the_user_is_kept(quiet: Open, mapping: str) -> None:
    neovim = quiet("dismiss", "<M-e>", extra=mapping)

    neovim.keys("i<M-e>")

    neovim.eventually(lambda: neovim.text() == "mine" + TEXT, "it does something else")


def test_a_second_setup_keeps_what_the_first_one_kept(quiet: Open) -> None:
    neovim = quiet("dismiss", "<M-e>", extra="vim.keymap.set('i', '<M-e>', 'mine')")
    neovim.lua("require('midspan').setup({ keymaps = { dismiss = '<M-e>' }, settings = { enabled = false } })")

    neovim.keys("i<M-e>")

    neovim.eventually(lambda: neovim.text() == "mine" + TEXT, "it does something else")


def test_an_expression_of_the_users_own_can_accept(in_neovim: Open) -> None:
    extra = """vim.keymap.set('i', '<Tab>', function()
      return require('midspan').accept() and '' or 'nothing'
    end, { expr = true })"""
    neovim = in_neovim(setup={"keymaps": {}}, extra=extra)
    neovim.until_ready()
    neovim.keys("GA")
    ghost = neovim.offered()
    before, after = neovim.around_cursor()

    neovim.keys("<Tab>")

    neovim.eventually(lambda: neovim.text() == before + ghost + after, "it is not accepted")


def test_accept_takes_the_suggestion_beside_a_menu_without_a_selection(with_menu: Open) -> None:
    neovim = with_menu()
    ghost = open_menu(neovim)
    before, after = neovim.around_cursor()

    neovim.keys("<Tab>")

    neovim.eventually(lambda: neovim.text() == before + ghost + after, "it is not accepted")
    assert not menu_is_open(neovim)


def test_a_key_that_the_user_mapped_stays_the_menus(with_menu: Open) -> None:
    extra = """ vim.keymap.set('i', '<Tab>', function()
      return vim.fn.pumvisible() == 1 and '<C-n>' or '<Tab>'
    end, { expr = true })"""
    neovim = with_menu(extra, accept="<Tab>")
    open_menu(neovim)
    before, _ = neovim.around_cursor()

    neovim.keys("<Tab>")

    neovim.eventually(lambda: neovim.around_cursor()[0] == before + "op", "the entry is not inserted")


def test_the_menus_own_key_closes_the_menu_and_then_the_suggestion(with_menu: Open) -> None:
    neovim = with_menu()
    ghost = open_menu(neovim)

    neovim.keys("<C-e>")
    neovim.eventually(lambda: not menu_is_open(neovim), "the menu stays")
    assert neovim.settled() == ghost

    neovim.keys("<C-e>")
    neovim.eventually(lambda: neovim.ghost() is None, "the suggestion stays")


def test_the_suggestion_continues_the_entry_that_the_menu_inserted(with_menu: Open) -> None:
    neovim = with_menu()
    open_menu(neovim)
    before, after = neovim.around_cursor()

    neovim.keys("<C-n>")
    neovim.eventually(lambda: neovim.around_cursor()[0] == before + "op", "the entry is not inserted")
    ghost = neovim.settled()
    neovim.keys("<Tab>")

    neovim.eventually(lambda: not menu_is_open(neovim), "Tab is not the menu's")
    assert neovim.text() == before + "op\t" + after, "an entry is selected, so the key is the menu's"
    assert ghost is None or not ghost.startswith("op")


def test_an_entry_that_is_selected_but_not_inserted_is_what_the_suggestion_begins_with(in_neovim: Open) -> None:
    extra = "vim.o.completeopt = 'menuone,noinsert'"
    neovim = in_neovim("shop = 1\nshopping = 2\nsh\n", "shop.py", extra=extra)
    neovim.until_ready()
    neovim.keys("GA")
    neovim.settled()

    neovim.keys("<C-x><C-n>")
    neovim.eventually(lambda: menu_is_open(neovim), "no menu opens")
    neovim.eventually(lambda: (neovim.ghost() or "").startswith("op"), "it does not begin with the entry")
    neovim.keys("<Down>")
    neovim.eventually(lambda: (neovim.ghost() or "").startswith("opping"), "it is that of the entry before")
    assert neovim.around_cursor()[0].endswith("\nsh"), "nothing is inserted yet"


@pytest.fixture
def repeated(in_neovim: Open) -> Neovim:
    """A Neovim after `o`, keys until a suggestion is shown, and nothing accepted yet. Indents by itself."""
    neovim = in_neovim("    - \n", extra="vim.o.autoindent = true")
    neovim.until_ready()
    return neovim


def test_dot_repeats_what_was_accepted(repeated: Neovim) -> None:
    repeated.keys("o")
    repeated.offered()
    repeated.after_answer(lambda: repeated.keys("<Tab>"))
    repeated.type("é…!")
    repeated.keys("<Esc>")
    written = repeated.text().split("\n")[1:-1]

    repeated.keys("G.")

    repeated.eventually(lambda: len(repeated.text().split("\n")) > 2 + len(written), "nothing is repeated")
    assert repeated.text().split("\n")[1 + len(written) : -1] == written


@pytest.mark.parametrize("key", ["<Tab>", "<C-f>", "<M-Right>"])
@pytest.mark.parametrize("register", ["q", "Q"])
def test_a_macro_has_what_was_accepted(in_neovim: Open, key: str, register: str) -> None:
    action = "accept" if key == "<Tab>" else "accept_word"
    neovim = in_neovim("start\n", setup={"keymaps": {action: key}})
    neovim.until_ready()
    neovim.keys("qqA!<Esc>q" if register == "Q" else "")
    first = neovim.text().rstrip("\n")
    neovim.keys(f"q{register}o")
    for _ in range(2):
        neovim.offered(lambda ghost: len(ghost.split()) > 1)
        before = neovim.around_cursor()[0]
        neovim.keys(key)
        neovim.eventually(partial(lambda was: neovim.around_cursor()[0] != was, before), "it is not accepted")
        neovim.type("; ")
    neovim.keys("<Esc>q")
    written = neovim.text().removeprefix(first)

    neovim.keys("G@q")

    neovim.eventually(lambda: neovim.text() != first + written, "the macro does nothing")
    last = "!" if register == "Q" else ""
    assert neovim.text() == f"{first}{written.removesuffix(chr(10))}{last}{written}"
    neovim.keys("G@q")
    assert neovim.text().endswith(f"{last}{written}")


SNIPPET = "vim.snippet.expand('${1:first}\\n${2:second}\\n${3:third}\\n')"


@pytest.fixture
def in_snippet(in_neovim: Open) -> Neovim:
    """A Neovim in a snippet of three lines, each a place to fill in; the first one is selected."""
    neovim = in_neovim(NOTES, setup={"keymaps": KEYMAPS})
    neovim.until_ready()
    neovim.keys("Go")
    neovim.eventually(lambda: mode(neovim) == "i", "it is not insert mode")
    neovim.lua(SNIPPET)
    neovim.eventually(lambda: mode(neovim) == "s", "the first place is not selected")
    return neovim


def test_tab_jumps_in_a_snippet_from_a_selected_place(in_snippet: Neovim) -> None:
    in_snippet.keys("<Tab>")

    in_snippet.eventually(lambda: in_snippet.cursor()[0] == 4, "the second place is not reached")
    assert in_snippet.text() == f"{NOTES}first\nsecond\nthird\n\n"


def test_tab_jumps_in_a_snippet_and_takes_no_suggestion(in_snippet: Neovim) -> None:
    in_snippet.offered()
    first = in_snippet.text().splitlines()[2]

    in_snippet.keys("<Tab>")

    in_snippet.eventually(lambda: in_snippet.cursor()[0] == 4, "the second place is not reached")
    assert in_snippet.text() == f"{NOTES}{first}\nsecond\nthird\n\n"


@pytest.mark.parametrize("key", ["<F5>", "<S-F5>", "<C-F12>"])
def test_a_function_key_that_has_nothing_to_do_types_nothing(quiet: Open, key: str) -> None:
    neovim = quiet("accept_word", key)

    neovim.keys(f"A{key} of")

    neovim.eventually(lambda: neovim.text() == TEXT.replace("two", "two of"), "it types something")


@pytest.mark.parametrize(
    ("typed", "now"),
    [("la", TEXT), ("ea", TEXT.replace("one", "one\t")), ("I", f"\t{TEXT}")],
)
def test_tab_can_be_kept_from_splitting_a_word_where_nothing_is_shown(in_neovim: Open, typed: str, now: str) -> None:
    options = {"keymaps": {"accept": "<Tab>"}, "tab": "inside words only accept", **NOTHING_SHOWN}
    neovim = in_neovim(TEXT, setup=options)

    neovim.keys(f"{typed}<Tab>x")

    after = {"la": "on|e", "ea": "one\t|", "I": "\t|one"}[typed]
    neovim.eventually(lambda: neovim.text().startswith(after.replace("|", "x")), "it does something else")
    assert neovim.text() == now.replace(after.replace("|", ""), after.replace("|", "x"), 1)


def test_tab_inside_a_word_is_a_tab_unless_the_user_chose_otherwise(quiet: Open) -> None:
    neovim = quiet("accept", "<Tab>")

    neovim.keys("la<Tab>")

    neovim.eventually(lambda: neovim.text() == TEXT.replace("one", "on\te"), "it does something else")


@pytest.mark.parametrize(("typed", "at"), [("$", "- |\n"), ("0", "|- \n")])
def test_the_command_asks_from_normal_mode_and_goes_on_in_insert_mode(in_neovim: Open, typed: str, at: str) -> None:
    neovim = in_neovim(NOTES)
    neovim.until_ready()
    neovim.keys(f"G{typed}:Midspan trigger<CR>")

    ghost = neovim.eventually(neovim.ghost, "nothing is suggested")
    neovim.keys("<Tab>")

    neovim.eventually(lambda: neovim.text().endswith(at.replace("|", ghost)), "it is not accepted")
    assert mode(neovim) == "i"


def after(neovim: Neovim, seconds: float) -> None:
    """Let this time pass."""
    until_s = time.monotonic() + seconds
    neovim.eventually(lambda: time.monotonic() >= until_s, "the clock stands")


def answer_slowly(neovim: Neovim) -> None:
    """Type until the median time of an answer is as on a busy machine: its engine stands for a while."""
    pid = neovim.report()["engine"]["pid"]
    while ((neovim.status() or {}).get("medianMs") or 0) < 400:
        os.kill(pid, signal.SIGSTOP)
        neovim.type(" z")
        after(neovim, 0.8)
        os.kill(pid, signal.SIGCONT)
        neovim.settled()


def test_a_slow_model_is_asked_while_the_user_types_on(neovim: Neovim) -> None:
    neovim.type("x")
    neovim.settled()
    answer_slowly(neovim)
    asked = neovim.asked()

    keys = 0
    while neovim.asked() == asked and keys < 40:
        neovim.type("qxzj"[keys % 4])
        after(neovim, 0.12)  # as fast as people type
        keys += 1

    assert keys < 40, "no key of a person who types on asks for anything"

"""Suggestions in real Neovim, with our plugin, the real server and engine, and the embedded model."""

import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from neovim import NOTES, PANGRAMS, PROGRAM, Neovim, Setup, environment, write_init
from support.lsp_editor import engine_home
from support.processes import children
from terminal import Terminal

Open = Callable[..., Neovim]


def test_what_is_shown_is_what_is_accepted(neovim: Neovim) -> None:
    ghost = neovim.offered()
    before, after = neovim.around_cursor()

    neovim.after_answer(lambda: neovim.keys("<Tab>"))

    assert neovim.saved() == before + ghost + after
    assert neovim.report()["accepted"] == 1
    assert neovim.messages() == []


def test_undo_takes_back_what_was_accepted_and_no_more(neovim: Neovim) -> None:
    ghost = neovim.offered()
    before, after = neovim.around_cursor()
    neovim.after_answer(lambda: neovim.keys("<Tab>"))
    assert neovim.text() == before + ghost + after

    neovim.keys("<Esc>u")

    assert neovim.saved() == before + after


def test_a_word_is_accepted_and_the_rest_stays_in_sight(neovim: Neovim) -> None:
    ghost = neovim.offered(lambda ghost: len(ghost.split()) > 1 and ghost[0].isalpha())
    before, after = neovim.around_cursor()

    neovim.keys("<C-f>")
    word = neovim.eventually(lambda: neovim.around_cursor()[0].removeprefix(before), "no word is accepted")

    assert ghost.startswith(word)
    assert " " not in word
    assert neovim.ghost() == ghost.removeprefix(word), "no flicker: the rest is there at once"
    assert neovim.settled() == ghost.removeprefix(word)
    assert neovim.saved() == before + word + after


def test_a_suggestion_can_be_taken_word_by_word_as_fast_as_one_types(neovim: Neovim) -> None:
    ghost = neovim.offered(lambda ghost: len(ghost.split()) > 1 and "\n" not in ghost)
    before, after = neovim.around_cursor()

    while neovim.ghost() and neovim.text() != before + ghost + after:
        at = neovim.cursor()
        neovim.keys("<C-f>")

        def moved(start: tuple[int, int] = at) -> bool:
            return neovim.cursor() != start

        neovim.eventually(moved, "the cursor does not move")

    assert neovim.text() == before + ghost + after
    neovim.eventually(lambda: neovim.report()["accepted"] == 1, "taken in pieces is taken")


def test_a_line_is_accepted(neovim: Neovim) -> None:
    ghost = neovim.offered()
    before, after = neovim.around_cursor()

    neovim.after_answer(lambda: neovim.keys("<C-l>"))

    assert neovim.saved() == before + ghost.split("\n")[0] + after


@pytest.mark.parametrize(("key", "tab"), [("<Tab>", []), ("<C-l>", []), ("<Tab>", "by line")])
def test_several_lines_are_accepted_at_once_or_one_by_one(
    in_neovim: Open, neovim_settings: dict[str, Any], key: str, tab: object
) -> None:
    steps = "\nopen the box\nread the label\nclose the box\n"
    setup = {"settings": {**neovim_settings, "maxTokens": 48}, "tab": tab}
    neovim = in_neovim("Notes:\n" + 2 * steps, setup=setup)
    neovim.until_ready()
    neovim.keys("GA")
    ghost = neovim.offered(lambda ghost: "\n" in ghost, keys="\n" * 30)
    before, after = neovim.around_cursor()

    lines = re.findall(r"\n*[^\n]+", ghost)  # an empty line is taken together with the next
    for _ in lines if key == "<C-l>" or tab else [ghost]:
        neovim.after_answer(lambda: neovim.keys(key))

    assert neovim.saved() == before + ghost + after
    assert neovim.report()["accepted"] == 1


def test_a_dismissed_suggestion_does_not_come_back_until_the_text_changes(neovim: Neovim) -> None:
    neovim.offered()
    before, after = neovim.around_cursor()

    neovim.keys("<C-e>")
    neovim.eventually(lambda: neovim.ghost() is None, "the suggestion stays")
    neovim.eventually(lambda: neovim.report()["dismissed"] == 1, "the server does not know")

    neovim.after_answer(lambda: neovim.keys("<Left>"))
    assert neovim.after_answer(lambda: neovim.keys("<Right>")) is None
    assert neovim.around_cursor() == (before, after)
    assert neovim.offered()


def test_typing_along_keeps_the_suggestion_without_asking_the_engine(neovim: Neovim) -> None:
    ghost = neovim.offered(lambda ghost: len(ghost) > 3 and "\n" not in ghost)
    asked = neovim.report()["asked"]

    for typed in range(1, 4):
        rest = neovim.after_answer(partial(neovim.type, ghost[typed - 1]))
        assert rest == (ghost[typed:] or None)

    report = neovim.report()
    assert report["asked"] == asked
    assert report["reused"] >= 3


@pytest.mark.parametrize("at_once", [True, False])
def test_one_more_matching_character_leaves_the_right_text(neovim: Neovim, at_once: bool) -> None:
    ghost = neovim.offered(lambda ghost: len(ghost) > 2)
    before, after = neovim.around_cursor()

    if at_once:
        neovim.keys(ghost[0].replace("<", "<lt>") + "<Tab>")
    else:
        neovim.type(ghost[0])
        assert neovim.ghost() == ghost[1:]
        neovim.keys("<Tab>")

    neovim.eventually(lambda: neovim.text() == before + ghost + after, "the text is another")
    assert neovim.saved() == before + ghost + after


def test_another_character_hides_the_suggestion_and_gives_the_key_back(neovim: Neovim) -> None:
    ghost = neovim.offered(lambda ghost: ghost[0] != "~")
    before, after = neovim.around_cursor()

    neovim.type("~")
    assert neovim.ghost() != ghost[1:]
    neovim.keys("<Tab>")

    assert neovim.text() == before + "~\t" + after


def test_a_quote_that_closes_itself_is_not_doubled(in_neovim: Open) -> None:
    quoted = "".join(f'words.append("{word}")\n' for word in ("fox", "dog", "box", "jug"))
    neovim = in_neovim(f"words = []\n{quoted}w\n", "words.py", extra="""vim.keymap.set('i', '"', '""<Left>')""")
    neovim.until_ready()
    neovim.keys("GA")
    # Without its closing quote the text would be as true after as before.
    ghost = neovim.offered(lambda ghost: ghost.count('"') == 2, keys=f"ords.append{PANGRAMS}")
    typed, _, stale = ghost.partition('"')
    if typed:
        neovim.after_answer(lambda: neovim.type(typed))

    neovim.type('"')

    assert neovim.around_cursor()[1].startswith('"')
    assert neovim.ghost() != stale, "what was true without the second quote is not shown"
    rest = neovim.settled() or ""
    assert '"' not in rest
    before, after = neovim.around_cursor()
    neovim.after_answer(lambda: neovim.keys("<Tab>"))
    assert neovim.saved() == before + (rest or "\t") + after


def test_in_the_middle_of_a_line_what_follows_is_not_repeated(in_neovim: Open) -> None:
    neovim = in_neovim("def bill(price):\n    total = price * (1 + tax_rate)\n    return total\n", "bill.py")
    neovim.until_ready()
    neovim.keys("jf(i")

    ghost = neovim.offered()
    before, after = neovim.around_cursor()
    neovim.after_answer(lambda: neovim.keys("<Tab>"))

    assert after.startswith("(1 + tax_rate)\n")
    assert "tax_rate" not in ghost
    assert "\n" not in ghost
    assert neovim.saved() == before + ghost + after


def test_a_key_without_a_suggestion_does_what_it_did_before(in_neovim: Open) -> None:
    neovim = in_neovim(extra="vim.keymap.set('i', '<C-l>', function() return 'mapped' end, { expr = true })")
    neovim.lua("vim.b.midspan = false")

    neovim.keys("GA<Tab>x<C-l>")

    assert neovim.text() == "Shopping list:\n- \txmapped\n"


def test_no_key_is_taken_unasked(in_neovim: Open) -> None:
    neovim = in_neovim(setup={"keymaps": {}})

    assert "Midspan" not in neovim.nvim.command_output("imap")


@pytest.mark.skipif(not PROGRAM.exists(), reason="Neovim is not here: make editors")
def test_on_a_screen_the_ghost_has_its_colour(neovim_settings: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(NOTES)
    extra = """
    vim.api.nvim_set_hl(0, 'ComplHint', { fg = '#123456' })
    vim.g.loaded_matchparen = 1  -- a suggestion may end with a bracket
    vim.o.statusline = "%{v:lua.require'midspan'.statusline()}|"
    """
    setup = Setup({"settings": neovim_settings, "keymaps": {"accept": "<Tab>"}}, extra)
    terminal = Terminal(tmp_path)
    command = [str(PROGRAM), "-u", str(write_init(tmp_path, setup)), str(file)]
    terminal.start(command, environment(tmp_path, setup))
    try:
        terminal.eventually(lambda screen: "Midspan|" in screen)
        terminal.keys("G", "A", "a")
        red, green, blue = 0x12, 0x34, 0x56
        pattern = rf"- a\x1b\[[\d;]*38;2;{red};{green};{blue}m([^\x1b\n]+)"
        ghost = terminal.eventually(lambda _: re.search(pattern, terminal.coloured())).group(1).rstrip()

        terminal.keys("Tab")
        terminal.eventually(lambda _: re.search(r"- a" + re.escape(ghost), terminal.coloured()))
        terminal.keys("Escape")
        terminal.eventually(lambda screen: "INSERT" not in screen)
        terminal.keys(":wall", "Enter")
        terminal.eventually(lambda _: f"- a{ghost}\n" in file.read_text())
    finally:
        terminal.close()


def test_what_is_typed_while_the_engine_starts_gets_its_suggestion_without_another_key(
    in_neovim: Open, tmp_path: Path
) -> None:
    code = "".join(f"def {name}_value(numbers):\n    return numbers[0]\n\n\n" for name in ("first", "second", "third"))
    with engine_home(tmp_path / "cold", Path("embedded")):
        neovim = in_neovim(f"{code}def fourth_value(numbers):\n", "cold.py", setup={"settings": {}})
        neovim.keys("Go")
        neovim.keys("<C-u>    ret")
        typed = time.monotonic()
        ghost = neovim.eventually(neovim.ghost, "nothing is suggested")
        print(f"\n{time.monotonic() - typed:.1f} s after the last key, in a cold editor with a cold engine")
        assert ghost.startswith("urn numbers")


def test_a_language_server_that_is_killed_starts_again(neovim: Neovim) -> None:
    neovim.offered()

    for _ in range(2):
        (server,) = servers(neovim)
        server.kill()
        neovim.eventually(lambda: [each for each in servers(neovim) if each != server], "no server is started")  # noqa: B023
        assert neovim.offered()


def test_a_language_server_that_dies_again_and_again_is_left(neovim: Neovim) -> None:
    for _ in range(5):
        server = neovim.eventually(lambda: servers(neovim), "no server is started")[0]
        server.kill()
        neovim.eventually(lambda: not server.is_running(), "it lives")  # noqa: B023
        neovim.eventually(lambda: server not in servers(neovim), "it lives")  # noqa: B023

    neovim.eventually(lambda: "ended 5 times" in " ".join(neovim.messages()), "nothing is said")
    assert servers(neovim) == []


def test_each_buffer_without_a_name_is_served_for_its_own_text(in_neovim: Open) -> None:
    neovim = in_neovim()
    neovim.until_ready()
    for word in ("apples", "oranges"):
        neovim.nvim.command("hide enew | setlocal filetype=python")
        neovim.eventually(lambda: neovim.lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0"), "not served")
        neovim.keys("i")
        neovim.type(f"{word}_in_the_box = 12\nprint({word}_in_the_box)\n")
        neovim.settled()
        neovim.keys("<Esc>")

    # With one URI for both the server would now have the text of the other one.
    neovim.nvim.command("buffer 2")
    neovim.keys("Goprint(")
    ghost = neovim.offered(lambda ghost: "_in_the" in ghost, keys="app")
    assert "oranges" not in ghost
    file = neovim.file.with_name("saved.py")
    neovim.keys(f"<Tab><Esc>:write {file}<CR>")
    neovim.eventually(lambda: neovim.nvim.current.buffer.name == str(file), "it is not written")
    neovim.keys("Go")
    neovim.settled()
    assert neovim.offered(keys="print(app")


def servers(neovim: Neovim) -> list[psutil.Process]:
    """Return the language servers of a Neovim that live."""
    return children(neovim.lua("return vim.uv.os_getpid()"), lambda child: "midspan-lsp" in " ".join(child.cmdline()))

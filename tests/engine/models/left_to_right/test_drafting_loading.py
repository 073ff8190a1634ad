"""Tiny random checkpoints of Qwen2.5-Coder: how they are recognised, their prompts, and their drafters."""

from itertools import pairwise
from pathlib import Path

import attrs
import pytest
from support.drafters import load_fim
from support.fim_checkpoints import SPECIAL_TOKENS, save_fim_checkpoint
from support.masked_checkpoints import save_checkpoint, write_json
from tiny_gemma import save_tiny_gemma

from engine.errors import ModelError
from engine.models.left_to_right.drafters import MaskedDrafter, StreamDrafter
from engine.models.left_to_right.prompt import LONG_LINE, NEAR_STRIDE, NEAR_TOKENS, SUFFIX_TOKENS
from engine.models.left_to_right.torch_model import QwenFimModel
from engine.models.load import load
from engine.protocol.messages import Fill, Snippet
from engine.schedule.caches import common_prefix

HOLE = Fill(id=1, prefix="def area(width, height):\n    return ", suffix="\n\nprint(area(2, 3))\n")
PREFIX, SUFFIX, MIDDLE, FILE, REPOSITORY = (
    SPECIAL_TOKENS[f"<|{name}|>"] for name in ("fim_prefix", "fim_suffix", "fim_middle", "file_sep", "repo_name")
)
MOST_BELOW = SUFFIX_TOKENS["suffix inside"]


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> QwenFimModel:
    return load_fim(save_fim_checkpoint(tmp_path_factory.mktemp("released") / "qwen", {"drafter": "none"}).folder)


def shown(family: QwenFimModel, tokens: list[int]) -> str:
    """Return tokens as text, special tokens by their names."""
    return "".join(family.tokenizer.decode([token], skip_special_tokens=False) for token in tokens)


def test_a_qwen_without_a_mask_reads_left_to_right(tmp_path: Path) -> None:
    family = load_fim(save_fim_checkpoint(tmp_path / "my-qwen").folder)
    info = family.info
    assert (info.name, info.family, info.licence, info.noise) == ("my-qwen", "qwen-fim", "Apache-2.0", "none")
    assert (info.context_tokens, info.reading_tokens, info.dtype) == (2048, 1024, "float32")
    assert family.marks.ends[0] == SPECIAL_TOKENS["<|endoftext|>"]
    assert set(family.marks.ends) == set(SPECIAL_TOKENS.values()) - {SPECIAL_TOKENS["<|im_start|>"]}
    assert set(family.never) == {SPECIAL_TOKENS["<|im_start|>"], *range(393, 400)}


def test_the_embedded_model_drafts_unless_another_is_named(tmp_path: Path, tiny_model: Path) -> None:
    def drafter(name: str, notes: dict[str, object] | None) -> object:
        drafting = load_fim(save_fim_checkpoint(tmp_path / name, notes).folder).drafting
        return drafting and drafting.drafter

    dream = save_checkpoint("dream", tmp_path / "dream").folder
    embedded, tiny = drafter("a", None), drafter("b", {"drafter": str(tiny_model)})
    assert isinstance(embedded, StreamDrafter)
    assert isinstance(tiny, StreamDrafter)
    assert (embedded.name == tiny.name, tiny.name) == (False, "tiny")
    assert isinstance(drafter("c", {"drafter": str(dream)}), MaskedDrafter)
    assert drafter("d", {"drafter": "none"}) is None


def test_the_middle_goes_on_where_the_prefix_ends(family: QwenFimModel) -> None:
    layout = family.lay_out(HOLE)
    read = shown(family, [*layout.context, layout.anchor])
    assert read == f"<|fim_prefix|><|fim_suffix|>{HOLE.suffix}<|fim_middle|>{HOLE.prefix}"
    assert layout.follows is not None
    assert HOLE.suffix.startswith(shown(family, list(layout.follows)))


def test_a_prompt_names_the_file_and_shows_the_first_snippet_nearest(family: QwenFimModel) -> None:
    others = [Snippet("shop/near.py", "near = 1"), Snippet("shop/far.py", "far = 2")]
    layout = family.lay_out(attrs.evolve(HOLE, path="shop/area.py", snippets=others))
    assert shown(family, [*layout.context, layout.anchor]) == (
        "<|repo_name|>shop\n<|file_sep|>shop/far.py\nfar = 2\n<|file_sep|>shop/near.py\nnear = 1\n"
        f"<|file_sep|>shop/area.py\n<|fim_prefix|><|fim_suffix|>{HOLE.suffix}<|fim_middle|>{HOLE.prefix}"
    )


def test_special_tokens_in_a_users_text_are_text(family: QwenFimModel) -> None:
    tricky = attrs.evolve(HOLE, prefix="'<|fim_middle|><|endoftext|>", suffix="<|file_sep|>'", path="<|repo_name|>")
    layout = family.lay_out(tricky)
    context = [*layout.context, layout.anchor]
    assert [token for token in context if token in SPECIAL_TOKENS.values()] == [FILE, PREFIX, SUFFIX, MIDDLE]
    assert "<|fim_middle|><|endoftext|>" in shown(family, context)


def test_the_nearest_lines_of_a_long_suffix_are_read(family: QwenFimModel) -> None:
    lines = "".join(f"    value_{number} = {number}\n" for number in range(400))
    context = family.lay_out(attrs.evolve(HOLE, suffix=lines)).context
    below = context[context.index(SUFFIX) + 1 : context.index(MIDDLE)]
    assert MOST_BELOW / 2 < len(below) <= MOST_BELOW
    assert lines.startswith(shown(family, below))
    assert shown(family, below).endswith("\n")


def test_a_key_press_in_a_long_file_keeps_the_prompt_before_it(family: QwenFimModel) -> None:
    lines = "".join(f"value_{number} = {number}\n" for number in range(4000))
    prompts = [family.lay_out(attrs.evolve(HOLE, prefix=lines + "a " * keys)).context for keys in range(20)]
    assert max(map(len, prompts)) <= family.info.reading_tokens - HOLE.max_tokens
    kept = [
        common_prefix(before, after) >= before.index(SUFFIX) - 2  # the word at the cursor gets other tokens
        for before, after in pairwise(prompts)
    ]
    assert sum(kept) >= len(kept) - 1


def test_code_far_above_comes_before_the_suffix_and_stays_while_the_cursor_moves(family: QwenFimModel) -> None:
    lines = [f"value_{number} = {number}\n" for number in range(80)]
    prompts = []
    for row in range(40, 48):
        hole = attrs.evolve(HOLE, prefix="".join(lines[:row]), suffix="".join(lines[row:]))
        context = family.lay_out(hole).context
        suffix, middle = context.index(SUFFIX), context.index(MIDDLE)
        far, near = context[context.index(PREFIX) + 1 : suffix], context[middle + 1 :]
        assert hole.prefix.startswith(shown(family, far) + shown(family, near)[:-2])
        assert shown(family, far).endswith("\n")
        assert NEAR_TOKENS - NEAR_STRIDE - LONG_LINE <= len(near) <= NEAR_TOKENS
        prompts.append(context)
    kept = [common_prefix(before, after) > before.index(SUFFIX) for before, after in pairwise(prompts)]
    assert kept.count(False) <= 1  # One stride at most.


@pytest.mark.parametrize("start", [0, 1])
def test_a_line_up_or_down_in_a_long_file_moves_no_left_edge(family: QwenFimModel, start: int) -> None:
    lines = [f"value_{'x' * (number % 23)} = {number}\n" for number in range(600)]
    prompts = []
    for row in range(300 + start, 316, 2):
        prompts.append(
            family.lay_out(attrs.evolve(HOLE, prefix="".join(lines[:row]), suffix="".join(lines[row:]))).context
        )
        assert len(prompts[-1]) <= family.info.reading_tokens - HOLE.max_tokens
    firsts = [context[context.index(PREFIX) + 1 :][:24] for context in prompts]
    assert sum(before != after for before, after in pairwise(firsts)) <= 2


@pytest.mark.parametrize(
    ("notes", "changed", "says"),
    [
        ({"drafter": "no-such-model"}, {}, "no model 'no-such-model'"),
        ({"drafter": 5}, {}, "drafter 5; a value of type str"),
        ({"family": "qwen-fim"}, {"model_type": "llama"}, "said to be of family qwen-fim, but its config.json has"),
        ({"context_tokens": 8}, {}, "at least 64"),
        ({"drafters": "none"}, {}, "unknown key 'drafters'"),
        (None, {"vocab_size": 390}, "do not fit|has 393 tokens, its network 390"),
    ],
)
def test_a_wrong_checkpoint_gives_a_one_line_error(
    tmp_path: Path, notes: dict[str, object] | None, changed: dict[str, object], says: str
) -> None:
    folder = save_fim_checkpoint(tmp_path / "qwen", notes, **changed).folder
    with pytest.raises(ModelError, match=says) as caught:
        load(str(folder), threads=1, device="cpu")
    assert "\n" not in str(caught.value)


def test_only_the_embedded_and_masked_models_can_draft(tmp_path: Path) -> None:
    folder = save_fim_checkpoint(tmp_path / "qwen").folder
    for drafter in (folder, save_tiny_gemma(tmp_path / "gemma")):
        write_json(folder / "midspan.json", {"drafter": str(drafter)})
        with pytest.raises(ModelError, match="which cannot draft: take a masked diffusion model"):
            load(str(folder), threads=1, device="cpu")


def test_a_qwen_without_special_tokens_for_filling_gives_a_one_line_error(tmp_path: Path) -> None:
    folder = save_fim_checkpoint(tmp_path / "qwen").folder
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace("<|fim_middle|>", "<|another|>"))
    with pytest.raises(ModelError, match=r"without <\|fim_prefix\|>, .* so it cannot fill holes") as caught:
        load(str(folder), threads=1, device="cpu")
    assert "\n" not in str(caught.value)

"""A model in a GGUF fills holes: token for token what transformers writes, with drafts and without."""

from pathlib import Path

import attrs
import pytest
import torch
from support.drafting_memory import DraftingMemory
from support.fill_tasks import run_to_end
from support.gguf_files import SHAPES, SPECIALS, TinyNetwork, tiny_network
from support.kernel_passes import skip_without

from engine.errors import ModelError
from engine.fill.interface import Bounds, FillMemory, FillStrategy, FillTask, Layout
from engine.fill.sampler import Sampler
from engine.models.left_to_right.load import load_gguf
from engine.models.left_to_right.model import LeftToRightModel
from engine.models.load import load as load_any
from engine.protocol.messages import Fill
from engine.schedule.scheduler import Scheduler

PREFIX = "def total(values):\n    result = 0\n"
FILLS = [
    Fill(id=1, prefix=PREFIX, suffix="\n\ndef other():\n    return 1\n", extent="lines", max_tokens=40),
    Fill(id=2, prefix=PREFIX * 3, suffix="    return result\n", extent="lines", max_tokens=24, path="a/b/c.py"),
    Fill(id=3, prefix="import os\n", suffix="", extent="lines", max_tokens=12),
]


@pytest.fixture(scope="module", params=SHAPES)
def tiny(request: pytest.FixtureRequest) -> TinyNetwork:
    return tiny_network(request.param)


def load(
    tiny: TinyNetwork, path: Path, specials: tuple[str, ...] = SPECIALS, kernel: str = "numpy"
) -> LeftToRightModel:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIDSPAN_KERNEL", kernel)  # in fp32, as transformers
        return load_gguf(tiny.save_gguf(path, specials=specials), 1)


def filled(
    model: LeftToRightModel, fill: Fill, rule: FillStrategy | None = None, memory: FillMemory | None = None
) -> tuple[list[int], int]:
    """Return the tokens of a fill and its passes."""
    bounds = Bounds(fill.extent, fill.max_tokens)
    strategy = rule or model.default
    layout = attrs.evolve(model.lay_out(fill), resumes=None)  # Random text is cut at odd places.
    task = FillTask(model.new_context(), layout, bounds, Sampler(), strategy, memory)
    filling = run_to_end(model, model.start_fill(task))
    return list(filling.committed().tokens), filling.steps


def read_of(layout: Layout) -> list[int]:
    """All that is read before the first token of the fill."""
    assert layout.anchor is not None
    return [*layout.context, layout.anchor]


@pytest.mark.parametrize("specials", [SPECIALS, SPECIALS[:1]], ids=["fim", "no fim"])
def test_a_fill_is_what_generate_writes_whatever_is_drafted(
    tiny: TinyNetwork, tmp_path: Path, specials: tuple[str, ...]
) -> None:
    model = load(tiny, tmp_path / "tiny.gguf", specials)
    vocabulary, ends = model.tokenizer.get_vocab(), model.specials.ends
    never = [token for text, token in vocabulary.items() if text.startswith(("[PAD", "<|")) and token not in ends]
    for fill in FILLS:
        layout = model.lay_out(fill)
        assert layout.typed == ""
        expected = tiny.greedy(read_of(layout), fill.max_tokens, ends, never)
        alone, steps = filled(model, fill, FillStrategy("left-to-right"))
        assert alone == expected
        assert steps >= len(expected)
        for drafts in (expected, [*expected[:3], 7, 7, 7], [9, 9]):
            found, drafted = filled(model, fill, memory=DraftingMemory(drafts))
            assert found == expected
            assert drafted <= steps
        assert filled(model, fill, memory=DraftingMemory(expected))[1] < max(steps, 2)


def test_the_prompt_is_the_familys_own(tmp_path: Path) -> None:
    tiny, fill = tiny_network("qwen2"), attrs.evolve(FILLS[0], path="src/total.py")
    model = load(tiny, tmp_path / "tiny.gguf")
    layout = model.lay_out(fill)
    text = model.tokenizer.decode(read_of(layout), skip_special_tokens=False)
    assert text == (
        f"<|repo_name|>src\n<|file_sep|>src/total.py\n<|fim_prefix|><|fim_suffix|>{fill.suffix}<|fim_middle|>{fill.prefix}"
    )
    plain = load(tiny, tmp_path / "plain.gguf", SPECIALS[:1])
    layout = plain.lay_out(fill)
    assert plain.tokenizer.decode(read_of(layout)) == fill.prefix
    assert plain.tokenizer.decode(layout.below) == fill.suffix


def test_a_typed_piece_is_written_again_by_the_fill(tmp_path: Path) -> None:
    model = load(tiny_network("qwen2"), tmp_path / "tiny.gguf")
    fill = attrs.evolve(FILLS[0], prefix=PREFIX + "    resu")
    layout = model.lay_out(fill)
    assert layout.typed == " resu"
    tokens, _ = filled(model, fill)
    assert "".join(model.texts_of(tokens)).startswith(" resu")


def test_a_rule_that_denoises_is_refused(tmp_path: Path) -> None:
    model = load(tiny_network("llama"), tmp_path / "tiny.gguf")
    with pytest.raises(ModelError, match="it has verify, left-to-right"):
        model.lay_out(attrs.evolve(FILLS[0], rule="threshold"))


async def test_holes_share_passes_and_contexts_are_kept_between_keys(tmp_path: Path) -> None:
    model = load(tiny_network("qwen2"), tmp_path / "tiny.gguf", kernel="")
    scheduler = Scheduler(model)
    await scheduler.start()
    try:
        alone = [(await scheduler.submit(fill, None).result).candidates[0].text for fill in FILLS]
        tickets = [scheduler.submit(fill, None) for fill in FILLS]
        answers = [await ticket.result for ticket in tickets]
        assert [answer.candidates[0].text for answer in answers] == alone
        assert all(answer.cached_tokens == answer.context_tokens for answer in answers)
        two = (await scheduler.submit(attrs.evolve(FILLS[0], candidates=2), None).result).candidates
        assert two[0].text == alone[0]
    finally:
        await scheduler.stop()


@pytest.mark.parametrize("kind", SHAPES)
def test_a_folder_of_safetensors_runs_in_the_kernel_too(tmp_path: Path, kind: str) -> None:
    skip_without("plain")
    tiny = tiny_network(kind)
    for weight in tiny.network.parameters():  # a GGUF has vectors in fp32
        weight.data = weight.data.bfloat16().float()
    model = load_any(str(tiny.save_folder(tmp_path / "tiny", torch.bfloat16)), threads=1, device="cpu")
    assert isinstance(model, LeftToRightModel)
    assert model.info.dtype.startswith("int8, ")
    same = load_gguf(tiny.save_gguf(tmp_path / "tiny.gguf", "BF16"), 1)
    for fill in FILLS:
        assert filled(model, fill) == filled(same, fill)

"""The mixture in the models that have logits at hand: masked ones and those that fill left to right."""

from pathlib import Path

import attrs
import numpy as np
import pytest
from known_line import LINE
from mixing_networks import believing_network
from support.drafters import fim_family
from support.fill_tasks import run_to_end
from support.fim_checkpoints import save_fim_checkpoint
from support.masked_canvases import load_tiny
from support.masked_checkpoints import save_checkpoint

from engine.errors import ModelError
from engine.fill.interface import Bounds, Filling, FillStrategy, FillTask, Model
from engine.fill.sampler import Query, Sampler
from engine.fill.stream import StreamPass
from engine.memory.mixture import MixedMemory
from engine.memory.workspace import EngineMemories, WorkspaceMemories
from engine.models.left_to_right.drafting import Drafting
from engine.models.left_to_right.torch_model import QwenFimModel
from engine.models.load import load
from engine.models.masked.model import MaskedModel
from engine.models.masked.rows import MaskedPass
from engine.protocol.messages import Fill, RuleName

HOLE = Fill(
    id=1,
    prefix="def work(other_thing):\n    destination_of_everything =",
    suffix="\n    return 1\n",
    path="a/b.py",
    max_tokens=48,
    budget_ms=6e5,
    rule="left-to-right",
    workspace="home",
)
MASKED = ("dream", "dreamon", "llada")
DRAFTED = ("none", "embedded")
MODEL_SHARE = float(1 / (1 + np.exp(4)))
"""The weight that a believing network gives to a model's probability where only the workspace knows followers."""


@pytest.fixture(scope="module", params=[*MASKED, *DRAFTED])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("released") / str(request.param)
    return load_tiny(request.param, folder).model if request.param in MASKED else fim_family(folder, request.param)[1]


@pytest.fixture
def memories(model: Model) -> EngineMemories:
    return memories_of(model)


def memories_of(model: Model) -> EngineMemories:
    found = EngineMemories(model, model.tokenizer, believing_network(), 1 << 24, "both")
    found.learn("home", "known.py", np.array(found.tokenize("def f(other_thing):\n" + LINE * 3), np.int32))
    return found


def begin(model: Model, fill: Fill, memory: MixedMemory | None, temperature: float = 0.0) -> Filling:
    if isinstance(model, QwenFimModel) and model.drafting is not None and model.drafting.drafter is not None:
        # The length of drafts learns from fill to fill, and rounding depends on how many rows are read together.
        model.drafting = Drafting(model.drafting.drafter, model.tokenizer)
    bounds, sampler = Bounds(fill.extent, fill.max_tokens), Sampler(temperature, seed=3)
    task = FillTask(model.new_context(), model.lay_out(fill), bounds, sampler, FillStrategy(fill.rule), memory)
    return model.start_fill(task)


def rules_of(model: Model) -> tuple[RuleName, ...]:
    return ("left-to-right", "verify") if model.info.family == "qwen-fim" else ("left-to-right", "threshold", "entropy")


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_with_an_empty_memory_answers_are_equal_bit_for_bit(model: Model, temperature: float) -> None:
    empty = MixedMemory(WorkspaceMemories(1 << 20).rows("", "", [], []), believing_network(), None, model.end)
    for rule in rules_of(model):
        fill = attrs.evolve(HOLE, rule=rule, extent="lines", max_tokens=12)
        alone = run_to_end(model, begin(model, fill, None, temperature))
        mixed = run_to_end(model, begin(model, fill, empty, temperature))
        assert mixed.answer() == alone.answer()
        assert vars(mixed)["confidence"] == vars(alone)["confidence"]
        assert mixed.steps == alone.steps


def test_a_strong_run_gets_the_share_that_the_mixture_gives_it(model: Model, memories: EngineMemories) -> None:
    fill = attrs.evolve(HOLE, max_tokens=4, snippets=[])
    layout = model.lay_out(fill)
    memory = memories.for_fill(fill, layout)
    assert memory is not None
    known = memory.rows([layout.above[-12:]], ())
    (column,) = np.flatnonzero(known.shares[0, :, 1] > 0.9)
    token, share = int(known.named[0, column]), float(known.shares[0, column, 1])
    assert model.texts_of([token])[0].strip() in "unlikely_name"

    (result,) = model.run([naming(begin(model, fill, None), token)])
    alone = float(result.predictions.named[0, 0])
    filling = begin(model, fill, memory)
    (result,) = model.run([filling.next_pass()])
    filling.absorb(result, 1 << 20)
    first = filling.canvas()[0]
    assert first == model.texts_of([token])[0]
    filling.close("cancelled")
    expected = MODEL_SHARE * alone + (1 - MODEL_SHARE) * share
    assert filling.answer().confidence[0] == pytest.approx(expected, abs=1e-4)


def naming(filling: Filling, token: int) -> MaskedPass | StreamPass:
    """Return the fill's next pass, asking for the probability of a token at its first row."""
    item = filling.next_pass()
    query = Query(1, named=np.full((len(item.wanted), 1), token))
    if isinstance(item, MaskedPass):
        return attrs.evolve(item, query=query)
    assert isinstance(item, StreamPass)
    return attrs.evolve(item, query=query)


def test_a_line_of_the_workspace_is_completed(model: Model, memories: EngineMemories) -> None:
    memory = memories.for_fill(HOLE, model.lay_out(HOLE))
    filled = run_to_end(model, begin(model, HOLE, memory)).answer()
    assert len(filled.tokens) >= 4
    known = " unlikely_name(other_thing, 4711"  # ")" and the line's end are one token of this tokenizer
    # A middle of masks is as long as the model alone finds likely.
    assert known.startswith(filled.text) if isinstance(model, MaskedModel) else filled.text == known


def test_drafts_change_no_answer_with_a_memory(tmp_path: Path) -> None:
    model = fim_family(tmp_path / "qwen", "embedded")[1]
    for temperature in (0.0, 1.0):
        fill = attrs.evolve(HOLE, extent="lines", max_tokens=24)
        memory = memories_of(model).for_fill(fill, model.lay_out(fill))
        left = run_to_end(model, begin(model, fill, memory, temperature))
        verified = run_to_end(model, begin(model, attrs.evolve(fill, rule="verify"), memory, temperature))
        assert verified.answer() == left.answer()


def test_midspan_json_says_how_the_memory_is_used(tmp_path: Path) -> None:
    for use in ("windows", "mixture", "both"):
        saved = save_fim_checkpoint(tmp_path / use, {"drafter": "none", "memory": use})
        assert load(str(saved.folder), threads=1, device="cpu").memory_use == use
    masked = save_checkpoint("dream", tmp_path / "dream").folder
    (masked / "midspan.json").write_text('{"memory": "mixture"}')
    assert load(str(masked), threads=1, device="cpu").memory_use == "mixture"
    (masked / "midspan.json").write_text('{"memory": "everything"}')
    with pytest.raises(ModelError, match="says memory 'everything'; it can be mixture, windows, both"):
        load(str(masked), threads=1, device="cpu")

"""The rows that drafts cost, and that cached state gives the same drafts as reading everything again."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.masked_checkpoints import save_checkpoint

from engine.fill.interface import Pass
from engine.fill.sampler import PassResult
from engine.models.embedded.model import EmbeddedModel
from engine.models.left_to_right.drafters import MaskedDrafter, StreamDrafter
from engine.models.left_to_right.drafting import ROOM, Drafter, Unfinished
from engine.models.load import load
from engine.models.masked.model import MaskedModel
from engine.protocol.messages import Fill
from engine.schedule.caches import ContextCache

FILL = Fill(id=1, prefix="value = 1\n" * 20 + "def area(width, height):\n    return ", suffix="\n\nprint(area(2, 3))\n")
WRITTEN = "width * height + total(width, height) - margin(width) * margin(height)\n    " * 4
LENGTH = 8


@pytest.fixture(scope="module")
def embedded(tiny_model: Path) -> EmbeddedModel:
    family = load(str(tiny_model), threads=1, device="cpu")
    assert isinstance(family, EmbeddedModel)
    return family


@pytest.fixture(scope="module", params=["dream", "dreamon", "llada"])
def masked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MaskedModel:
    folder = save_checkpoint(request.param, tmp_path_factory.mktemp("released") / request.param).folder
    family = load(str(folder), threads=1, device="cpu", precision="fp32")
    assert isinstance(family, MaskedModel)
    return family


def drafts(drafter: Drafter, written: str = WRITTEN, stride: int = 4) -> list[list[int]]:
    """Return the drafts of one hole while `written` is added to it, `stride` characters at a time."""
    hole = Unfinished(FILL, length=LENGTH)
    found = []
    for stop in range(0, len(written) + 1, stride):
        hole.text = written[:stop]
        found += drafter.draft([hole])
    return found


def recorded(family: EmbeddedModel | MaskedModel, patch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that collects the rows of each pass of the model from now on."""
    run = family.run
    rows: list[int] = []

    def record(passes: Sequence[Pass]) -> list[PassResult]:
        rows.extend(item.rows for item in passes)
        return run(passes)

    patch.setattr(family, "run", record)
    return rows


def test_a_stream_is_read_once_and_gives_the_drafts_of_one_that_is_read_each_time(
    embedded: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful = StreamDrafter(embedded)
    forgetful.cache = ContextCache(embedded, 0)
    expected = drafts(forgetful)
    rows = recorded(embedded, monkeypatch)
    assert drafts(StreamDrafter(embedded)) == expected
    assert any(expected)
    assert rows[0] > 60
    written = len(embedded.tokenizer.encode(WRITTEN).ids)
    assert sum(count > 2 * LENGTH for count in rows) <= 1 + written / (ROOM - 2 * LENGTH)


def test_the_next_key_press_reuses_the_stream_of_the_last_hole(
    embedded: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafter, rows = StreamDrafter(embedded), recorded(embedded, monkeypatch)
    short = FILL.prefix[-80:]  # so that the left edge of the prefix does not move
    for typed in ("", "w", "wi", "width"):
        drafter.draft([Unfinished(Fill(id=1, prefix=short + typed, suffix=FILL.suffix), length=LENGTH)])
    assert rows[0] > 30
    assert max(rows[1:]) <= LENGTH + 8


def test_surroundings_are_read_every_few_drafts(masked: MaskedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    drafter, rows = MaskedDrafter(masked), recorded(masked, monkeypatch)
    assert len(drafts(drafter, WRITTEN[:60])) == 16
    reading = [at for at, count in enumerate(rows) if count > ROOM + 1]
    assert reading == [0, masked.traits.refresh_steps]


def test_written_text_that_fills_the_middle_becomes_part_of_the_prefix(masked: MaskedModel) -> None:
    drafter = MaskedDrafter(masked)
    assert len(drafts(drafter)) == len(WRITTEN) // 4 + 1
    assert any(drafts(drafter))


def test_a_draft_has_no_special_tokens_and_is_no_longer_than_asked(
    embedded: EmbeddedModel, masked: MaskedModel
) -> None:
    for drafter in (StreamDrafter(embedded), MaskedDrafter(masked)):
        special = drafter.tokenizer.get_added_tokens_decoder()
        for draft in drafts(drafter):
            assert len(draft) <= LENGTH
            assert not set(draft) & set(special)


def test_holes_drafted_together_are_drafted_as_alone(embedded: EmbeddedModel, masked: MaskedModel) -> None:
    fills = [Fill(id=number, prefix="x = 1\n" * number + FILL.prefix, suffix=FILL.suffix) for number in range(4)]
    for drafter in (StreamDrafter(embedded), MaskedDrafter(masked)):
        alone = [drafter.draft([Unfinished(fill, length=4 + fill.id)])[0] for fill in fills]
        assert drafter.draft([Unfinished(fill, length=4 + fill.id) for fill in fills]) == alone

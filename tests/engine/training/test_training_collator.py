"""Holes become batches with the same rows that the engine computes for them."""

import hashlib
from collections import Counter
from pathlib import Path

import attrs
import pytest
import torch
from small_run import LENGTH, RELATED, drawn_batch, drawn_holes, small_config, source_files

from engine.corpus.corpus import File
from engine.corpus.holes import HoleSampler
from engine.models.embedded.layout import LineEncoder
from engine.models.stock.token_bytes import TokenBytes, load_tokenizer
from engine.protocol.messages import Snippet
from engine.training.loader import Collator, batches, special_tokens_of
from engine.training.objective import visible
from engine.training.related import RelatedHoles


def test_tokenizing_line_by_line_gives_the_tokens_of_the_whole_text(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    encode = LineEncoder(tokenizer, TokenBytes(tokenizer))
    texts = [file.text for file in source_files()]
    for text in (*texts, *texts[:2], "", "\n", "\n\n  a\n", "a\r\nb\r\r\n", "  x = 1\n\n\ty\n", "no newline", "\r\n x"):
        assert encode(text) == tokenizer.encode(text, add_special_tokens=False).ids


def test_canvas_rows_follow_their_anchor_and_mask_every_token_that_they_predict(tiny_model: Path) -> None:
    config, tokenizer = small_config(), load_tokenizer(tiny_model / "tokenizer.json")
    special_tokens = special_tokens_of(tokenizer)
    batch = drawn_batch(tokenizer, 12, 48)
    length = batch.stream_rows
    for row in range(12):
        tokens = batch.tokens[row, :length]
        stream: list[int] = tokens[tokens != special_tokens.pad].tolist()
        first = int(torch.nonzero(batch.weights[row, :length] >= 1)[0])
        assert int(batch.anchors[row, 0]) == int(batch.middles[row]) == first
        for owner in batch.owners[row].unique():  # type: ignore[no-untyped-call]
            own = length + torch.nonzero(batch.owners[row] == owner)[:, 0]
            anchor = int(batch.anchors[row, own[0] - length])
            assert batch.positions[row, own].tolist() == list(range(anchor + 1, anchor + 1 + len(own)))
            known = [*stream, *[special_tokens.end] * 64][anchor + 1 : anchor + 2 + len(own)]
            assert batch.targets[row, own].tolist() == known[1:]
            shown, has_target = batch.tokens[row, own], batch.weights[row, own] > 0
            assert shown[0] == special_tokens.mask
            assert has_target[-1]
            assert torch.equal(shown[1:] == special_tokens.mask, has_target[:-1])
            unmasked = torch.tensor(known[:-1])
            assert torch.equal(shown[shown != special_tokens.mask], unmasked[shown != special_tokens.mask])
            after_end = anchor + 2 + torch.arange(len(own)) >= len(stream)
            expected = torch.where(after_end, config.objective.padding_weight, 1.0) * has_target
            torch.testing.assert_close(batch.weights[row, own], expected)


def test_canvases_are_drawn_with_the_odds_of_the_config(tiny_model: Path) -> None:
    config, tokenizer = small_config(), load_tokenizer(tiny_model / "tokenizer.json")
    batch = drawn_batch(tokenizer, 400, 160)
    widths, full = Counter[int](), 0
    for owners, masked in zip(batch.owners.tolist(), batch.masked, strict=True):
        for owner in range(owners[-1]):  # the last canvas of a sequence may be cut short
            widths[owners.count(owner)] += 1
            full += int(masked[owners.index(owner)] == 1)
    count = widths.total()
    for width, odds in config.objective.canvas_lengths.items():
        assert widths[int(width)] / count == pytest.approx(odds, abs=0.06), "a long canvas is cut short more often"
    assert full / count == pytest.approx(config.objective.fully_masked, abs=0.03)
    shown = batch.masked[batch.masked < 1]
    assert float(shown.mean()) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(("related", "most"), [(0.0, LENGTH), (1.0, LENGTH + RELATED)])
def test_the_batches_of_a_run_have_as_many_rows_as_the_config_says_and_little_padding(
    run_folder: Path, related: float, most: int
) -> None:
    config = small_config()
    config = attrs.evolve(config, holes=attrs.evolve(config.holes, related=related))
    drawn = batches(config, run_folder, "train", 0)
    pad = special_tokens_of(load_tokenizer(run_folder / "tokenizer.json")).pad
    used = rows = 0
    for _ in range(40):
        batch = next(drawn)
        assert batch.tokens.numel() <= config.optimizer.rows
        assert batch.stream_rows <= most
        stream = batch.tokens[:, : batch.stream_rows]
        used, rows = used + int((stream != pad).sum()), rows + stream.numel()
    assert used / rows > 0.9


def test_a_canvas_sees_the_stream_up_to_its_anchor_and_itself_and_no_stream_sees_it(tiny_model: Path) -> None:
    batch = drawn_batch(load_tokenizer(tiny_model / "tokenizer.json"), 6, 24)
    length, seen = batch.stream_rows, visible(batch)[:, 0]
    assert torch.equal(seen[:, :length, :length], torch.ones(length, length).tril().bool().expand(6, -1, -1))
    assert not seen[:, :length, length:].any()
    for row in range(6):
        for at, owner in enumerate(batch.owners[row].tolist()):
            own = length + torch.nonzero(batch.owners[row] == owner)[:, 0]
            above = range(int(batch.anchors[row, at]) + 1)
            assert torch.nonzero(seen[row, length + at])[:, 0].tolist() == [*above, *own.tolist()]


def test_holes_come_with_code_of_their_package_that_resembles_them(tiny_model: Path) -> None:
    tokenizer, config = load_tokenizer(tiny_model / "tokenizer.json"), small_config()
    token_bytes = TokenBytes(tokenizer)
    encode = LineEncoder(tokenizer, token_bytes)
    known = [attrs.evolve(file, path=f"one/{file.path}.py") for file in source_files()[:8]]
    twins = [attrs.evolve(file, path=f"one/again/{file.path.removeprefix('one/')}") for file in known]
    package = sorted([*known, *twins], key=lambda file: hashlib.sha1(file.path.encode()).digest())
    alone = File("two/alone.py", "python", known[0].text)
    files = [*package, alone]
    sampler = HoleSampler(files, config.corpus.shares, config.holes.weights, 0)
    related = RelatedHoles(sampler, files, encode, token_bytes, 0)
    drawn = [related.draw() for _ in range(200)]
    texts = {file.path: file.text for file in files}
    found = 0
    for hole, snippets in drawn:
        assert hole.prefix + hole.middle + hole.suffix == texts[hole.path]
        assert all(snippet.text in texts[snippet.path] for snippet in snippets)
        own = [snippet.text for snippet in snippets if snippet.path == hole.path]
        assert all(text in hole.prefix or text in hole.suffix for text in own)
        assert not (hole.path == alone.path and len(own) < len(snippets))
        found += any(hole.path.rpartition("/")[2] in snippet.path for snippet in snippets)
    assert found > len(drawn) / 2, "the same code in the other folder"
    assert len({hole.path for hole, _ in drawn}) > len(files) / 2


def test_related_code_comes_before_the_stream_and_takes_nothing_of_its_room(tiny_model: Path) -> None:
    config, tokenizer = small_config(), load_tokenizer(tiny_model / "tokenizer.json")
    config = attrs.evolve(config, holes=attrs.evolve(config.holes, no_path=0.0, unfinished=0.0, no_suffix=0.0))
    special_tokens = special_tokens_of(tokenizer)
    text = "def area(width, height):\n" * 90
    (hole,) = drawn_holes(config, 1)
    collator = Collator(config, tokenizer, special_tokens, 0)
    lengths = []
    for _ in range(20):
        stream = collator.lay_out(hole, LENGTH, [Snippet("area.py", text)])
        first = stream.tokens.index(special_tokens.file, 1)
        lengths.append(first)
        assert tokenizer.decode(stream.tokens[:first]).startswith("area.py\ndef area(width, height):\ndef")
        assert stream.weight[:first].sum() == 0, "nothing of it is learned"
        assert len(stream) - first <= LENGTH
    assert max(lengths) <= config.model.related_tokens
    assert len(set(lengths)) > 5

"""Holes become batches with the same rows and hints that the engine computes for them."""

from collections import Counter
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch
from small_run import drawn_holes, small_config, source_files

from engine.models.embedded.ngram_lookup import Lookup
from engine.models.embedded.token_healing import CompatibleTokens, unfinished
from engine.models.stock.token_bytes import TokenBytes, load_tokenizer
from engine.training import packed_batch
from engine.training.batch_lookup import BatchLookup
from engine.training.collator import Collator
from engine.training.line_encoder import LineEncoder
from engine.training.loader import special_tokens_of


def test_tokenizing_line_by_line_gives_the_tokens_of_the_whole_text(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model / "tokenizer.json")
    encode = LineEncoder(tokenizer)
    texts = [file.text for file in source_files()]
    for text in (*texts, *texts[:2], "", "\n", "\n\n  a\n", "a\r\nb\r\r\n", "  x = 1\n\n\ty\n", "no newline", "\r\n x"):
        assert encode(text) == tokenizer.encode(text, add_special_tokens=False).ids


def test_batch_lookup_of_a_whole_stream_equals_the_engines_lookup(tiny_model: Path) -> None:
    config, tokenizer = small_config(), load_tokenizer(tiny_model / "tokenizer.json")
    special_tokens = special_tokens_of(tokenizer)
    batch = Collator(config, tokenizer, special_tokens, 3).batch(drawn_holes(config, 30), 32)
    for row in batch.tokens[:, :96]:
        stream = row[row != special_tokens.pad].tolist()
        expected, actual = Lookup(stream, special_tokens, 64).stream(), BatchLookup(stream, special_tokens, 64).stream()
        assert all(np.array_equal(*pair) for pair in zip(attrs.astuple(expected), attrs.astuple(actual), strict=True))


def test_canvas_rows_equal_those_of_the_engine(tiny_model: Path) -> None:
    config, tokenizer = small_config(), load_tokenizer(tiny_model / "tokenizer.json")
    special_tokens = special_tokens_of(tokenizer)
    holes = drawn_holes(config, 12)
    batch = Collator(config, tokenizer, special_tokens, 0).batch(holes, 48)
    rows, compatible = batch.inputs, CompatibleTokens(TokenBytes(tokenizer).bytes)
    for row, hole in enumerate(holes):
        tokens = batch.tokens[row, :96]
        stream: list[int] = tokens[tokens != special_tokens.pad].tolist()
        lookup, middle = Lookup(stream, special_tokens, 64), stream.index(special_tokens.middle)
        assert int(batch.anchors[row, 0]) == middle
        if typed := unfinished(tokenizer, hole.prefix):
            lookup.narrow(middle, np.array(compatible.of(typed.encode())))
        assert rows.hints[row, : len(stream)].tolist() == lookup.stream().tokens.tolist()
        assert rows.strengths[row, : len(stream)].tolist() == lookup.stream().strengths.tolist()
        for owner in batch.owners[row].unique():  # type: ignore[no-untyped-call]
            own = 96 + torch.nonzero(batch.owners[row] == owner)[:, 0]
            anchor = int(batch.anchors[row, own[0] - 96])
            hints = lookup.canvas(anchor, rows.tokens[row, own].numpy())
            assert rows.hints[row, own].tolist() == hints.tokens.tolist()
            assert rows.strengths[row, own].tolist() == hints.strengths.tolist()
            assert rows.grams[row, own].tolist() == hints.grams.tolist()
            assert rows.positions[row, own].tolist() == list(range(anchor + 1, anchor + 1 + len(own)))
            known = [*stream, *[special_tokens.end] * 64][anchor + 1 : anchor + 2 + len(own)]
            assert batch.targets[row, own].tolist() == known[1:]
            shown, has_target = rows.tokens[row, own], batch.weights[row, own] > 0
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
    batch = Collator(config, tokenizer, special_tokens_of(tokenizer), 0).batch(drawn_holes(config, 400), 320)
    widths, full = Counter[int](), 0
    for owners, masked in zip(batch.owners.tolist(), batch.masked, strict=True):
        for owner in range(owners[-1]):  # the last canvas of a sequence may be cut short
            widths[owners.count(owner)] += 1
            full += int(masked[owners.index(owner)] == 1)
    count = widths.total()
    assert {width: round(widths[width] / count, 1) for width in (8, 16, 32)} == {8: 0.6, 16: 0.3, 32: 0.1}
    assert full / count == pytest.approx(config.objective.fully_masked, abs=0.03)
    shown = batch.masked[batch.masked < 1]
    assert float(shown.mean()) == pytest.approx(0.5, abs=0.03)


def test_a_packed_batch_counts_the_rows_with_a_target(tiny_model: Path) -> None:
    config, tokenizer = small_config(), load_tokenizer(tiny_model / "tokenizer.json")
    packed = Collator(config, tokenizer, special_tokens_of(tokenizer), 0).pack(drawn_holes(config, 5), 32)
    batch = Collator(config, tokenizer, special_tokens_of(tokenizer), 0).batch(drawn_holes(config, 5), 32)
    stream, canvas = packed_batch.counted(torch.from_numpy(packed), 96)
    assert stream == int((batch.weights[:, :96] > 0).sum()) > 0
    assert canvas == int((batch.weights[:, 96:] > 0).sum()) > 0

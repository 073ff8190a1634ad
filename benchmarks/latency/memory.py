"""What the memory of a workspace costs: time a lookup, a choice of windows, bytes a token, time to learn files.

    python benchmarks/latency/memory.py CORPUS/train.msgpack

The files are real ones of the training corpus; the rows looked up are of other files of it. One core."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import argparse
import random
import time
from collections.abc import Callable

import msgpack
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.memory.index import RunIndex
from engine.memory.row_memory import KnownFiles
from engine.memory.windows import MOST_QUERY_TOKENS, LineTexts, best_windows
from engine.models.stock.token_bytes import TokenBytes, load_tokenizer

Tokens = NDArray[np.int32]
Rows = list[list[int]]
TOKENIZER = Path(__file__).resolve().parents[2] / "engine" / "weights" / "tokenizer.json"
ROWS = 3000


def read_texts(corpus: Path, characters: int, seed: int) -> list[str]:
    """Return the texts of random files of the corpus, `characters` in all."""
    with corpus.open("rb") as stream:
        files = [text for _, _, text in msgpack.unpackb(stream.read())]
    random.Random(seed).shuffle(files)
    texts = []
    for text in files:
        if characters <= 0:
            break
        texts.append(text)
        characters -= len(text)
    return texts


def tokenize(tokenizer: Tokenizer, text: str) -> Tokens:
    # Half the time of encode(), which also computes each token's position in the text.
    return np.array(tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids, np.int32)


def microseconds(call: Callable[[Rows], object], batches: list[Rows]) -> str:
    """Return the median and the 95th percentile of the time that `call` takes, for each row of a batch."""
    times = []
    for rows in batches:
        started = time.perf_counter()
        call(rows)
        times.append(1e6 * (time.perf_counter() - started) / len(rows))
    return f"p50 {np.median(times):.1f}, p95 {np.percentile(times, 95):.1f} us a row"


def print_lookups(index: RunIndex, rows: Rows, name: str) -> None:
    """Print what a lookup of rows costs, alone and together."""
    for together in (1, 8, 32):
        batches = [rows[first : first + together] for first in range(0, len(rows), together)]
        print(f"{name}, {together} rows together: {microseconds(index.followers_of_rows, batches)}")


def print_windows(known: KnownFiles, rows: Rows, tokenizer: Tokenizer) -> None:
    """Print what the choice of windows costs for queries that are as long as they may be."""
    token_bytes = TokenBytes(tokenizer)
    breaks = np.array([token_bytes.breaks_line(token) for token in range(len(token_bytes.bytes))])
    lines = LineTexts(breaks, token_bytes.bytes.__getitem__)
    times, found = [], 0
    for row in rows:
        started = time.perf_counter()
        windows = best_windows(known, "", [row[-MOST_QUERY_TOKENS:]], lines)
        times.append(1e3 * (time.perf_counter() - started))
        found += len(windows)
    middle, most = np.median(times), np.percentile(times, 95)
    print(f"windows for a hole: p50 {middle:.1f}, p95 {most:.1f} ms; {found / len(rows):.1f} found")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--tokens", type=float, default=3e6)
    options = parser.parse_args()
    tokenizer = load_tokenizer(TOKENIZER)
    texts = read_texts(options.corpus, int(3.3 * options.tokens), seed=0)
    files, in_tokenizer, in_index, longest, peak = KnownFiles(), 0.0, 0.0, 0.0, 0.0
    index = files.index
    for file, text in enumerate(texts):
        started = time.perf_counter()
        tokens = tokenize(tokenizer, text)
        tokenized = time.perf_counter()
        files.add(str(file), tokens)
        ended = time.perf_counter()
        in_tokenizer, in_index = in_tokenizer + tokenized - started, in_index + ended - tokenized
        longest = max(longest, ended - tokenized)
        if index.tokens > 100_000:
            peak = max(peak, index.bytes / index.tokens)
    millions = index.tokens / 1e6
    print(f"{len(texts)} files, {millions:.2f} million tokens")
    print(f"seconds a million tokens: {in_tokenizer / millions:.2f} tokenizing, {in_index / millions:.2f} indexing")
    print(f"longest add {1e3 * longest:.1f} ms; bytes a token {index.bytes / index.tokens:.1f}, at most {peak:.1f}")

    unknown = [tokenize(tokenizer, text).tolist() for text in read_texts(options.corpus, 300_000, seed=1)]
    rng = random.Random(2)
    rows: Rows = []
    while len(rows) < ROWS:
        tokens_of = rng.choice(unknown)
        end = rng.randrange(len(tokens_of))
        rows.append(tokens_of[max(0, end - 200) : end])
    print_lookups(index, rows, "lookup while learning")
    settled = time.perf_counter()
    while index.settle():
        pass
    print(f"settled in {time.perf_counter() - settled:.2f} s")
    print_lookups(index, rows, "lookup once settled")
    print_windows(files, [row for row in rows if len(row) >= MOST_QUERY_TOKENS][:300], tokenizer)
    lines = "\n".join(texts).split("\n")
    changed = []
    for number in range(20):
        started = time.perf_counter()
        files.add(str(number), tokenize(tokenizer, "\n".join(lines[1000 * number : 1000 * number + 1000])))
        changed.append(1e3 * (time.perf_counter() - started))
    print(f"a changed file of 1,000 lines: p50 {np.median(changed):.1f} ms, longest {max(changed):.1f} ms")


if __name__ == "__main__":
    main()

"""What lookup.py says about the last row of a stream alone, in a hundredth of the time of looking at all of them."""

from array import array

import attrs

from engine.models.embedded.layout import SpecialTokens
from engine.models.embedded.ngram_lookup import FACTOR, RUNS, SHIFT, SPREAD

_ALL = (1 << 64) - 1


@attrs.frozen
class LastRow:
    """A token, and what Lookup.stream() finds for it where it is the last one of the text."""

    token: int
    hint: int
    strength: int
    grams: tuple[int, int]


def last_row(stream: list[int], marks: SpecialTokens, buckets: int) -> LastRow:
    """Return the row of a stream's last token, which stands behind <middle>."""
    tail, middle = _last(stream, marks.tail), _last(stream, marks.middle)
    text = stream[:tail] + stream[middle + 1 :]
    hint, strength = _expected(text)
    return LastRow(text[-1], hint, strength, _grams(text[-3:], buckets))


def _last(stream: list[int], mark: int) -> int:
    return len(stream) - 1 - stream[::-1].index(mark)


def _expected(text: list[int]) -> tuple[int, int]:
    """Return what followed the latest earlier occurrence of the longest run at the end, and that run's number."""
    numbers = array("i", text)
    size, written = numbers.itemsize, numbers.tobytes()
    for number in range(len(RUNS), 0, -1):
        run = RUNS[number - 1]
        if run >= len(text):
            continue
        sought, stop = written[-run * size :], len(written) - size
        while (found := written.rfind(sought, 0, stop)) % size:  # -1 is no multiple either
            if found < 0:
                break
            stop = found + len(sought) - 1
        if found >= 0:
            return text[found // size + run], number
    return 0, 0


def _grams(text: list[int], buckets: int) -> tuple[int, int]:
    """Return the hashes of the last two and the last three of at most three tokens, 0 for what is too short."""
    return (_gram(text[-2:], buckets) if len(text) > 1 else 0, _gram(text, buckets) if len(text) > 2 else 0)


def _gram(run: list[int], buckets: int) -> int:
    key = run[0]
    for token in run[1:]:
        key = (key * FACTOR + token) & _ALL
        key ^= key >> SHIFT
    return 1 + ((key * SPREAD & _ALL) >> 32) % (buckets - 1)

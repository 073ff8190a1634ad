"""The tokenizer: the parent model's byte-level BPE, trimmed to the tokens that code needs, with our marks."""

from collections import Counter
from collections.abc import Sequence

import attrs
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

PAD, SUFFIX, PREFIX, TAIL, MIDDLE, END, MASK, FILE = (
    "<pad>",
    "<suffix>",
    "<prefix>",
    "<tail>",
    "<middle>",
    "<end>",
    "<mask>",
    "<file>",
)
SPECIALS = (PAD, SUFFIX, PREFIX, TAIL, MIDDLE, END, MASK, FILE)

# GPT-2's pieces, but that each line begins a piece of its own, with its indentation: lines are tokenized alone and
# remembered. A single space before a word stays with the word, as the parent has read it.
PIECES = r"\r?\n[ \t]*(?= \S)|\r?\n[ \t]*|'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|[^\S\r\n]+(?!\S)|\s"


@attrs.frozen
class Merges:
    """A byte-level BPE: tokens by their ids, in GPT-2's printable characters, and merges by rank."""

    tokens: Sequence[str]
    merges: Sequence[tuple[str, str]]


def tokenizer_of(bpe: Merges, specials: Sequence[str] = ()) -> Tokenizer:
    """Return the tokenizer of a BPE; `specials` come first, and the ids of its tokens after them."""
    vocabulary = {token: len(specials) + number for number, token in enumerate(bpe.tokens)}
    vocabulary |= {token: number for number, token in enumerate(specials)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=list(bpe.merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    return tokenizer


def trimmed(bpe: Merges, counts: Counter[int], size: int) -> Merges:
    """Return the BPE with `size` tokens at most: all bytes, the most frequent tokens, and what these are made of."""
    parts: dict[str, tuple[str, str]] = {}
    for left, right in bpe.merges:
        parts.setdefault(left + right, (left, right))
    kept = {token for token in bpe.tokens if len(token) == 1}
    for token, _ in counts.most_common():
        needed = _made_of(bpe.tokens[token], parts) - kept
        if len(kept) + len(needed) > size:
            break
        kept |= needed
    merges = [(left, right) for left, right in bpe.merges if {left, right, left + right} <= kept]
    return Merges([token for token in bpe.tokens if token in kept], merges)


def _made_of(token: str, parts: dict[str, tuple[str, str]]) -> set[str]:
    """Return a token and all tokens that its merges pass through."""
    made, left = set[str](), [token]
    while left:
        if (one := left.pop()) not in made:
            made.add(one)
            left += parts.get(one, ())
    return made

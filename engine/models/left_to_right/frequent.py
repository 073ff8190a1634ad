"""Which tokens of a large vocabulary a model's head has: those that come in code.

Qwen's head over 151,936 tokens is a third of what a pass reads in 4 bits, and most of its tokens never come in code.
Which ones do was counted once (`midspan train frequent`) and is kept for each tokenizer, by a digest of its tokens.
A token that is not among them can still come out of the memory of the workspace, or in smaller pieces.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.models.stock.token_bytes import token_texts

MOST_FREQUENT = 65_536
"""So many of Qwen's tokens are 99.7 % of those in code that was not counted; 49,152 are 99.3 %, 32,768 98.4 %. All
tokens in ASCII come besides."""
FOLDER = Path(__file__).parent / "frequent"
_BITS = "frequent"


def frequent_tokens(texts: Sequence[str], ends: tuple[int, ...], vocabulary: int) -> NDArray[np.int64] | None:
    """Return the ids int64 [n], in their order, of the tokens that a head has; None for all.

    texts: those of token_texts. ends: tokens that it has in any case. Raises ModelError if a file of ours is damaged.
    """
    path = FOLDER / _name_of(texts)
    if not path.exists():
        return None
    try:
        bits = load_file(path)[_BITS]
    except (OSError, KeyError, SafetensorError) as error:
        raise ModelError(f"{path} is damaged ({error}); install Midspan again") from None
    known, flags = np.unpackbits(bits)[:vocabulary], np.zeros(vocabulary, np.bool_)
    flags[: len(known)] = known
    flags[list(ends)] = True
    return np.flatnonzero(flags)


def save_frequent(tokenizer: Tokenizer, counts: NDArray[np.int64], most: int, folder: Path) -> None:
    """Write the `most` most frequent tokens of a tokenizer, and all that are in ASCII. counts: [vocabulary].

    A name's token may be in no code that was counted. Without `.quantity` a model writes ` self quantity`.
    """
    vocabulary = tokenizer.get_vocab()
    plain = [token for text, token in vocabulary.items() if len(text) == 1 or _is_ascii(text)]
    flags = np.zeros(1 + max(vocabulary.values()), np.uint8)
    flags[np.argsort(-counts[: len(flags)], kind="stable")[:most]] = 1
    flags[plain] = 1
    folder.mkdir(parents=True, exist_ok=True)
    save_file({_BITS: np.packbits(flags)}, folder / _name_of(token_texts(tokenizer)))


def _is_ascii(text: str) -> bool:
    """Return whether a token, in GPT-2's printable characters, is ASCII with spaces, tabs and line ends."""
    return all(letter.isascii() or letter in "\u0120\u010a\u010d\u0109" for letter in text)


def _name_of(texts: Sequence[str]) -> str:
    """Return a file's name: a digest of the texts of all tokens but special ones, in the order of their ids."""
    digest = hashlib.sha256("\0".join(filter(None, texts)).encode()).hexdigest()
    return f"{digest[:16]}.safetensors"

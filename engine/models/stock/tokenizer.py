"""The tokenizer of a checkpoint: tokenizer.json, or vocab.json and merges.txt, as in Dream's releases.

And other files in the prompt, for models that read one file after another.
"""

from collections.abc import Callable, Sequence

from tokenizers import AddedToken, Tokenizer, normalizers
from tokenizers.models import BPE

from engine.errors import ModelError
from engine.models.stock.checkpoint import Checkpoint, read_object
from engine.models.stock.token_bytes import TokenBytes, load_tokenizer, token_texts, use_bytes
from engine.protocol.messages import Snippet


def tokenizer_of(checkpoint: Checkpoint) -> Tokenizer:
    """Return the tokenizer. It reads a special token in a user's text as text. Raises ModelError."""
    folder = checkpoint.folder
    try:
        if (folder / "tokenizer.json").exists():
            return load_tokenizer(folder / "tokenizer.json")
        if (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
            return _from_merges(checkpoint)
    except ModelError:
        raise
    except Exception as error:  # the library raises plain Exception for a file that it cannot parse
        raise ModelError(f"the tokenizer in {folder} cannot be read: {str(error).splitlines()[0]}") from None
    raise ModelError(f"the model in {folder} lacks tokenizer.json (or vocab.json with merges.txt); install it again")


def token_bytes_of(
    checkpoint: Checkpoint, tokenizer: Tokenizer, vocabulary: int, texts: Sequence[str] | None = None
) -> TokenBytes:
    """Return the bytes of a tokenizer's tokens.

    Raises ModelError if it has no tokens or more than the network's `vocabulary`, or is not a byte-level BPE.
    """
    folder = checkpoint.folder
    texts = token_texts(tokenizer) if texts is None else texts
    if not texts:
        raise ModelError(f"the tokenizer in {folder} has no tokens; install the model again")
    if (tokens := len(texts)) > vocabulary:
        raise ModelError(
            f"the tokenizer in {folder} has {tokens} tokens, its network {vocabulary}; install the model again"
        )
    try:
        return TokenBytes(tokenizer, texts)
    except KeyError:
        raise ModelError(f"the tokenizer in {folder} is not a byte-level BPE, the only supported kind") from None


def _from_merges(checkpoint: Checkpoint) -> Tokenizer:
    from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

    folder = checkpoint.folder
    tokenizer = Tokenizer(BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    tokenizer.normalizer = normalizers.NFC()
    use_bytes(tokenizer, [PRETOKENIZE_REGEX])
    listed = {token["content"]: int(number) for number, token in _added_tokens(checkpoint).items()}
    added = {**read_object(folder / "added_tokens.json"), **listed}
    for text, number in sorted(added.items(), key=lambda entry: entry[1]):
        tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False)])
        if tokenizer.token_to_id(text) != number:
            raise ModelError(f"the tokenizer in {folder} has a gap before {text!r} ({number}); install the model again")
    tokenizer.encode_special_tokens = True
    return tokenizer


def _added_tokens(checkpoint: Checkpoint) -> dict[str, dict[str, str]]:
    added = checkpoint.tokenizer.get("added_tokens_decoder", {})
    return added if isinstance(added, dict) else {}


TOKEN_CHARACTERS = 8
"""Tokens are shorter on average. A text with more characters for each token that there is room for is not tokenized."""


def heading(path: str) -> str:
    """Return the line before a file's text."""
    return f"File {path}:\n"


def related_tokens(encode: Callable[[str], list[int]], snippets: Sequence[Snippet], room: int) -> list[int]:
    """Return the tokens of the snippets that fit into `room` tokens. The first snippet comes last, next to the hole."""
    blocks: list[list[int]] = []
    for snippet in snippets:
        if len(snippet.text) > room * TOKEN_CHARACTERS:
            continue
        block = encode(f"{heading(snippet.path)}{snippet.text}\n")
        if len(block) <= room:
            blocks.append(block)
            room -= len(block)
    return [token for block in reversed(blocks) for token in block]

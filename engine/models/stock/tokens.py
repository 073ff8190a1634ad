"""The tokenizer of a checkpoint: tokenizer.json, or vocab.json and merges.txt, as Dream's releases have them."""

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from engine.errors import ModelError
from engine.models.stock.checkpoint import Checkpoint, read_object
from engine.models.stock.token_bytes import Pieces, load_tokenizer


def tokenizer_of(checkpoint: Checkpoint) -> Tokenizer:
    """Return the tokenizer, to which a mark in a user's text is text. Raises ModelError."""
    folder = checkpoint.folder
    try:
        if (folder / "tokenizer.json").exists():
            return load_tokenizer(folder / "tokenizer.json")
        if (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
            return _from_merges(checkpoint)
    except ModelError:
        raise
    except Exception as error:  # the library raises plain Exception for what it cannot parse
        raise ModelError(f"the tokenizer in {folder} cannot be read: {str(error).splitlines()[0]}") from None
    raise ModelError(f"the model in {folder} lacks tokenizer.json (or vocab.json with merges.txt); install it again")


def pieces_of(checkpoint: Checkpoint, tokenizer: Tokenizer, vocabulary: int) -> Pieces:
    """Return the texts of a tokenizer's tokens. Raises ModelError for one that the network, of so many, is not for."""
    folder = checkpoint.folder
    if (tokens := 1 + max(tokenizer.get_vocab().values())) > vocabulary:
        raise ModelError(
            f"the tokenizer in {folder} has {tokens} tokens, its network {vocabulary}; install the model again"
        )
    try:
        return Pieces(tokenizer)
    except KeyError:
        raise ModelError(f"the tokenizer in {folder} is no byte-level BPE, which all families here have") from None


def _from_merges(checkpoint: Checkpoint) -> Tokenizer:
    from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

    folder = checkpoint.folder
    tokenizer = Tokenizer(BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    listed = {token["content"]: int(number) for number, token in _decoder(checkpoint).items()}
    added = {**read_object(folder / "added_tokens.json"), **listed}
    for text, number in sorted(added.items(), key=lambda item: item[1]):
        tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False)])
        if tokenizer.token_to_id(text) != number:
            raise ModelError(f"the tokenizer in {folder} has a gap before {text!r} ({number}); install the model again")
    tokenizer.encode_special_tokens = True
    return tokenizer


def _decoder(checkpoint: Checkpoint) -> dict[str, dict[str, str]]:
    found = checkpoint.tokenizer.get("added_tokens_decoder", {})
    return found if isinstance(found, dict) else {}

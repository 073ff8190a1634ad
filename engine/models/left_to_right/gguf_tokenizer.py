"""The tokenizer that is in a GGUF: a byte-level BPE, as Llama 3, Qwen, SmolLM and StarCoder have it."""

from tokenizers import AddedToken, Tokenizer, models

from engine.errors import ModelError
from engine.library.gguf_file import GgufHeader
from engine.models.stock.token_bytes import use_bytes

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_AFTER_CL100K = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN2 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _AFTER_CL100K
_LLAMA3 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _AFTER_CL100K
_DIGIT = r"\p{N}"
PIECES: dict[str, tuple[str, ...]] = {
    "default": (_GPT2,),
    "gpt-2": (_GPT2,),
    "qwen2": (_QWEN2,),
    "llama-bpe": (_LLAMA3,),
    "smollm": (_DIGIT, _GPT2),
    "starcoder": (_DIGIT, _GPT2),
    "refact": (_DIGIT, _GPT2),
}
"""What text is split into before merges, by what llama.cpp calls it; the splits come one after the other."""
_NORMAL = 1
_ASCII = [chr(byte) for byte in range(33, 127)] + ["\u0120", "\u010a"]
"""Printable characters, the space and the newline, as a byte-level BPE writes them."""


def texts_of_header(header: GgufHeader) -> list[str]:
    """Return what token_texts does of the tokenizer of a header, without asking that."""
    tokens, kinds = header.items("tokenizer.ggml.tokens", str), header.items("tokenizer.ggml.token_type", int)
    return [token if kind == _NORMAL else "" for token, kind in zip(tokens, kinds, strict=True)]


def tokenizer_of_header(header: GgufHeader) -> Tokenizer:
    """Return the tokenizer. It reads a special token in a user's text as text. Raises ModelError in one line."""
    if (kind := header.text("tokenizer.ggml.model")) != "gpt2":
        raise ModelError(f"{header.path} has a tokenizer of kind {kind[:40]!r}; only a byte-level BPE (gpt2) is read")
    pre = header.text("tokenizer.ggml.pre", "default")
    if pre not in PIECES:
        raise ModelError(f"{header.path} splits text by the rules {pre[:40]!r}; known are {', '.join(PIECES)}")
    tokens, merges = header.items("tokenizer.ggml.tokens", str), header.items("tokenizer.ggml.merges", str)
    kinds = header.items("tokenizer.ggml.token_type", int)
    if len(kinds) != len(tokens):
        raise ModelError(f"{header.path} has {len(tokens)} tokens and kinds of {len(kinds)}")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        raise ModelError(f"{header.path} has a token twice")
    if missing := [text for text in _ASCII if text not in vocabulary]:
        raise ModelError(f"{header.path} has no token for the character {missing[0]!r}")
    pairs = [merge.partition(" ")[::2] for merge in merges]
    try:
        try:
            bpe = models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=pre == "llama-bpe")
        except Exception:  # It has a merge of tokens that are none. To look for these takes longer than all else.
            known = [each for each in pairs if {*each, "".join(each)} <= vocabulary.keys()]
            bpe = models.BPE(vocab=vocabulary, merges=known, ignore_merges=pre == "llama-bpe")
        tokenizer = Tokenizer(bpe)
        use_bytes(tokenizer, PIECES[pre])
        special = [token for token, kind in zip(tokens, kinds, strict=True) if kind != _NORMAL]
        tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
        tokenizer.encode_special_tokens = True
    except Exception as error:  # the library raises plain Exception
        raise ModelError(f"the tokenizer in {header.path} cannot be used: {str(error).splitlines()[0][:200]}") from None
    return tokenizer

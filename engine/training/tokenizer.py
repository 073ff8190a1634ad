"""The tokenizer: byte-level BPE for code whose holes may be cut at any character."""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

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

# A newline includes the indentation after it. Words, underscores, digits and punctuation never merge with each other:
# users' cursors are usually between them, and so between two tokens.
PIECES = r"\r?\n[ \t]*| ?[\p{L}]+| ?_+| ?[0-9]{1,3}| ?[^\s\p{L}0-9_]{1,4}|[ \t]+|\s"


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Train the BPE on `texts`; ids 0 to 7 are the special tokens in the order of SPECIALS."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=24,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer

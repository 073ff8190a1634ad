"""The ids of a checkpoint's marks."""

from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.models.stock.checkpoint import Checkpoint
from engine.models.stock.kind import Kind, MaskedTokens


def marks_of(checkpoint: Checkpoint, kind: Kind, tokenizer: Tokenizer) -> MaskedTokens:
    """Return the ids of a checkpoint's marks: from midspan.json, else config.json or generation_config.json, else the
    tokenizer's own names of them, else what is known of the family. Raises ModelError for an id that cannot be.
    """
    notes, known = checkpoint.notes, kind.marks
    ends = _configured(checkpoint, "eos_token_id")
    end = notes.end_id if notes.end_id is not None else next(iter(ends), known.end)
    mask = _first(notes.mask_id, *_configured(checkpoint, "mask_token_id"), _named(checkpoint, tokenizer, "mask_token"))
    padding = {*ends, *_configured(checkpoint, "pad_token_id"), *known.padding}
    # DiffuCoder pads with its tokenizer's <|dlm_pad|>, not with what its config.json says.
    padding |= {number for number in [_named(checkpoint, tokenizer, "pad_token")] if number is not None}
    begin = expand = None
    if known.begin is not None:
        # config.json says bos_token_id 151643 in Dream's releases; the tokenizer knows the true one.
        begin = _first(notes.begin_id, _named(checkpoint, tokenizer, "bos_token"), known.begin)
    if known.expand is not None:
        found = _configured(checkpoint, "expand_token_id")
        expand = _first(notes.expand_id, *found, tokenizer.token_to_id("<|expand|>"), known.expand)
    mask = known.mask if mask is None else mask
    for name, number in {"mask": mask, "end": end, "begin": begin, "expand": expand}.items():
        if number is not None and tokenizer.id_to_token(number) is None:
            raise ModelError(
                f"the {name} token {number} of the model in {checkpoint.folder} is unknown to its tokenizer; "
                f'put the right one into midspan.json there as "{name}_id"'
            )
    present = tuple(sorted(number for number in padding - {end, mask} if tokenizer.id_to_token(number) is not None))
    return MaskedTokens(mask, end, present, begin, expand)


def _configured(checkpoint: Checkpoint, key: str) -> list[int]:
    """Return the ids that config.json or generation_config.json gives: none, one, or a list of them."""
    found = checkpoint.config.get(key)
    found = checkpoint.generation.get(key) if found is None else found
    return [number for number in (found if isinstance(found, list) else [found]) if type(number) is int]


def _named(checkpoint: Checkpoint, tokenizer: Tokenizer, key: str) -> int | None:
    """Return the id of a mark that tokenizer_config.json names by its text."""
    text = checkpoint.tokenizer.get(key)
    text = text.get("content") if isinstance(text, dict) else text
    return tokenizer.token_to_id(text) if isinstance(text, str) else None


def _first(*numbers: int | None) -> int | None:
    return next((number for number in numbers if number is not None), None)

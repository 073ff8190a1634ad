"""Load an embedded model from its folder: config.json, tokenizer.json, model.safetensors.

By default the kernel runs it, or NumPy where there is no kernel, and torch is not imported. Torch runs it on a GPU, and
on the CPU if fp32 or bf16 is asked for."""

from pathlib import Path
from typing import Any

import attrs
import cattrs
from safetensors import SafetensorError
from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.library.precision_names import TORCH_PRECISIONS, PrecisionSetting
from engine.models.embedded.model import Card, EmbeddedModel
from engine.models.embedded.runner import HostRunner, Runner, host_pass
from engine.models.embedded.weights import Weights
from engine.models.stock.token_bytes import TokenBytes, load_tokenizer


def load(
    folder: Path, config: dict[str, Any], threads: int, device: str, precision: PrecisionSetting = "auto"
) -> EmbeddedModel:
    """Load the model in `folder`, whose config.json says `config`, for device "cpu" or "cuda".

    Raises ModelError with one line.
    """
    try:
        card = cattrs.Converter(detailed_validation=False).structure(config, Card)
        tokenizer = load_tokenizer(folder / "tokenizer.json")
        _check_tokens(card, tokenizer)
        weights = Weights.load(folder / "model.safetensors")
    except FileNotFoundError as error:
        raise ModelError(f"the model in {folder} lacks {Path(str(error.filename or error)).name}") from None
    except SafetensorError as error:
        raise ModelError(f"the weights in {folder} are damaged ({error}); install the model again") from None
    except Exception as error:
        raise ModelError(f"the model in {folder} cannot be read: {type(error).__name__}: {error}") from None
    try:
        weights.check(card.shape)
    except ValueError as error:
        raise ModelError(f"the weights in {folder} do not fit its config.json: {error}") from None
    never = [token for token in attrs.astuple(card.marks) if token != card.marks.end]
    token_bytes = TokenBytes(tokenizer)
    continuing = token_bytes.continuing_words()
    runner: Runner
    if device == "cuda" or precision in TORCH_PRECISIONS:
        from engine.models.embedded.torch_runner import TorchRunner

        runner = TorchRunner.load(weights, card.shape, device, precision, never, continuing)
    else:
        runner = HostRunner(host_pass(weights, card.shape, threads), weights, card.shape, never, continuing)
    return EmbeddedModel(card, runner, tokenizer, token_bytes, weights.count, threads)


def _check_tokens(card: Card, tokenizer: Tokenizer) -> None:
    """Raise ValueError for a token that the network has no row for: the kernel would read past its end."""
    if not tokenizer.get_vocab():
        raise ValueError("the tokenizer has no tokens")
    last = max((*attrs.astuple(card.marks), *tokenizer.get_vocab().values()))
    if last >= card.shape.vocabulary or min(attrs.astuple(card.marks)) < 0:
        raise ValueError(f"token {last} is not one of {card.shape.vocabulary}")
    own = card.shape.context_tokens - card.related_tokens
    if card.related_tokens < 0 or not 0 <= card.below_tokens <= own // 2:
        raise ValueError("no room is left for the code above the cursor")

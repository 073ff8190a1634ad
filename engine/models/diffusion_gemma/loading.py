"""Loads a model from the files of a release: config.json, safetensors, tokenizer.json. No code from it runs."""

import logging
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn

from engine.errors import ModelError
from engine.library.device_memory import DeviceMemory, gigabytes, memory_of
from engine.library.precision_names import PrecisionSetting
from engine.library.resolve import known_model
from engine.models.cuda_graphs.slots import bytes_per_token
from engine.models.diffusion_gemma.filling import read_settings
from engine.models.diffusion_gemma.layers import DiffusionNetwork, affordable_window
from engine.models.diffusion_gemma.model import DiffusionGemmaModel
from engine.models.diffusion_gemma.prompt import GemmaTokenBytes, Prompt, TurnTokens
from engine.models.quantization.quantizer import Choice, Quantizer, choose
from engine.models.stock.network import read_tensors, weight_files
from engine.models.stock.token_bytes import load_tokenizer
from engine.protocol.messages import ModelInfo

_log = logging.getLogger(__name__)
FAMILY = "diffusion-gemma"
_IMAGES = ("vision_tower", "embed_vision")
_TURNS = (("<|turn>", "<turn|>"), ("<start_of_turn>", "<end_of_turn>"))
HALVES = ("model.decoder.", "model.encoder.language_model.")


def load(
    folder: Path, config: dict[str, Any], threads: int, device: torch.device, precision: PrecisionSetting = "auto"
) -> DiffusionGemmaModel:
    """Load the checkpoint in `folder`. `config` is its config.json.

    Raises ModelError with one line that a user can act on.
    """
    files = weight_files(folder)
    choice = choose(files, precision, device)
    try:
        tokenizer = load_tokenizer(folder / "tokenizer.json")
    except Exception as error:
        if not (folder / "tokenizer.json").exists():
            raise ModelError(f"the model in {folder} lacks tokenizer.json") from None
        raise ModelError(f"{folder / 'tokenizer.json'} cannot be read: {error}") from None
    configuration, model = _empty_model(folder, config)
    text = configuration.text_config
    if tokenizer.get_vocab_size() > text.vocab_size:
        raise ModelError(
            f"tokenizer.json in {folder} has {tokenizer.get_vocab_size()} tokens, config.json {text.vocab_size}; "
            "they are not of the same model"
        )
    _fill_in(model, files, folder, device, choice)
    if device.type == "cuda":
        torch.cuda.empty_cache()  # what quantizing has left, so that it counts as free
    network = DiffusionNetwork(model)
    window = _window(folder, network, text.max_position_embeddings, memory_of(device.type))
    known = known_model(folder)
    info = ModelInfo(
        name=known.name if known else folder.name,
        family=FAMILY,
        licence=known.licence if known else "see where it came from",
        parameters=network.parameters,
        context_tokens=text.max_position_embeddings,
        canvas_tokens=configuration.canvas_length,
        noise="uniform",
        device=device.type,
        dtype=choice.name,
        reading_tokens=window if window < text.max_position_embeddings else 0,
    )
    token_bytes = GemmaTokenBytes(tokenizer)
    prompt = Prompt(
        encode=token_bytes.encode,
        begin=text.bos_token_id,
        window=window,
        canvas=info.canvas_tokens,
        turns=_turn_tokens(folder, tokenizer),
    )
    return DiffusionGemmaModel(info, network, token_bytes, prompt, read_settings(folder, text.eos_token_id), threads)


def _window(folder: Path, network: DiffusionNetwork, window: int, memory: DeviceMemory) -> int:
    """Return how many tokens of the model's window there is memory for, and log it if these are not all."""
    per_token = bytes_per_token(network.shapes, network.dtype)
    affordable = affordable_window(memory.free, per_token, window)
    if affordable < window:
        _log.warning(
            "the model in %s reads at most %d tokens, not %d: a token takes %s, and %s has %s free",
            *(folder, affordable, window, gigabytes(per_token), memory.name, gigabytes(memory.free)),
        )
    return affordable


def _empty_model(folder: Path, config: dict[str, Any]) -> tuple[Any, Any]:
    """Return the configuration and a model on the meta device, without its image part."""
    # The import takes seconds, so only users of this model pay for it.
    from transformers.models.diffusion_gemma import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

    try:
        configuration = DiffusionGemmaConfig.from_dict(config)
        with torch.device("meta"):
            model = DiffusionGemmaForBlockDiffusion(configuration)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ModelError(f"config.json in {folder} does not describe a DiffusionGemma: {reason}") from None
    text: Any = configuration.text_config
    if text.use_bidirectional_attention == "all":
        raise ModelError(f"the model in {folder} does not read its context causally, so it cannot be cached")
    for name in _IMAGES:
        delattr(model.model.encoder, name)
    model.requires_grad_(False).train(False)
    return configuration, model


def _fill_in(model: Any, files: list[Path], folder: Path, device: torch.device, choice: Choice) -> None:
    """Load the weights into the model, tie the tied ones, and compute the tables that no file holds."""
    shapes = {name: weight.shape for name, weight in model.state_dict().items()}
    tensors: dict[str, torch.Tensor] = {}
    quantizer = Quantizer(model, choice.precision, device)
    for name, tensor in read_tensors(files, str(device)):
        if name not in shapes:
            continue
        if tensor.shape != shapes[name]:
            raise ModelError(
                f"the weights in {folder} do not fit its config.json: "
                f"{name} is {list(tensor.shape)}, and {list(shapes[name])} is needed"
            )
        if not quantizer.take(name, tensor, *_names_in_other_half(name)):
            tensors[name] = tensor.to(choice.dtype)
    model.load_state_dict(tensors, strict=False, assign=True)
    model.tie_weights()
    quantizer.place()
    for half in (model.model.decoder, model.model.encoder.language_model):
        half.rotary_emb = type(half.rotary_emb)(half.rotary_emb.config).to(device)
        half.embed_tokens.embed_scale = torch.tensor(half.embed_tokens.scalar_embed_scale, device=device)
    missing = [name for name, weight in _all_tensors(model) if weight.is_meta]
    if missing:
        raise ModelError(f"the weights in {folder} lack {len(missing)} tensors, {missing[0]} first; install it again")


def _names_in_other_half(name: str) -> list[str]:
    """Return the name of the same tensor in the other half. Encoder and decoder share layers; a file has them once."""
    return [name.replace(half, other, 1) for half, other in (HALVES, HALVES[::-1]) if name.startswith(half)]


def _all_tensors(model: nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*model.named_parameters(), *model.named_buffers()]


def _turn_tokens(folder: Path, tokenizer: Tokenizer) -> TurnTokens | None:
    """Return the tokens of a conversation's turns, if the model is instruction-tuned: then it has a chat template."""
    tuned = (folder / "chat_template.jinja").exists() or '"chat_template"' in _text(folder / "tokenizer_config.json")
    for first, last in _TURNS:
        opening, closing = tokenizer.token_to_id(first), tokenizer.token_to_id(last)
        if tuned and opening is not None and closing is not None:
            return TurnTokens(opening, closing)
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""

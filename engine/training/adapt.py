"""`midspan train adapt`: gives a frozen left-to-right model a canvas, by an adapter for canvas rows alone.

The model reads a hole of somebody's code, laid out as the engine lays it out, with the author's middle after it. At
many places of the middle a canvas of masks follows, and each of its rows learns what the model itself predicts there
once all tokens before are known: a draft shall guess what will be verified (distillation as in arXiv 2310.08461). So
the stream is read once, without gradients, and only canvas rows are trained. Where the author wrote something else than
the model would have, no draft that is right comes to the places after it, and they count little.
"""

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.corpus import corpus as corpora
from engine.corpus.languages import MARKUP, File, clean
from engine.errors import ModelError
from engine.library.gguf_file import is_gguf
from engine.library.precision_names import PrecisionSetting
from engine.library.resolve import folder_of
from engine.models.embedded.adapter import ADAPTER_FILE, MOST_RANK
from engine.models.embedded.network import CanvasAdapter, Network
from engine.models.embedded.torch_runner import TorchRunner
from engine.models.left_to_right.frequent import frequent_tokens
from engine.models.left_to_right.load import folder_shape, load_folder, load_gguf
from engine.models.left_to_right.model import LeftToRightModel
from engine.models.stock.checkpoint import Checkpoint, read_object
from engine.models.stock.token_bytes import token_texts
from engine.protocol.messages import Fill
from engine.training.checkpoint import CheckpointError, drafted, write_state
from engine.training.objective import GroupedAttention, cpu_has_bf16

CHECKPOINT = "adapter.pt"
MASKS = 8
"""Of a canvas. A draft of more is seldom right to its end."""
ANCHORS = 40
"""Canvases of a context: each costs its rows, and together they share one reading of the stream."""
RATE, WARMUP_STEPS, LOWEST = 1e-3, 20, 0.02
"""The learning rate rises to RATE in so many steps, and then falls to a share of LOWEST until the minutes are over."""
TAUGHT = 8
"""The likeliest tokens of the model that a row learns: the rest has a few percent."""
FARTHER, STRAYED = 0.9, 0.2
"""What a row counts beside the one before it, and after a token that the model would not have written."""
CHECKPOINT_MINUTES, NOTED = 5.0, 10
HELD_OUT_HOLES, HELD_OUT_SHARE = 12, 20
"""Holes for the held-out figures. Without a folder of its own, one of so many files is held out."""
PREFIX, SUFFIX, MIDDLE = (200, 1600), (0, 600), (160, 800)
"""Characters of a hole's texts, from and to."""
MIDDLE_TOKENS = 240
"""Tokens of a middle at most: fewer than a network has positions after its longest context."""
BLOCK = 64
"""Tokens."""
SLOWER = 2.0
"""A step counts as so many times the fastest at most: beside other programs a run takes longer, and learns as much."""


def code_of(folder: Path, *splits: corpora.Split) -> list[File]:
    """Return the code in a folder of source files, or in the first split there is of a corpus of `midspan train`.

    Raises CorpusError.
    """
    packed = [split for split in splits if (folder / f"{split}.msgpack").exists()]
    if packed:
        files = corpora.load(folder, packed[0])
    else:
        paths = [Path(root, name) for root, _, names in os.walk(folder) for name in names]
        read = ((str(path.relative_to(folder)), path) for path in sorted(paths) if path.is_file())
        files = [file for name, path in read if (file := clean(name, path.read_bytes())) is not None]
    files = [file for file in files if file.language not in MARKUP and len(file.text) > 2 * MIDDLE[0]]
    if not files:
        raise corpora.CorpusError(f"{folder} has no code to learn from; name a folder with source files")
    return files


@attrs.frozen
class Example:
    """The tokens of a hole with its middle, and the positions that a canvas follows."""

    tokens: list[int]
    anchors: list[int]


class Examples:
    """Cuts holes out of files, a file by its length."""

    def __init__(self, model: LeftToRightModel, files: list[File], seed: int) -> None:
        self._model, self._files, self._rng = model, files, random.Random(seed)
        self._lengths = [min(len(file.text), 40_000) for file in files]

    def draw(self) -> Example:
        """Return the next example."""
        while True:
            file = self._rng.choices(self._files, self._lengths)[0]
            if (example := self._cut(file)) is not None:
                return example

    def _cut(self, file: File) -> Example | None:
        """Return a hole at a random place of a file; None where its middle is too short."""
        rng, text = self._rng, file.text
        start = rng.randrange(len(text))
        end = start + rng.randint(*MIDDLE)
        fill = Fill(
            id=0,
            prefix=text[max(0, start - rng.randint(*PREFIX)) : start],
            suffix=text[end : end + rng.randint(*SUFFIX)],
            path=rng.choice(("", file.path)),
            language=file.language,
            extent="lines",
        )
        layout = self._model.lay_out(fill)
        read = [*layout.context, layout.anchor]
        whole = self._model.tokenizer.encode(layout.typed + text[start:end], add_special_tokens=False).ids
        middle = whole[:MIDDLE_TOKENS]
        places = range(len(read) - 1, len(read) + len(middle) - MASKS - 1)
        if len(places) < MASKS:
            return None
        return Example([*read, *middle], sorted(rng.sample(places, min(ANCHORS, len(places)))))


@attrs.frozen
class Taught:
    """What the model predicts after each position of an example, from its first anchor on: [positions, TAUGHT].

    tokens: places in the head, the likeliest first. shares: probabilities, which sum up to 1. agrees: bool [positions],
    whether the author's next token is the likeliest one.
    """

    tokens: Tensor
    shares: Tensor
    agrees: Tensor


@attrs.frozen
class Losses:
    """`total` descends. right: how often a canvas's guess is the model's own token, by its place. accepted: how many
    are, before the first that is not, on average."""

    total: Tensor
    right: list[float]
    accepted: float


class FrozenModel:
    """A model's network, without gradients, and with the head that the kernel has of it."""

    def __init__(self, model: LeftToRightModel, network: Network) -> None:
        self.network = network.requires_grad_(False)
        chosen = frequent_tokens(token_texts(model.tokenizer), model.specials.ends, network.shape.vocabulary)
        weight = (network.embed if network.head is None else network.head).weight.detach()
        self._head = weight if chosen is None else weight[torch.from_numpy(chosen)]
        self._place = torch.arange(network.shape.vocabulary)
        if chosen is not None:
            self._place = torch.full_like(self._place, -1)
            self._place[torch.from_numpy(chosen)] = torch.arange(len(chosen))

    def logits(self, rows: Tensor) -> Tensor:
        """Return fp32 [rows, tokens of the head]."""
        return F.linear(rows, self._head).float()

    @torch.no_grad()
    def read(self, example: Example) -> tuple[list[tuple[Tensor, Tensor]], Taught]:
        """Return the keys and values [key_heads, tokens, head_width] of each layer, and what the model predicts."""
        known: list[tuple[Tensor, Tensor]] = []

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            queries, keys, values = (each.transpose(0, 1)[None] for each in (query, key, value))
            known.append((keys[0], values[0]))
            return F.scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)[0].transpose(
                0, 1
            )

        # In whole blocks, so that torch meets few shapes: it prepares each one. Nothing sees what comes after it.
        tokens = torch.tensor([*example.tokens, *[0] * (-len(example.tokens) % BLOCK)])
        rows = self.network.trunk(tokens, torch.arange(len(tokens)), attend)
        first = example.anchors[0]
        logits, tokens_taught = self.logits(rows[first:]).topk(TAUGHT)
        following = self._place[F.pad(tokens[first + 1 :], (0, 1))]
        return known, Taught(tokens_taught, logits.softmax(-1), tokens_taught[:, 0] == following)

    def losses(self, example: Example) -> Losses:
        """Run the canvases of an example through the network with its adapter."""
        known, taught = self.read(example)
        anchors = torch.tensor(example.anchors)
        places = anchors[:, None] + 1 + torch.arange(MASKS)
        rows = self._canvases(known, places)
        at = places - example.anchors[0]
        wanted, shares = taught.tokens[at], taught.shares[at]  # [anchors, MASKS, TAUGHT]
        logits = self.logits(rows).view(*wanted.shape[:2], -1)
        each = logits.logsumexp(-1) - (logits.gather(-1, wanted) * shares).sum(-1)
        on_path = taught.agrees[at - 1].cumprod(-1)
        weights = FARTHER ** torch.arange(MASKS) * (STRAYED + (1 - STRAYED) * on_path)
        is_right = (logits.detach().argmax(-1) == wanted[..., 0]).float()
        accepted = float(is_right.cumprod(-1).sum(-1).mean())
        return Losses((each * weights).sum() / weights.sum(), is_right.mean(0).tolist(), accepted)

    def _canvases(self, known: list[tuple[Tensor, Tensor]], places: Tensor) -> Tensor:
        """Return normalized rows [anchors * MASKS, width] of a canvas at each row of places [anchors, MASKS]."""
        shape, dtype = self.network.shape, self.network.embed.weight.dtype
        count, length = places.numel(), known[0][0].shape[1]
        number = torch.arange(count) // MASKS
        of_stream = torch.arange(length) < places[:, :1].repeat_interleave(MASKS, 0)
        seen = torch.cat((of_stream, number[:, None] == number), 1)
        hidden = torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, -torch.inf)
        hidden = hidden.repeat(shape.heads // shape.key_heads, 1).expand(shape.key_heads, -1, -1)

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            keys, values = (
                torch.cat((before, own.transpose(0, 1)), 1)
                for before, own in zip(known[layer], (key, value), strict=True)
            )
            queries = query.transpose(0, 1).reshape(shape.key_heads, -1, shape.head_width)
            mixed: Tensor = GroupedAttention.apply(queries, keys, values, hidden)  # type: ignore[no-untyped-call]
            return mixed.view(shape.heads, count, shape.head_width).transpose(0, 1)

        tokens = torch.full((count,), shape.vocabulary)
        return self.network.trunk(tokens, places.flatten(), attend, torch.ones(1, dtype=dtype))


@attrs.define
class Progress:
    """How far a run is. `minutes` plan the rate."""

    step: int = 0
    minutes: float = 0.0
    canvas_rows: int = 0


class Run:
    """A training run: the frozen model, its adapter, the optimizer and the progress.

    It goes on from a checkpoint in `work`.
    """

    def __init__(
        self, model: LeftToRightModel, work: Path, learned: list[File], held_out: list[File], rank: int
    ) -> None:
        runner, key = model.runner, model.adapter_key
        if not isinstance(runner, TorchRunner) or key is None:
            raise ModelError(f"{model.info.name} does not run in torch")
        torch.manual_seed(1)
        self.work, self._key, self.frozen = work, key, FrozenModel(model, runner.network)
        self.adapter = CanvasAdapter(runner.network.shape, rank)
        self.adapter.mask.data.copy_(runner.network.embed.weight.float().mean(0))
        runner.network.adapter = self.adapter
        self.optimizer = torch.optim.AdamW(self.adapter.parameters(), RATE, betas=(0.9, 0.98), weight_decay=0.0)
        self.progress = Progress()
        if (work / CHECKPOINT).exists():
            self._restore(work / CHECKPOINT)
        self.examples = Examples(model, learned, 1 + self.progress.step)
        judged = Examples(model, held_out, 7)
        self._held_out = [judged.draw() for _ in range(HELD_OUT_HOLES)]

    def step(self, done: float) -> Losses:
        """Take one step at `done` (0 to 1) of the run."""
        progress = self.progress
        for group in self.optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (progress.step + 1) / WARMUP_STEPS) * max(LOWEST, 1 - done)
        example = self.examples.draw()
        losses = self.frozen.losses(example)
        self.optimizer.zero_grad()
        torch.autograd.backward(losses.total)
        torch.nn.utils.clip_grad_norm_(self.adapter.parameters(), 1.0)
        self.optimizer.step()
        progress.step += 1
        progress.canvas_rows += len(example.anchors) * MASKS
        return losses

    @torch.no_grad()
    def report(self) -> None:
        """Print and log the held-out figures."""
        found = [self.frozen.losses(example) for example in self._held_out]
        right = [round(sum(column) / len(found), 3) for column in zip(*(each.right for each in found), strict=True)]
        accepted = round(sum(each.accepted for each in found) / len(found), 3)
        loss = round(sum(float(each.total) for each in found) / len(found), 3)
        self.log(held_out=loss, right=right, accepted=accepted)
        print(f"held out: {loss} nats, right by place {right}, accepted {accepted}", flush=True)

    def log(self, **figures: object) -> None:
        """Write a line of metrics.jsonl."""
        with (self.work / "metrics.jsonl").open("a") as lines:
            lines.write(json.dumps({**attrs.asdict(self.progress), **figures}) + "\n")

    def save(self) -> None:
        """Write a checkpoint, and the adapter as a model takes it. Raises CheckpointError if there is no room."""
        state = {
            "adapter": self.adapter.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "progress": attrs.asdict(self.progress),
        }
        write_state(self.work / CHECKPOINT, state)
        with drafted(self.work / ADAPTER_FILE) as draft:
            self.adapter.rounded(MASKS).save(draft, self._key)

    def _restore(self, path: Path) -> None:
        try:
            saved: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            self.adapter.load_state_dict(saved["adapter"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.progress = Progress(**saved["progress"])
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise CheckpointError(f"{path} is damaged, or another model's ({reason}); use another folder") from None


def frozen_model(name: str, threads: int) -> LeftToRightModel:
    """Load a model that an adapter can be trained for, in torch. Raises ModelError."""
    path = folder_of(name)
    precision: PrecisionSetting = "bf16" if cpu_has_bf16() else "fp32"
    torch.set_num_threads(threads)
    if is_gguf(path):
        return load_gguf(path, threads, "cpu", precision)
    checkpoint = Checkpoint.of(path, read_object(path / "config.json"))
    if (shape := folder_shape(checkpoint)) is None:
        raise ModelError(f"the model in {path} is none that the kernel runs, so it can have no adapter")
    return load_folder(checkpoint, shape, threads, precision, lambda stage: None)


def train_adapter(
    name: str,
    work: Path,
    code: Path,
    minutes: float,
    session: float | None = None,
    held_out: Path | None = None,
    rank: int = 32,
) -> Path:
    """Train for `minutes` in all, going on from the run's checkpoint if there is one; return the adapter's path.

    `session` stops after that many minutes; the next session goes on. Raises ModelError, CorpusError, CheckpointError.
    """
    if not 1 <= rank <= MOST_RANK:
        raise ModelError(f"the rank is {rank}; the kernel runs 1 to {MOST_RANK}")
    learned = code_of(code, "train")
    if held_out is not None:
        judged = code_of(held_out, "judge", "held-out")
    else:
        judged = learned[::HELD_OUT_SHARE]
        learned = [file for number, file in enumerate(learned) if number % HELD_OUT_SHARE] or judged
    work.mkdir(parents=True, exist_ok=True)
    run = Run(frozen_model(name, os.cpu_count() or 1), work, learned, judged, rank)
    progress, fastest = run.progress, float("inf")
    if not progress.step:
        run.report()
    started = last_saved = time.monotonic()
    while progress.minutes < minutes and (session is None or time.monotonic() - started < session * 60):
        begun = time.monotonic()
        losses = run.step(progress.minutes / minutes)
        now = time.monotonic()
        fastest = min(fastest, now - begun)
        progress.minutes += min(now - begun, SLOWER * fastest) / 60
        if progress.step % NOTED == 0:
            figures = {"loss": round(float(losses.total.detach()), 3), "train_accepted": round(losses.accepted, 3)}
            run.log(**figures)
            print(
                f"{progress.minutes:6.1f} min  step {progress.step}  rows {progress.canvas_rows}  {figures}", flush=True
            )
        if now - last_saved > CHECKPOINT_MINUTES * 60:
            run.save()
            run.report()
            last_saved = time.monotonic()
    run.save()
    run.report()
    return work / ADAPTER_FILE

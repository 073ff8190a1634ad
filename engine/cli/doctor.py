"""`midspan doctor`: check the installation. Each check returns what it found and, if something is wrong, what to do."""

import asyncio
import importlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal

import attrs
import tree_sitter
import typer
from rich.text import Text

from engine.cli.console import FAILED, AsJson, err, out
from engine.cli.ladder import measured_devices, measured_offer, offer_line
from engine.cli.lsp_client import LspSession
from engine.cli.setup.editors import OLDEST_NEOVIM, neovim_version
from engine.client.address import make_private, runtime_paths_of
from engine.client.connection import EngineClient
from engine.client.launcher import EngineOptions, connect_running
from engine.errors import EngineUnavailable, MidspanError
from engine.library.catalog import DEFAULT_BUDGET_MS, answers_on, catalog
from engine.library.device_memory import device_memories, has_gpu_driver, unseen_gpu
from engine.library.extras import MODELS, how_to_install
from engine.library.store import DEFAULT, chosen_model
from engine.library.weights_header import read_weights
from engine.models.embedded.runner import kernel_paths

Verdict = Literal["ok", "warn", "fail"]
_OLDEST_PYTHON = (3, 11)
_OLDEST_TORCH = (2, 10)
"""The first with grouped products as a public function."""
_REINSTALL = "install Midspan again: `make setup` in a checkout, else `pip install --force-reinstall .` in a clone"
_NO_WEIGHTS = "install Midspan again, or restore engine/weights in a checkout (git checkout engine/weights)"
_NO_KERNEL = "install gcc or clang with Python's headers, and then Midspan again"
# Run in another process, because torch takes seconds to import and can crash when it is broken.
_TORCH_SCRIPT = "import torch; print(torch.__version__, torch.get_num_threads(), torch.cuda.is_available())"
_TORCH_SECONDS = 120


@attrs.frozen
class Check:
    """The result of a check. "warn": Midspan works, but not as well as it could. "fail": it cannot fill holes."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


def installation() -> Iterator[Check]:
    """Yield the checks that need no running Midspan process, each as soon as it is done."""
    yield python()
    yield packages()
    yield grammars()
    yield torch()
    yield larger_models()
    yield cpu()
    yield kernel()
    yield weights()


def python() -> Check:
    """Check the version of Python."""
    found = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < _OLDEST_PYTHON:
        return Check("Python", "fail", found, "install Python 3.11 or newer, and Midspan with it")
    return Check("Python", "ok", found)


def packages() -> Check:
    """Check that every package Midspan requires is installed."""
    try:
        names = _requirements()
    except metadata.PackageNotFoundError:
        return Check("packages", "fail", "Midspan itself is not installed", "run `make setup`, or pip install -e .")
    missing = [name for name in names if not _is_installed(name)]
    if missing:
        return Check("packages", "fail", f"missing: {', '.join(missing)}", _REINSTALL)
    examples = ", ".join(f"{name} {metadata.version(name)}" for name in ("pygls", "lsprotocol", "numpy", "tree-sitter"))
    return Check("packages", "ok", f"all {len(names)} are installed, such as {examples}")


def grammars() -> Check:
    """Check that all tree-sitter grammars load with the installed tree-sitter."""
    names = [name for name in _requirements() if name.startswith("tree-sitter-")]
    broken = [name for name in names if not _grammar_loads(name)]
    if broken:
        advice = f"pip install --force-reinstall {' '.join(broken)}; until then their holes are cut by lines"
        return Check("grammars", "warn", f"do not load: {', '.join(broken)}", advice)
    return Check("grammars", "ok", f"all {len(names)} load")


def torch() -> Check:
    """Check that torch imports if it is installed, and report its version and devices."""
    if not _is_installed("torch"):
        advice = f"to use larger models or a GPU, {how_to_install(MODELS)}"
        return Check("torch", "ok", f"not installed, and the embedded model needs none; {advice}")
    try:
        run = subprocess.run(
            [sys.executable, "-P", "-c", _TORCH_SCRIPT],
            capture_output=True,
            text=True,
            timeout=_TORCH_SECONDS,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or ["no reason given"])[-1]
        return Check("torch", "fail", f"does not import: {reason}", _REINSTALL)
    except subprocess.TimeoutExpired:
        return Check("torch", "fail", f"did not import within {_TORCH_SECONDS} s", _REINSTALL)
    version, threads, cuda = run.stdout.split()[-3:]
    found = f"{version}, {'CUDA and CPU' if cuda == 'True' else 'CPU'}, {threads} threads"
    if cuda != "True" and has_gpu_driver():
        return Check("torch", "warn", found, unseen_gpu(version))
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _OLDEST_TORCH:
        return Check("torch", "warn", found, "DiffusionGemma is slow before torch 2.10: pip install --upgrade torch")
    return Check("torch", "ok", found)


def larger_models() -> Check:
    """Tell which models of the catalog fit a device of this machine now, and would answer in time. Loads none."""
    devices = measured_devices(device_memories())
    if not devices:
        return Check("larger models", "ok", "this system does not tell its memory")
    found = "; ".join(answers_on(device, catalog().values()) for device in devices)
    each = f"estimates; in time is {DEFAULT_BUDGET_MS} ms, midspan.budgetMs; `midspan models list` has each"
    return Check("larger models", "ok", f"{found} ({each})")


def cpu() -> Check:
    """Check for bf16 arithmetic, which makes a pass of the larger models 2 to 3.5 times faster than fp32."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return Check("processor", "ok", f"{platform.machine()}; this system does not tell its features")
    cpu_info = path.read_text(errors="replace")
    features = set(re.findall(r"\b(?:avx2|avx512f|avx512_bf16|amx_bf16|bf16|asimd)\b", cpu_info))
    found = f"{platform.machine()} with {', '.join(sorted(features)) or 'no known vector instructions'}"
    if features & {"avx512_bf16", "amx_bf16", "bf16"}:
        return Check("processor", "ok", found)
    return Check(
        "processor", "warn", found, "the processor has no bf16: fills of the larger models take 2 to 3 times as long"
    )


def kernel() -> Check:
    """Check that the embedded model's kernel was built."""
    if paths := kernel_paths():
        return Check("kernel", "ok", f"the embedded model runs on the path {paths[0]}")
    return Check("kernel", "warn", "not built: the embedded model runs in NumPy, several times slower", _NO_KERNEL)


def weights() -> Check:
    """Check that the embedded model's files are complete."""
    try:
        header = read_weights()
    except MidspanError as error:
        return Check("embedded model", "fail", str(error), _NO_WEIGHTS)
    return Check("embedded model", "ok", f"{header.parameters / 1e6:.1f}M parameters, {header.megabytes:.1f} MB")


def editors() -> Check:
    """Check which editors with inline completion are on the PATH."""
    found, advice = [], "Midspan needs an editor with LSP 3.18 inline completion: Neovim 0.12 or newer, or VS Code"
    if nvim := shutil.which("nvim"):
        try:
            version = neovim_version(nvim)
        except MidspanError as error:
            version, advice = (0, 0), str(error)
        if version >= OLDEST_NEOVIM:
            found.append(f"Neovim {version[0]}.{version[1]}")
        elif version > (0, 0):
            advice = f"Neovim {version[0]}.{version[1]} is too old for inline completion; 0.12 or newer is needed"
    if shutil.which("code"):
        found.append("VS Code")
    if found:
        return Check("editors", "ok", ", ".join(found))
    return Check("editors", "warn", "no known editor is on the PATH", advice)


def _requirements() -> list[str]:
    lines = [line for line in metadata.requires("midspan") or [] if "extra ==" not in line]
    return [re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in lines]


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _grammar_loads(name: str) -> bool:
    try:
        module = importlib.import_module(name.replace("-", "_"))
        factories = [getattr(module, attribute) for attribute in dir(module) if attribute.startswith("language")]
        languages = [tree_sitter.Language(factory()) for factory in factories if callable(factory)]
    except (ImportError, ValueError, TypeError):
        return False
    return bool(languages)


_STYLES: dict[Verdict, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(as_json: AsJson = False) -> None:
    """Check the installation and say how to fix it. The exit status is 1 if Midspan cannot work."""
    results = []
    with err.status("checking"):
        for check in _all_checks():
            results.append(check)
            if not as_json:
                _show(check)
    if as_json:
        healthy = all(check.verdict != "fail" for check in results)
        typer.echo(json.dumps({"healthy": healthy, "checks": [attrs.asdict(check) for check in results]}))
    if any(check.verdict == "fail" for check in results):
        raise typer.Exit(FAILED)


def _all_checks() -> Iterator[Check]:
    yield from installation()
    yield model_in_use()
    if (offer := measured_offer(DEFAULT_BUDGET_MS)) is not None:
        yield Check("better model", "ok", offer_line(offer))
    yield runtime_folder()
    yield asyncio.run(language_server())
    yield asyncio.run(engine())
    yield editors()


def model_in_use() -> Check:
    """Check that the chosen model is here."""
    choice = chosen_model()
    if choice.problem:
        return Check("model in use", "warn", choice.model, choice.problem)
    return Check("model in use", "ok", choice.model)


def runtime_folder() -> Check:
    """Check that this user, and nobody else, can write to the folder of socket, lock and log."""
    folder = runtime_paths_of(DEFAULT).directory
    try:
        make_private(folder)
    except EngineUnavailable as error:
        return Check("runtime folder", "fail", str(error))
    if not os.access(folder, os.W_OK | os.X_OK):
        return Check("runtime folder", "fail", f"{folder} cannot be written", f"chmod u+rwx {folder}")
    return Check("runtime folder", "ok", str(folder))


async def language_server() -> Check:
    """Check that midspan-lsp starts and answers."""
    try:
        async with LspSession() as session:
            milliseconds = session.initialize_ms
    except MidspanError as error:
        return Check("language server", "fail", str(error), "run `midspan-lsp --stdio` by hand and read its errors")
    return Check("language server", "ok", f"answers {milliseconds:.0f} ms after its start")


async def engine() -> Check:
    """Check the running engine. It is no problem if none is running."""
    try:
        client: EngineClient | None = await connect_running(EngineOptions(), "midspan-doctor")
        if client is None:
            return Check("engine", "ok", "not running; the first fill starts it")
        status, memory = await client.status(), await client.memory_status("")
        await client.close()
    except MidspanError as error:
        return Check("engine", "warn", str(error), "midspan engine stop; the next fill starts a new one")
    found = f"process {status.pid}, {status.model.name} on {status.model.device}, {status.fills} holes filled"
    return Check("engine", "ok", f"{found}; memory: {memory.readable}")


def _show(check: Check) -> None:
    style = _STYLES[check.verdict]
    out.print(Text.assemble((f"{check.verdict:<5}", style), (f"{check.name:<16}", "cyan"), check.found), soft_wrap=True)
    if check.advice:
        out.print(Text.assemble(" " * 21, ("→ " + check.advice, style)), soft_wrap=True)

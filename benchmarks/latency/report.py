"""Shows the latency figures: tables in the terminal, JSON and a plot in a folder."""

import json
from pathlib import Path

import attrs
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.common.machine import Machine
from benchmarks.common.startup import StartFigures
from benchmarks.common.statistic import Percentiles
from benchmarks.latency.commit_rules import CONTENDERS, RuleFigures
from benchmarks.latency.typing_session import TypingFigures
from engine.protocol.messages import ModelInfo


@attrs.frozen
class Report:
    """Everything that one run measured."""

    machine: Machine
    model: ModelInfo
    starts: StartFigures
    typing: TypingFigures
    rules: list[RuleFigures]


def show(report: Report, console: Console) -> None:
    """Print the machine, the model and the tables."""
    machine, model = report.machine, report.model
    console.print(
        f"{machine.processor}, {machine.cores} cores, {machine.system}, torch {machine.torch}", soft_wrap=True
    )
    console.print(f"model {model.name}, {model.parameters / 1e6:.1f}M parameters, {model.device} {model.dtype}")
    console.print(_start_table(report.starts))
    console.print(_typing_table(report.typing))
    console.print(_rule_table(report.rules))


def write(report: Report, folder: Path) -> tuple[Path, Path]:
    """Write latency.json and latency.png, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    data, plot = folder / "latency.json", folder / "latency.png"
    data.write_text(json.dumps(attrs.asdict(report), indent=1) + "\n", "utf-8")
    _plot(report, plot)
    return data, plot


def _start_table(starts: StartFigures) -> Table:
    table = Table("start", "measured", title="Starts", box=SIMPLE_HEAD)
    table.columns[1].justify = "right"
    table.add_row("language server: initialize answered", f"{starts.initialize_ms:.0f} ms")
    table.add_row("language server: resident", f"{starts.server_rss_mb:.0f} MB")
    table.add_row("engine: no process to first fill answered", f"{starts.engine_first_fill_ms:.0f} ms")
    table.add_row("engine: second fill, the same hole", f"{starts.engine_second_fill_ms:.0f} ms")
    table.add_row("engine: resident", f"{starts.engine_rss_mb:.0f} MB")
    return table


def _typing_table(typing: TypingFigures) -> Table:
    title = f"Typing {typing.characters} characters of {typing.spans} lines, milliseconds"
    table = Table("request to answer", "n", "p50", "p95", "p99", title=title, box=SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    rows: list[tuple[str, Percentiles]] = [
        ("all requests", typing.all_requests),
        ("  not answered from the last suggestion", typing.asked_of_engine),
        ("  answered from it", typing.reused),
        ("in the engine: queue", typing.queue),
        ("in the engine: encode", typing.encode),
        ("in the engine: denoise", typing.denoise),
    ]
    for name, values in rows:
        table.add_row(name, str(values.count), f"{values.p50:.1f}", f"{values.p95:.1f}", f"{values.p99:.1f}")
    table.caption = (
        f"first request {typing.first_request_ms:.0f} ms; saved by reuse {typing.saved_by_reuse:.0%}; something shown "
        f"{typing.shown:.0%}, and then right as far as it goes {typing.right:.0%}, the whole rest of the line "
        f"{typing.whole:.0%}; context from the cache {typing.context_from_cache:.0%}"
    )
    return table


def _rule_table(rules: list[RuleFigures]) -> Table:
    headings = ("length", "rule", "holes", "ms", "passes", "tokens", "speed", "exact", "same")
    table = Table(
        *headings,
        title="The same holes by rule, context encoded before",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 0, 0, 1),
    )
    table.columns[1].no_wrap = True
    for column in table.columns[2:]:
        column.justify = "right"
    for figures in rules:
        table.add_row(
            figures.bucket,
            figures.contender,
            str(figures.holes),
            f"{figures.ms:.1f}",
            f"{figures.passes:.1f}",
            f"{figures.tokens:.1f}",
            f"{figures.speedup:.2f}x",
            f"{figures.exact:.0%}",
            f"{figures.same_as_twin:.0%}",
            end_section=figures.contender == CONTENDERS[-1].name,
        )
    table.caption = (
        "length: tokens of the left-to-right answer; ms: median; speed: against left to right; "
        "exact: as the author wrote; same: the text of left to right"
    )
    return table


def _plot(report: Report, path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    _plot_typing(left, report.typing)
    _plot_rules(right, report.rules)
    figure.suptitle(f"{report.model.name} on {report.machine.processor}, {report.machine.cores} cores", fontsize=10)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _plot_typing(axes: Axes, typing: TypingFigures) -> None:
    names = ["all requests", "asked of the engine", "reused"]
    groups = [typing.all_requests, typing.asked_of_engine, typing.reused]
    for shift, (label, values) in enumerate(
        [
            ("p50", [group.p50 for group in groups]),
            ("p95", [group.p95 for group in groups]),
            ("p99", [group.p99 for group in groups]),
        ]
    ):
        axes.bar([place + 0.27 * (shift - 1) for place in range(len(names))], values, 0.25, label=label)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("milliseconds")
    axes.set_title("request to answer while typing", fontsize=10)
    axes.margins(y=0.2)
    axes.legend(ncols=3, loc="upper center", fontsize=8)


def _plot_rules(axes: Axes, rules: list[RuleFigures]) -> None:
    buckets = list(dict.fromkeys(figures.bucket for figures in rules))
    contenders = dict.fromkeys(figures.contender for figures in rules)  # A model may lack one of CONTENDERS.
    for shift, contender in enumerate(contenders):
        values = [figures.ms for figures in rules if figures.contender == contender]
        axes.bar([place + 0.27 * (shift - 1) for place in range(len(buckets))], values, 0.25, label=contender)
    axes.set_xticks(range(len(buckets)), buckets)
    axes.set_xlabel("tokens of the left-to-right answer")
    axes.set_ylabel("milliseconds a fill (median)")
    axes.set_title("the same holes by rule", fontsize=10)
    axes.margins(y=0.2)
    axes.legend(ncols=3, loc="upper center", fontsize=8)

"""The settings: each has a type, a default and a line of documentation. A wrong value is reported once, in one line.

The user's on/off switch overrides them.

The documented names are camelCase (`budgetMs`); snake_case works too. In the editor they are under "midspan".
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args

import attrs

from engine.client.launcher import EngineOptions
from engine.library.precision_names import PRECISION_SETTINGS
from engine.library.store import DEFAULT
from engine.protocol.confidence import FREE, GLANCE, NORMAL, WRONG, Price
from engine.protocol.editor_messages import camel_case
from engine.protocol.messages import MemoryName, RuleName
from lsp_server.exclusion import SECRET_FILES


@attrs.frozen
class Kind:
    """The type of a setting. `read` returns the value, or raises ValueError when it is not what `allowed` says."""

    allowed: str
    read: Callable[[object], Any]


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _flags(value: object) -> dict[str, bool]:
    if not isinstance(value, Mapping) or not all(isinstance(on, bool) for on in value.values()):
        raise ValueError
    return {str(key): on for key, on in value.items()}


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) and text for text in value):
        raise ValueError
    return tuple(value)


def integer(low: int, high: int) -> Kind:
    """Return the kind of whole numbers from `low` to `high`."""

    def read(value: object) -> int:
        # Lua and some JSON writers send 150.0 for 150. To Python, True is an int.
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise ValueError
        if not low <= value <= high:
            raise ValueError
        return int(value)

    return Kind(f"a whole number from {low} to {high}", read)


def number(low: float, high: float) -> Kind:
    """Return the kind of numbers from `low` to `high`."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError
        return float(value)

    return Kind(f"a number from {low:g} to {high:g}", read)


def number_or_word(words: Iterable[str], low: float, high: float) -> Kind:
    """Return the kind of numbers from `low` to `high` and of these words."""
    numbers, allowed = number(low, high), tuple(words)

    def read(value: object) -> float | str:
        return value if isinstance(value, str) and value in allowed else float(numbers.read(value))

    return Kind(f"{', '.join(allowed)}, or {numbers.allowed}", read)


def choice(*choices: str) -> Kind:
    """Return the kind of these texts."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError
        return value

    return Kind("one of " + ", ".join(choices), read)


FLAG = Kind("true or false", _flag)
FLAGS = Kind("an object of language ids and true or false", _flags)
TEXT = Kind("a text that is not empty", _text)
GLOBS = Kind("a list of file name patterns", _texts)


SECTION = "midspan"
_OF_EDITORS = frozenset({"server", "trace"})
"""Names under "midspan" that are the editor's own: VS Code sends its midspan.server.path too."""
# What a wrong suggestion and a glance cost, in keys. Eager's price is what the evaluation counts. At normal's more of
# the offers are right, and more keys are saved net of what they cost; its numbers were chosen on one half of the young
# packages. Quiet is for readers whom grey text disturbs: it hides what is shorter than six characters, but for the
# rest of a begun name. docs/suggestions.md says how to measure them.
GATES = {"quiet": Price(wrong=40.0, glance=4.0, name=2.0), "normal": NORMAL, "eager": Price(WRONG, GLANCE)}
DEFAULT_GATE = GATES["normal"]
PAUSED = Price(WRONG, glance=-GLANCE, least=0.6, name=-GLANCE, part=0.9)
"""The price once the user has stopped typing, and looks for how to go on: then a short text is worth a glance too."""


def price_of(gate: Price | float | str) -> Price:
    """Return the price that a value of the setting `gate` stands for: a word's, or that of a least probability."""
    if isinstance(gate, Price):
        return gate
    if isinstance(gate, str):
        return GATES[gate]
    return Price(least=float(gate)) if gate else FREE


def _metadata(kind: Kind, doc: str, level: Literal["basic", "advanced"], default: object = None) -> dict[str, object]:
    return {"kind": kind, "doc": doc, "level": level, "default": default}


def _basic(default: Any, kind: Kind, doc: str) -> Any:
    """Return the field of a setting that every user may want to change; see Settings."""
    return attrs.field(default=default, metadata=_metadata(kind, doc, "basic"))


def _advanced(default: Any, kind: Kind, doc: str) -> Any:
    return attrs.field(default=default, metadata=_metadata(kind, doc, "advanced"))


@attrs.frozen
class Settings:
    """All settings, in the order in which a person meets them.

    In a field's metadata, `doc` is what users read, `kind` says what is allowed, and `level` is "basic" for what a new
    user may want to change. `default` is the default as users write it, if that is another than the field's.
    """

    enabled: bool = _basic(True, FLAG, "Whether Midspan suggests anything.")
    gate: Price = attrs.field(
        default=DEFAULT_GATE,
        converter=price_of,
        metadata=_metadata(
            number_or_word(GATES, 0, 1),
            "How much a suggestion must be worth: quiet (seldom, and seldom wrong), normal, eager (often, and "
            "more often wrong), or a number: how likely it must be right, from 0 (shows everything) to 1 (nothing).",
            "basic",
            default="normal",
        ),
    )
    automatic: bool = _basic(
        True, FLAG, "Whether suggestions come by themselves while you type; else only when you ask for one."
    )
    languages: dict[str, bool] = _basic(
        attrs.Factory(dict), FLAGS, "Languages to switch off, by language id; one that is not named is on."
    )
    model: str = _basic(
        DEFAULT,
        TEXT,
        'The model: a name that "midspan models list" shows, or a folder. '
        'The default is what "midspan models use" chose, at first "embedded".',
    )
    max_lines: int = _advanced(8, integer(1, 64), "The most lines that a suggestion may have.")
    whole_lines: bool = _advanced(
        False, FLAG, "Whether a line is suggested whole or not at all; else as much of it as is sure."
    )
    pause_ms: int = _advanced(
        600,
        integer(0, 10_000),
        "Milliseconds after the last key from which a suggestion that normal or eager held back is shown, if it is "
        "more likely right than wrong; 0 shows it never.",
    )
    next_edits: bool = _advanced(True, FLAG, "Whether the place where your last edit fits too is offered next.")
    edits_model: str = _advanced(
        DEFAULT,
        TEXT,
        'The model for next edits that no rule knows; by default what "midspan models use --edits" chose, or none.',
    )
    completion_items: bool = _advanced(
        False, FLAG, "Whether the completion menu has suggestions too, for editors without inline ones."
    )
    memory: MemoryName = _advanced(
        "workspace",
        choice(*get_args(MemoryName)),
        "What a suggestion may look up and read: the files of the workspace, the open file alone (file), or "
        "nothing (off).",
    )
    related_files: str = _advanced(
        "local",
        choice("local", "always", "never"),
        "Whether a model with room for it reads other files too: local, unless they would leave the machine.",
    )
    exclude: tuple[str, ...] = _advanced(
        SECRET_FILES, GLOBS, "Files that the model never reads: patterns of names, or of paths with a slash."
    )
    budget_ms: int = _advanced(500, integer(20, 5000), "Milliseconds that the engine may take for a suggestion.")
    max_tokens: int = _advanced(64, integer(1, 512), "The most tokens that the model may write for a suggestion.")
    context_tokens: int = _advanced(
        0, integer(0, 1_000_000), "The most tokens that the model is given to read; 0 gives what it has room for."
    )
    rule: RuleName = _advanced(
        "default",
        choice(*get_args(RuleName)),
        "How a hole is filled: verify (drafts; the text of left to right), threshold or entropy (denoise alone), "
        "left-to-right; default is the model's own.",
    )
    device: str = _advanced(
        "auto", choice("auto", "cpu", "cuda"), "Where the model runs; auto takes a GPU for larger models, if any."
    )
    precision: str = _advanced(
        "auto",
        choice(*PRECISION_SETTINGS),
        "The precision of a model's weights; auto takes bf16 if it fits the free memory, else int8, else int4.",
    )
    threads: int = _advanced(0, integer(0, 1024), "Processor cores that the engine uses; 0 means all of them.")
    memory_megabytes: int = _advanced(
        256,
        integer(16, 16384),
        "Megabytes that the memory of all workspaces may take; then it forgets the oldest files.",
    )
    idle_minutes: float = _advanced(30.0, number(0, 10080), "Idle minutes until the engine leaves; 0 is never.")
    refactor_max_files: int = _advanced(20_000, integer(1, 20_000), "The most files that a repeated edit searches.")
    refactor_max_places: int = _advanced(5_000, integer(1, 1_000_000), "The most places that a repeated edit finds.")
    refactor_max_seconds: float = _advanced(60.0, number(0.1, 3600), "The most seconds that a repeated edit searches.")
    log_level: str = _advanced("info", choice("debug", "info", "warning", "error"), "How much is logged.")

    @property
    def paused(self) -> Price | None:
        """The price once the user has stopped typing; None where it stays: "quiet" and probabilities say enough."""
        return PAUSED if self.pause_ms and self.gate in (GATES["normal"], GATES["eager"]) else None

    @property
    def engine_options(self) -> EngineOptions:
        """The settings with which the engine is started."""
        names = {field.name for field in attrs.fields(EngineOptions)} - {"niceness"}
        return EngineOptions(**{name: getattr(self, name) for name in names})


@attrs.frozen
class SettingsReading:
    """The settings, one line for each wrong value, and the unknown names."""

    settings: Settings
    problems: tuple[str, ...]
    unknown: tuple[str, ...]


def read_settings(*layers: object) -> SettingsReading:
    """Read settings from what an editor sent. A later layer overrides an earlier one; None is skipped.

    A layer is the object of settings, or an object that has it under "midspan". Never raises: a wrong value is
    reported as a problem, and the value of the layer below, or the default, is kept.
    """
    fields = {field.name: field for field in attrs.fields(Settings)}
    values: dict[str, Any] = {}
    problems: list[str] = []
    unknown: list[str] = []
    for layer in layers:
        section = layer.get(SECTION, layer) if isinstance(layer, Mapping) else layer
        if section is None:
            continue
        if not isinstance(section, Mapping):
            problems.append(
                f"the settings under {SECTION} are {_quoted(section)}; an object is allowed; defaults are used"
            )
            continue
        for key, value in section.items():
            name = _snake_case(str(key))
            if name not in fields:
                unknown += [str(key)] * (name not in _OF_EDITORS)
            elif value is not None:
                kind: Kind = fields[name].metadata["kind"]
                try:
                    values[name] = kind.read(value)
                except (ValueError, OverflowError):
                    kept = values.get(name, documented_default(fields[name]))
                    problems.append(
                        f"the setting {SECTION}.{camel_case(name)} is {_quoted(value)}; allowed is {kind.allowed}; "
                        f"{_quoted(kept)} is used"
                    )
    return SettingsReading(Settings(**values), tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(unknown)))


@attrs.define
class Configuration:
    """`initial` came with initialize. `toggled` outlives a change of the settings: off stays off."""

    settings: Settings = attrs.field(factory=Settings)
    initial: object = None
    toggled: dict[str | None, bool] = attrs.field(factory=dict)
    _reported: set[str] = attrs.field(factory=set)

    def begin(self, initial: object) -> None:
        """Use the settings that came with initialize. The first `update` reports what is wrong with them."""
        self.initial = initial
        self.settings = read_settings(initial).settings

    def update(self, layer: object) -> SettingsReading:
        """Read `layer` over the initial settings, and return the reading with only its new problems."""
        reading = read_settings(self.initial, layer)
        self.settings = reading.settings
        problems = tuple(line for line in reading.problems if line not in self._reported)
        unknown = tuple(name for name in reading.unknown if name not in self._reported)
        # A mistake that was corrected and made again is reported again.
        self._reported = {*reading.problems, *reading.unknown}
        return attrs.evolve(reading, problems=problems, unknown=unknown)

    def is_on(self, language: str | None = None) -> bool:
        """Return whether suggestions are on, in general or for the language with this id."""
        if not self.toggled.get(None, self.settings.enabled):
            return False
        return language is None or self.toggled.get(language, self.settings.languages.get(language, True))

    def toggle(self, language: str | None = None) -> bool:
        """Flip the switch of one language, or of all; return whether it is on now."""
        settings = self.settings
        default = settings.enabled if language is None else settings.languages.get(language, True)
        enabled = not self.toggled.get(language, default)
        self.toggled[language] = enabled
        return enabled


def documented_default(field: "attrs.Attribute[Any]") -> object:
    """Return the default of a setting as users write it, as JSON has it."""
    default = getattr(Settings(), field.name)
    return field.metadata["default"] or (list(default) if isinstance(default, tuple) else default)


def setting_names() -> list[str]:
    """Return the documented names of all settings."""
    return [camel_case(field.name) for field in attrs.fields(Settings)]


def _snake_case(key: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in key)


def _quoted(value: object) -> str:
    text = json.dumps(value, default=lambda other: type(other).__name__)
    return text if len(text) <= 60 else text[:57] + "..."

"""The settings that the VS Code extension contributes are those that the language server takes."""

import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from engine.protocol.editor_messages import camel_case
from lsp_server.settings import GATES, SECTION, Kind, Settings, documented_default

PACKAGE = Path(__file__).parent.parent.parent / "editors" / "vscode" / "package.json"
README = PACKAGE.with_name("README.md")
CONTRIBUTES: dict[str, Any] = json.loads(PACKAGE.read_text("utf-8"))["contributes"]
PARTS: list[dict[str, Any]] = CONTRIBUTES["configuration"]
CONTRIBUTED: dict[str, Any] = {name: value for part in PARTS for name, value in part["properties"].items()}
FIELDS = {f"{SECTION}.{camel_case(field.name)}": field for field in attrs.fields(Settings)}
EXTENSION_ONLY = {"midspan.server.path", "midspan.server.package", "midspan.tab", "midspan.heldBack"}


def test_the_names_are_the_same() -> None:
    assert set(CONTRIBUTED) - EXTENSION_ONLY == set(FIELDS)


def test_the_server_is_not_sent_what_only_the_extension_reads() -> None:
    listed = re.search(r"EXTENSION_ONLY = \[(.*)\]", (PACKAGE.parent / "src" / "wire.ts").read_text("utf-8"))
    assert listed is not None
    assert set(re.findall(r"\w+", listed[1])) == {name.split(".")[1] for name in EXTENSION_ONLY}


def test_a_new_user_meets_the_basic_settings_first_and_the_others_under_advanced() -> None:
    basic, advanced = ([name for name in part["properties"] if name in FIELDS] for part in PARTS)
    levels = {name: field.metadata["level"] for name, field in FIELDS.items()}
    assert [part["title"] for part in PARTS] == ["Midspan", "Midspan: Advanced"]
    assert basic == [name for name, level in levels.items() if level == "basic"]
    assert advanced == [name for name, level in levels.items() if level == "advanced"]
    assert sorted(FIELDS, key=lambda name: int(CONTRIBUTED[name]["order"])) == list(FIELDS)


@pytest.mark.parametrize("name", ["midspan.model", "midspan.server.path", "midspan.server.package"])
def test_no_workspace_says_what_is_run_or_where_code_is_sent(name: str) -> None:
    assert CONTRIBUTED[name]["scope"] == "machine"


@pytest.mark.parametrize("name", FIELDS)
def test_default_and_description_are_the_same(name: str) -> None:
    field, contributed = FIELDS[name], CONTRIBUTED[name]
    assert contributed["default"] == documented_default(field)
    assert contributed["description"] == field.metadata["doc"]


def test_the_readme_tells_the_same_defaults() -> None:
    rows = re.findall(r"^\| `(midspan\.\w+)` \| `(.+?)` \|", README.read_text("utf-8"), re.MULTILINE)
    assert len(rows) > 1
    assert {name: json.loads(default) for name, default in rows} == {
        name: CONTRIBUTED[name]["default"] for name, _ in rows
    }


@pytest.mark.parametrize("name", [name for name in FIELDS if "minimum" in CONTRIBUTED[name]])
def test_the_bounds_are_the_servers(name: str) -> None:
    kind: Kind = FIELDS[name].metadata["kind"]
    low, high = CONTRIBUTED[name]["minimum"], CONTRIBUTED[name]["maximum"]
    assert (kind.read(low), kind.read(high)) == (low, high)
    assert not is_allowed(kind, low - 1)
    assert not is_allowed(kind, high + 1)


def test_the_words_of_the_gate_name_the_servers_prices() -> None:
    contributed = CONTRIBUTED["midspan.gate"]
    assert contributed["enum"] == list(GATES)
    for price, description in zip(GATES.values(), contributed["enumDescriptions"], strict=True):
        assert description.endswith(f"A glance costs {price.glance:g} keys, a wrong suggestion {price.wrong:g}.")


@pytest.mark.parametrize("name", [name for name in FIELDS if "enum" in CONTRIBUTED[name] and name != "midspan.gate"])
def test_the_choices_are_the_servers(name: str) -> None:
    kind: Kind = FIELDS[name].metadata["kind"]
    assert [kind.read(choice) for choice in CONTRIBUTED[name]["enum"]] == CONTRIBUTED[name]["enum"]
    assert kind.allowed == "one of " + ", ".join(CONTRIBUTED[name]["enum"])


def is_allowed(kind: Kind, value: float) -> bool:
    try:
        kind.read(value)
    except ValueError:
        return False
    return True

"""Settings as editors send them, good and bad."""

import json
from pathlib import Path

import attrs
import pytest

from engine.protocol.confidence import FREE, Price
from lsp_server.exclusion import MAX_DOCUMENT_BYTES, SECRET_FILES, why_secret, why_unfit
from lsp_server.settings import GATES, Configuration, Settings, read_settings, setting_names

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("nothing", [(), (None,), ({},), ({"midspan": None},), ({"midspan": {}}, None)])
def test_without_settings_the_defaults_are_used(nothing: tuple[object, ...]) -> None:
    reading = read_settings(*nothing)

    assert reading.settings == Settings()
    assert reading.problems == ()
    assert reading.unknown == ()


@pytest.mark.parametrize(
    "layer", [{"midspan": {"budgetMs": 80}}, {"budgetMs": 80}, {"budget_ms": 80}, {"budgetMs": 80.0}]
)
def test_a_setting_is_read_in_every_form_that_editors_send(layer: object) -> None:
    reading = read_settings(layer)

    assert reading.settings.budget_ms == 80
    assert reading.problems == ()


def test_workspace_settings_override_those_of_initialize() -> None:
    reading = read_settings({"budgetMs": 80, "maxLines": 2}, {"midspan": {"maxLines": 4, "budgetMs": None}})

    assert (reading.settings.budget_ms, reading.settings.max_lines) == (80, 4)


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("enabled", "yes", "true or false"),
        ("languages", ["python"], "an object of language ids and true or false"),
        ("languages", {"python": "off"}, "an object of language ids and true or false"),
        ("budgetMs", 19, "a whole number from 20 to 5000"),
        ("budgetMs", 99.5, "a whole number from 20 to 5000"),
        ("budgetMs", True, "a whole number from 20 to 5000"),
        ("budgetMs", float("nan"), "a whole number from 20 to 5000"),
        ("maxLines", float("inf"), "a whole number from 1 to 64"),
        ("maxTokens", "64", "a whole number from 1 to 512"),
        ("model", "", "a text that is not empty"),
        ("gate", 1.5, "quiet, normal, eager, or a number from 0 to 1"),
        ("gate", "loud", "quiet, normal, eager, or a number from 0 to 1"),
        ("gate", True, "quiet, normal, eager, or a number from 0 to 1"),
        ("rule", "fast", "one of default, threshold, entropy, verify, left-to-right"),
        ("threads", -1, "a whole number from 0 to 1024"),
        ("device", "tpu", "one of auto, cpu, cuda"),
        ("idleMinutes", -1, "a number from 0 to 10080"),
        ("logLevel", "loud", "one of debug, info, warning, error"),
        ("exclude", "*.env", "a list of file name patterns"),
    ],
)
def test_a_wrong_value_gives_one_line_and_the_default_is_used(key: str, value: object, allowed: str) -> None:
    reading = read_settings({"midspan": {key: value}})

    (problem,) = reading.problems
    assert problem.startswith(f"the setting midspan.{key} is ")
    assert f"allowed is {allowed}; " in problem
    assert problem.endswith(" is used")
    assert "\n" not in problem
    assert reading.settings == Settings()


def test_a_wrong_value_keeps_the_correct_one_of_the_layer_below() -> None:
    reading = read_settings({"budgetMs": 80}, {"budgetMs": "soon"})

    assert reading.settings.budget_ms == 80
    assert reading.problems[0].endswith("; 80 is used")


@pytest.mark.parametrize("wrong", ["fast", 7, ["enabled"], {"midspan": "off"}])
def test_settings_that_are_not_an_object_are_one_problem(wrong: object) -> None:
    reading = read_settings(wrong)

    assert len(reading.problems) == 1
    assert "an object is allowed" in reading.problems[0]
    assert reading.settings == Settings()


@pytest.mark.parametrize(
    ("written", "gate"), [*GATES.items(), (0.83, Price(least=0.83)), (0, FREE), (1, Price(least=1.0))]
)
def test_the_gate_is_a_least_probability_or_the_word_of_a_price(written: object, gate: Price) -> None:
    assert read_settings({"gate": written}).settings.gate == gate


def test_the_words_of_the_gate_are_in_order_and_normal_is_the_default() -> None:
    assert GATES["eager"].wrong < GATES["normal"].wrong < GATES["quiet"].wrong
    assert GATES["eager"].glance <= GATES["normal"].glance <= GATES["quiet"].glance
    assert read_settings({}).settings.gate == GATES["normal"]
    assert read_settings({"gate": 7}).problems[0].endswith('"normal" is used')
    assert read_settings({"gate": "quiet"}, {"gate": 7}).problems[0].endswith('"quiet" is used')


def test_the_basic_settings_come_first() -> None:
    levels = [field.metadata["level"] for field in attrs.fields(Settings)]
    assert levels == sorted(levels, key=["basic", "advanced"].index)
    assert setting_names()[: levels.count("basic")] == ["enabled", "gate", "automatic", "languages", "model"]


def test_unknown_names_are_returned_and_break_nothing() -> None:
    reading = read_settings({"budget": 10, "maxLines": 3})

    assert reading.unknown == ("budget",)
    assert reading.settings.max_lines == 3


def test_a_long_wrong_value_is_cut_in_the_message() -> None:
    reading = read_settings({"gate": "x" * 5000})

    assert len(reading.problems[0]) < 200


def test_every_setting_has_a_line_of_documentation() -> None:
    for field in attrs.fields(Settings):
        assert field.metadata["doc"].endswith(".")
        assert field.metadata["kind"].allowed
    assert "budgetMs" in setting_names()


def test_the_same_mistake_is_reported_once_until_it_is_corrected() -> None:
    configuration = Configuration()
    configuration.begin({"gate": 7})

    assert len(configuration.update({"gate": 7}).problems) == 1
    assert configuration.update({"gate": 7}).problems == ()
    configuration.begin(None)
    assert configuration.update({"gate": 0.5}).problems == ()
    assert len(configuration.update({"gate": 7}).problems) == 1


def test_a_language_can_be_switched_off_and_on_by_itself() -> None:
    configuration = Configuration()
    configuration.begin({"languages": {"markdown": False}})

    assert not configuration.is_on("markdown")
    assert configuration.is_on("python")
    assert configuration.toggle("markdown")
    assert configuration.is_on("markdown")
    assert not configuration.toggle("python")
    assert not configuration.is_on("python")


def test_off_stays_off_when_another_setting_changes() -> None:
    configuration = Configuration()

    assert not configuration.toggle()
    configuration.update({"enabled": True, "maxLines": 3})

    assert not configuration.is_on("python")
    assert configuration.toggle()
    assert configuration.is_on("python")


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/app/.env",
        "/home/me/app/.env.local",
        "/home/me/app/.ENV",
        "/home/me/.ssh/id_rsa",
        "/home/me/.ssh/id_ed25519",
        "/home/me/tls/server.pem",
        "/home/me/tls/server.key",
        "/home/me/.aws/credentials",
        "/home/me/app/secrets.yaml",
        "secrets.toml",
        "/home/me/app/prod.env",
        "/home/me/app/.envrc",
        "/home/me/.git-credentials",
        "/home/me/.pgpass",
        "/home/me/infra/main.tfvars",
        "/home/me/.vault-token",
        "/home/me/.kube/config",
        "/home/me/.docker/config.json",
        "/home/me/app/secrets/database.yml",
        "/home/me/passwords.kdbx",
    ],
)
def test_files_with_secrets_are_excluded_by_default(path: str) -> None:
    assert "midspan.exclude" in (why_secret(path, SECRET_FILES) or "")


@pytest.mark.parametrize(
    "path",
    [
        "/home/me/app/main.py",
        "/home/credentials/main.py",
        "/srv/.env/lib.py",
        "monkey.py",
        "environment.py",
        "kube/config.py",
        "",
    ],
)
def test_other_files_are_not_excluded(path: str) -> None:
    assert why_secret(path, SECRET_FILES) is None


@pytest.mark.parametrize("pattern", ["vendor/*", "/home/me/app/vendor/*", "app/*/lib.py", "LIB.*"])
def test_a_pattern_with_a_slash_is_matched_with_the_path(pattern: str) -> None:
    assert why_secret("/home/me/app/vendor/lib.py", [pattern]) is not None
    assert why_secret("/home/me/app/main.py", [pattern]) is None


def test_large_and_binary_documents_are_excluded() -> None:
    limit = MAX_DOCUMENT_BYTES

    assert why_unfit("x" * limit) is None
    assert "2 MB" in (why_unfit("x" * (limit + 1)) or "")
    assert "2 MB" in (why_unfit("ä" * (limit // 2 + 1)) or "")
    assert why_unfit("ä" * (limit // 2)) is None
    assert "binary" in (why_unfit("\x7fELF\0\0") or "")


def test_in_vs_code_a_workspace_sets_neither_what_is_run_and_read_nor_what_it_costs() -> None:
    """`exclude` has no scope: the extension lets a workspace only add to it (editors/vscode/src/exclusion.ts)."""
    groups = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text("utf-8"))["contributes"]
    settings = {name: one for group in groups["configuration"] for name, one in group["properties"].items()}
    of_the_user = {name.removeprefix("midspan.") for name, one in settings.items() if "scope" in one}
    machine = {"model", "editsModel", "server.path", "server.package", "device", "precision", "threads"}
    assert of_the_user == machine | {"memoryMegabytes", "idleMinutes", "memory", "relatedFiles"}
    # Of "machine" a remote window takes the remote settings, so what keeps code private is of the user alone.
    assert settings["midspan.relatedFiles"]["scope"] == settings["midspan.memory"]["scope"] == "application"

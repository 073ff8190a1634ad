"""Which hosts the user confirmed, and which names of models name another machine."""

from pathlib import Path

import pytest

from engine.client.address import distrust, is_trusted, remote_host_of, trust, trust_for_now, trusted_hosts
from engine.remote.endpoint import endpoint_of, find_key

REMOTE = "mercury+https://api.example.com/v1#mercury"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIDSPAN_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("MIDSPAN_TRUSTED_HOSTS", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("model", "host"),
    [
        (REMOTE, "api.example.com"),
        ("vllm+http://10.0.0.5:8000/v1", "10.0.0.5:8000"),
        ("vllm+http://[2001:db8::1]:8000/v1", "[2001:db8::1]:8000"),
        ("openai+http://API.Example.com/v1", "api.example.com"),
        ("openai+http://127.0.0.1.example.com/v1", "127.0.0.1.example.com"),
        ("openai+http://127.0.0.1:8000/v1", None),
        ("openai+http://localhost/v1", None),
        ("openai+http://[::1]:80/v1", None),
        ("openai+http://host:port/v1", None),
        ("embedded", None),
        ("/models/a+b", None),
    ],
)
def test_a_model_names_another_machine_or_not(model: str, host: str | None) -> None:
    assert remote_host_of(model) == host


@pytest.mark.parametrize("model", [REMOTE, "vllm+http://10.0.0.5:8000/v1", "vllm+http://[2001:db8::1]:8000/v1"])
def test_the_confirmed_host_is_the_one_that_the_engine_asks(model: str) -> None:
    endpoint = endpoint_of(model)
    assert endpoint is not None
    assert remote_host_of(model) == endpoint.server


def test_a_host_is_trusted_until_that_is_taken_back() -> None:
    assert not is_trusted("api.example.com")
    trust("API.example.com")
    trust("other.example.com")
    assert is_trusted("api.example.com")
    assert not is_trusted("api.example.com:8000")
    distrust("api.example.com")
    assert trusted_hosts() == {"other.example.com"}


def test_the_environment_can_name_hosts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDSPAN_TRUSTED_HOSTS", "a.example.com, 10.0.0.5:8000")
    trust_for_now(REMOTE)
    assert trusted_hosts() == {"a.example.com", "10.0.0.5:8000", "api.example.com"}


@pytest.mark.parametrize("content", ["", "{}", '{"a": 1}', "[1, [2]]", "\xff", "[" * 100_000])
def test_a_file_that_is_no_list_of_hosts_trusts_nobody(folder: Path, content: str) -> None:
    (folder / "trusted-hosts.json").write_text(content, "latin-1")
    assert trusted_hosts() == frozenset()


def test_the_general_key_goes_only_where_the_user_confirmed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = endpoint_of(REMOTE)
    assert endpoint is not None
    monkeypatch.setenv("MIDSPAN_API_KEY", "general")
    assert find_key(endpoint) is None
    trust("api.example.com")
    assert find_key(endpoint) == "general"
    distrust("api.example.com")
    monkeypatch.setenv("MIDSPAN_API_KEY_API_EXAMPLE_COM", "special")
    assert find_key(endpoint) == "special"

"""Where code and key can go: names of servers, keys, proxies and certificates."""

from pathlib import Path

import pytest
from remote_client import error_line, fill_once
from support.remote_server import TEXT, ModelServer, answers_status, serving

from engine.errors import ModelError
from engine.remote.endpoint import endpoint_of


async def test_the_key_comes_from_the_environment_and_the_hosts_own_variable_wins(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill_once(server.model("openai"))
    monkeypatch.setenv("MIDSPAN_API_KEY", "general")
    await fill_once(server.model("openai"))
    monkeypatch.setenv("MIDSPAN_API_KEY_127_0_0_1", "special")
    await fill_once(server.model("openai"))
    keys = [received.headers.get("authorization") for received in server.received]
    assert keys == [None, "Bearer general", "Bearer special"]
    server.behaviour = answers_status(401)
    line = await error_line(server.model("openai"))
    assert "does not accept the key it was sent (401)" in line
    assert "special" not in line


async def test_a_key_never_goes_over_plain_http_to_another_machine(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_API_KEY_MODELS_EXAMPLE", "s3cr3t")
    # Through this proxy, the name of another machine leads to our server.
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    await fill_once("openai+http://models.example/v1#qwen")
    assert "authorization" not in server.received[0].headers
    server.behaviour = answers_status(401)
    assert "none is sent over plain http; use https" in await error_line("openai+http://models.example/v1#qwen")


async def test_a_key_that_no_header_can_hold_is_refused_and_not_quoted(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_API_KEY", "s3cr\n3t")
    with pytest.raises(ModelError, match="the key in MIDSPAN_API_KEY holds characters") as caught:
        await fill_once(server.model("openai"))
    assert "s3cr" not in str(caught.value)


async def test_a_request_to_this_machine_never_uses_a_proxy(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert (await fill_once(server.model("openai"))).candidates[0].text == TEXT


async def test_a_certificate_that_is_not_trusted_is_refused(certificate: tuple[Path, Path]) -> None:
    key, certificate_file = certificate
    with serving(ssl_keyfile=str(key), ssl_certfile=str(certificate_file)) as server:
        model = server.model("openai").replace("http:", "https:").replace("127.0.0.1", "localhost")
        assert "its certificate does not verify" in await error_line(model)
        assert server.received == []


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("http://127.0.0.1:8000/v1", "a URL alone does not say how to talk"),
        ("openia+http://127.0.0.1:8000", "no dialect is called 'openia'; there are openai, mercury, llamacpp, vllm"),
        ("openai+ftp://host/v1", "over http or https, not 'ftp'"),
        ("openai+http://", "names no host"),
        ("openai+http://host:99999/v1", "URL of a model's server is wrong"),
        ("openai+http://[::1/v1", "URL of a model's server is wrong"),
        ("openai+https://user:s3cr3t@host/v1", "holds a user name, a password or a query"),
        ("openai+https://host/v1?key=s3cr3t", "holds a user name, a password or a query"),
        ("openai+https://ho st/v1", "holds spaces or control characters"),
    ],
)
def test_a_wrong_name_gives_one_line_that_quotes_no_secret(model: str, says: str) -> None:
    with pytest.raises(ModelError) as caught:
        endpoint_of(model)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("model", ["embedded", "/models/qwen", "dream-coder", "openai"])
def test_other_names_are_not_those_of_a_server(model: str) -> None:
    assert endpoint_of(model) is None


@pytest.mark.parametrize(
    ("url", "server", "stays", "private"),
    [
        ("http://127.0.0.1:8000/v1/", "127.0.0.1:8000", True, True),
        ("http://LOCALHOST", "localhost", True, True),
        ("http://[::1]:80", "[::1]:80", True, True),
        ("https://api.example.com/v1", "api.example.com", False, True),
        ("http://192.168.1.7:8000", "192.168.1.7:8000", False, False),
        ("http://localhost.example.com", "localhost.example.com", False, False),
        ("http://127.0.0.1.example.com", "127.0.0.1.example.com", False, False),
    ],
)
def test_the_host_tells_whether_code_leaves_the_machine(url: str, server: str, stays: bool, private: bool) -> None:
    endpoint = endpoint_of(f"openai+{url}#some/model")
    assert endpoint is not None
    assert (endpoint.server, endpoint.loopback, endpoint.private) == (server, stays, private)
    assert endpoint.model == "some/model"
    assert not endpoint.url.endswith("/")

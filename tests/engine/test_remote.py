"""Holes are filled by the server that the user named, in its dialect, and whatever it does costs one clear line."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import attrs
import pytest
from remote_server import TEXT, TOKENS, ModelServer, fails, hangs, replies, says, serving
from starlette.responses import JSONResponse

from engine.errors import ModelError, RemoteError
from engine.protocol import Fill, Filled, Snippet
from engine.remote.clip import PREFIX_CHARACTERS, SUFFIX_CHARACTERS
from engine.remote.endpoint import endpoint_of
from engine.remote.scheduler import MAX_AT_ONCE, RemoteScheduler
from engine.remote.writing import UNTOLD
from engine.service import CancelledFill
from lsp_server.settings import DEFAULT_GATE

HOLE = Fill(7, prefix="def area(width, height):\n    return ", suffix="\n\nprint(area(2, 3))\n", budget_ms=20_000)
Ask = Callable[..., Awaitable[Filled]]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as server:
        yield server


async def opened(model: str) -> RemoteScheduler:
    endpoint = endpoint_of(model)
    assert endpoint is not None
    scheduler = RemoteScheduler(endpoint)
    await scheduler.start()
    return scheduler


async def fill_once(model: str, fill: Fill = HOLE) -> Filled:
    scheduler = await opened(model)
    try:
        return await scheduler.submit(fill, None).result
    finally:
        await scheduler.stop()


@pytest.fixture
async def openai(server: ModelServer) -> AsyncIterator[RemoteScheduler]:
    scheduler = await opened(server.model("openai"))
    yield scheduler
    await scheduler.stop()


async def complaint(model: str, fill: Fill = HOLE) -> str:
    """Return the one line with which a fill fails; it holds nothing of the code."""
    with pytest.raises(RemoteError) as caught:
        await fill_once(model, fill)
    line = str(caught.value)
    assert "\n" not in line
    assert "area" not in line
    return line


@pytest.mark.parametrize(
    ("dialect", "path"),
    [("openai", "/v1/completions"), ("mercury", "/v1/fim/completions"), ("llamacpp", "/infill")],
)
async def test_each_dialect_fills_a_hole(server: ModelServer, dialect: str, path: str) -> None:
    filled = await fill_once(server.model(dialect))
    (candidate,) = filled.candidates
    assert (candidate.text, candidate.finish) == (TEXT, "complete")
    assert candidate.tokens == [token for token, _ in TOKENS]
    assert candidate.confidence == pytest.approx([0.9048, 0.8187, 0.7408])
    assert (filled.id, filled.context_tokens, filled.cached_tokens) == (7, 42, 30)
    assert filled.ms.total >= filled.ms.denoise > 0
    assert server.received[0].path == path


async def test_openai_is_asked_with_prompt_suffix_and_a_stop_at_the_line_end(server: ModelServer) -> None:
    await fill_once(server.model("openai"))
    assert server.bodies == [
        {
            "model": "qwen",
            "prompt": HOLE.prefix,
            "suffix": HOLE.suffix,
            "max_tokens": 64,
            "stop": ["\n"],
            "temperature": 0.0,
            "logprobs": 1,
        }
    ]


async def test_llamacpp_is_sent_the_snippets_and_the_time_it_has(server: ModelServer) -> None:
    fill = attrs.evolve(HOLE, snippets=[Snippet("shapes.py", "side = 2")], extent="lines", budget_ms=10_000)
    await fill_once(server.model("llamacpp"), fill)
    (body,) = server.bodies
    assert 1000 < body.pop("t_max_predict_ms") <= 9000
    assert body == {
        "input_prefix": HOLE.prefix,
        "input_suffix": HOLE.suffix,
        "input_extra": [{"filename": "shapes.py", "text": "side = 2"}],
        "n_predict": 64,
        "stop": [],
        "temperature": 0.0,
        "n_probs": 1,
        "cache_prompt": True,
    }


async def test_only_so_much_of_a_file_is_sent(server: ModelServer) -> None:
    fill = attrs.evolve(HOLE, prefix="x" * 50_000 + "y", suffix="z" * 50_000)
    await fill_once(server.model("openai"), fill)
    (body,) = server.bodies
    assert 0 < len(body["prompt"]) <= PREFIX_CHARACTERS
    assert body["prompt"].endswith("y")
    assert len(body["suffix"]) == SUFFIX_CHARACTERS


async def test_the_left_edge_of_what_is_sent_stays_while_the_user_types(
    server: ModelServer, openai: RemoteScheduler
) -> None:
    for typed in ("", "a", "ab"):
        prefix = "".join(map(str, range(20_000)))[:49_500] + typed
        await openai.submit(attrs.evolve(HOLE, prefix=prefix), None).result
    beginnings = {body["prompt"][:5000] for body in server.bodies}
    assert len(beginnings) == 1


async def test_several_candidates_are_the_greedy_one_and_drawn_ones(server: ModelServer) -> None:
    server.script += [says("first"), says("second")]
    filled = await fill_once(server.model("openai"), attrs.evolve(HOLE, candidates=3, temperature=0.5, seed=4))
    greedy, drawn = sorted(server.bodies, key=lambda body: body["temperature"])
    assert (greedy["temperature"], greedy.get("n")) == (0.0, None)
    assert (drawn["temperature"], drawn["n"], drawn["seed"]) == (0.5, 2, 4)
    assert {candidate.text for candidate in filled.candidates} == {"first", "second"}
    server.received.clear()
    await fill_once(server.model("llamacpp"), attrs.evolve(HOLE, candidates=3, temperature=0.5, seed=4))
    assert sorted((body["temperature"], body.get("seed")) for body in server.bodies) == [
        (0.0, None),
        (0.5, 5),
        (0.5, 6),
    ]


async def test_a_fill_of_one_line_ends_at_the_newline_even_where_the_server_does_not(server: ModelServer) -> None:
    server.script.append(says("width * height\nprint(1)", finish="length"))
    (candidate,) = (await fill_once(server.model("openai"))).candidates
    assert (candidate.text, candidate.finish) == ("width * height", "complete")
    server.script.append(says("width\n* height", finish="length"))
    (candidate,) = (await fill_once(server.model("openai"), attrs.evolve(HOLE, extent="lines"))).candidates
    assert (candidate.text, candidate.finish) == ("width\n* height", "canvas full")


async def test_without_probabilities_confidence_is_one_honest_value(server: ModelServer) -> None:
    server.script.append(says("width"))
    (candidate,) = (await fill_once(server.model("openai"))).candidates
    assert (candidate.tokens, candidate.confidence) == (["width"], [UNTOLD])
    assert DEFAULT_GATE <= UNTOLD < 1


async def test_tokens_that_are_parts_of_characters_still_spell_the_text(server: ModelServer) -> None:
    split = [{"token": "x", "logprob": -0.1, "bytes": [0xC3]}, {"token": "y", "logprob": -0.2, "bytes": [0xA9]}]
    answer = JSONResponse({"content": "é", "completion_probabilities": [*split, {"token": "<end>", "logprob": -9.0}]})
    server.script.append(replies(bytes(answer.body)))
    (candidate,) = (await fill_once(server.model("llamacpp"))).candidates
    assert (candidate.tokens, candidate.confidence) == (["", "é"], [0.9048, 0.8187])


async def test_a_field_that_the_server_refuses_is_left_out_from_then_on(
    server: ModelServer, openai: RemoteScheduler
) -> None:
    server.script += [fails(400, "logprobs is not supported"), fails(422, "unknown field: stop")]
    for _ in range(2):
        filled = await openai.submit(HOLE, None).result
        assert filled.candidates[0].text == TEXT
    assert [("logprobs" in body, "stop" in body) for body in server.bodies] == [
        (True, True),
        (False, True),
        (False, False),
        (False, False),
    ]


async def test_a_server_that_takes_no_suffix_gets_the_marks_of_its_model(server: ModelServer) -> None:
    server.script.append(fails(400, '{"error": "suffix is not currently supported"}'))
    await fill_once(server.model("openai", "qwen2.5-coder"))
    marked = f"<|fim_prefix|>{HOLE.prefix}<|fim_suffix|>{HOLE.suffix}<|fim_middle|>"
    assert (server.bodies[1]["prompt"], "suffix" in server.bodies[1]) == (marked, False)
    server.received.clear()
    await fill_once(server.model("vllm", "qwen2.5-coder"))
    assert [body["prompt"] for body in server.bodies] == [marked]
    server.script.append(fails(400, "suffix is not currently supported"))
    assert "takes no suffix" in await complaint(server.model("openai", "mystery"))


async def test_llamacpp_spoken_to_as_openai_is_found_out_for_it_ignores_the_suffix(server: ModelServer) -> None:
    server.behaviour = fails(200, '{"choices": [{"text": "as if there were no suffix"}]}', Server="llama.cpp")
    assert "llamacpp+URL" in await complaint(server.model("openai", "mystery"))


async def test_vllm_gets_the_suffix_of_a_diffusion_model_as_a_fixed_part_of_the_canvas(server: ModelServer) -> None:
    await fill_once(server.model("vllm", "google/diffusiongemma-26B-A4B-it"))
    suffix = list(HOLE.suffix.encode())
    tokenize, *canvases = server.bodies
    assert tokenize["prompt"] == HOLE.suffix
    assert sorted(body["max_tokens"] for body in canvases) == [4, 8, 16]
    for body in canvases:
        canvas, middle = body["vllm_xargs"], body["max_tokens"]
        assert canvas["diffusion_seed_canvas"][middle:] == suffix
        assert canvas["diffusion_pinned"] == list(range(middle, middle + len(suffix)))
        assert canvas["diffusion_canvas_length"] == len(canvas["diffusion_seed_canvas"])
        assert canvas["diffusion_max_steps"] == 8
        assert {"suffix", "temperature"}.isdisjoint(body)


async def test_vllm_without_the_canvas_options_is_not_asked_for_them_again(server: ModelServer) -> None:
    scheduler = await opened(server.model("vllm", "diffusiongemma"))
    server.script += [fails(400, "no such endpoint here")]
    for _ in range(2):
        assert (await scheduler.submit(HOLE, None).result).candidates[0].text == TEXT
    await scheduler.stop()
    assert [("vllm_xargs" in body, body.get("suffix")) for body in server.bodies[1:]] == [(False, HOLE.suffix)] * 2


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (302, "answers with a redirect (302), which is not followed"),
        (400, "refuses the request (400)"),
        (401, "wants a key (401); put it into MIDSPAN_API_KEY_127_0_0_1"),
        (404, "has nothing there (404)"),
        (429, "wants to be left alone"),
        (500, "failed (status 500)"),
        (501, "cannot fill holes (501)"),
        (503, "failed (status 503)"),
    ],
)
async def test_a_server_that_fails_is_named_with_its_status(server: ModelServer, status: int, says: str) -> None:
    server.behaviour = fails(status, f"secret {HOLE.prefix}", Retry_After="30", Location="http://example.com")
    if status == 503:
        server.behaviour = fails(status)
    line = await complaint(server.model("openai"))
    assert line.startswith(f"127.0.0.1:{server.port} ")
    assert says in line
    assert "secret" not in line


@pytest.mark.parametrize(
    "content",
    [b"<html>", b"", b"[]", b'{"choices": []}', b'{"choices": [{"text": 1}]}', b"[" * 100_000, b"\xff\x00"],
)
@pytest.mark.parametrize("dialect", ["openai", "mercury", "llamacpp"])
async def test_garbage_is_no_answer(server: ModelServer, dialect: str, content: bytes) -> None:
    server.behaviour = replies(content)
    assert "answers, but not" in await complaint(server.model(dialect))


async def test_a_huge_answer_is_dropped(server: ModelServer) -> None:
    server.behaviour = replies(b'{"choices": [{"text": "' + b"x" * 5_000_000)
    assert "larger than 4194304 bytes" in await complaint(server.model("openai"))


async def test_a_server_that_hangs_costs_the_budget_and_no_more(server: ModelServer) -> None:
    server.behaviour = hangs
    line = await complaint(server.model("openai"), attrs.evolve(HOLE, budget_ms=200))
    assert "did not answer within 200 ms" in line
    assert await asyncio.to_thread(server.left.wait, 20)


async def test_cancelling_a_fill_closes_its_connection_at_once(server: ModelServer, openai: RemoteScheduler) -> None:
    server.behaviour = hangs
    ticket = openai.submit(attrs.evolve(HOLE, budget_ms=600_000), None)
    await server.has_received(1)
    assert openai.report().active == 1
    openai.cancel(ticket)
    with pytest.raises(CancelledFill):
        await ticket.result
    assert await asyncio.to_thread(server.left.wait, 20), "the server was not told that nobody waits any more"
    assert (openai.report().active, openai.report().cancelled) == (0, 1)


async def test_a_fill_cancelled_before_it_began_is_cancelled_too(openai: RemoteScheduler, server: ModelServer) -> None:
    ticket = openai.submit(HOLE, None)
    openai.cancel(ticket)
    with pytest.raises(CancelledFill):
        await ticket.result
    assert server.received == []


async def test_only_so_many_fills_are_with_the_server_at_once(server: ModelServer, openai: RemoteScheduler) -> None:
    server.behaviour = hangs
    tickets = [openai.submit(HOLE, None) for _ in range(MAX_AT_ONCE + 3)]
    await server.has_received(MAX_AT_ONCE)
    assert (openai.report().active, openai.report().waiting) == (MAX_AT_ONCE, 3)
    server.behaviour = says("x")
    for ticket in tickets[:MAX_AT_ONCE]:
        openai.cancel(ticket)
    for ticket in tickets[MAX_AT_ONCE:]:
        assert (await ticket.result).candidates[0].text == "x"


async def test_a_server_that_is_not_there_is_one_line_at_once() -> None:
    line = await complaint("llamacpp+http://127.0.0.1:9", attrs.evolve(HOLE, budget_ms=600_000))
    assert line == "127.0.0.1:9 cannot be reached; is its server running?"


async def test_a_connection_that_breaks_is_tried_once_more() -> None:
    connections = 0

    async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    dropping = await asyncio.start_server(drop, "127.0.0.1", 0)
    port = dropping.sockets[0].getsockname()[1]
    line = await complaint(f"llamacpp+http://127.0.0.1:{port}")
    assert f"127.0.0.1:{port} broke the connection" in line
    assert connections == 2
    dropping.close()


@pytest.mark.parametrize("status", [502, 503])
async def test_a_passing_failure_is_tried_once_more(server: ModelServer, status: int) -> None:
    server.script.append(fails(status))
    assert (await fill_once(server.model("openai"))).candidates[0].text == TEXT
    assert len(server.received) == 2


async def test_a_failure_of_the_server_itself_is_not_tried_again(server: ModelServer) -> None:
    server.behaviour = fails(500)
    await complaint(server.model("openai"))
    assert len(server.received) == 1


async def test_a_pause_that_fits_the_budget_is_kept(server: ModelServer) -> None:
    server.script.append(fails(429, Retry_After="0.2"))
    filled = await fill_once(server.model("openai"))
    assert filled.ms.total >= 200


async def test_a_pause_beyond_the_budget_is_not_slept_and_the_server_is_left_alone(
    server: ModelServer, openai: RemoteScheduler
) -> None:
    server.script.append(fails(429, Retry_After="3000"))
    for _ in range(3):
        with pytest.raises(RemoteError, match="wants to be left alone"):
            await openai.submit(HOLE, None).result
    assert len(server.received) == 1


async def test_the_key_of_the_environment_is_sent_the_one_of_the_host_before_the_general_one(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill_once(server.model("openai"))
    monkeypatch.setenv("MIDSPAN_API_KEY", "general")
    await fill_once(server.model("openai"))
    monkeypatch.setenv("MIDSPAN_API_KEY_127_0_0_1", "special")
    await fill_once(server.model("openai"))
    keys = [received.headers.get("authorization") for received in server.received]
    assert keys == [None, "Bearer general", "Bearer special"]
    server.behaviour = fails(401)
    line = await complaint(server.model("openai"))
    assert "does not accept the key it was sent (401)" in line
    assert "special" not in line


async def test_a_key_never_goes_over_plain_http_to_another_machine(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_API_KEY", "s3cr3t")
    # The proxy of the environment is how a name that is not this machine leads here.
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    await fill_once("openai+http://models.example/v1#qwen")
    assert "authorization" not in server.received[0].headers
    server.behaviour = fails(401)
    assert "none is sent over plain http; use https" in await complaint("openai+http://models.example/v1#qwen")


async def test_a_key_that_no_header_can_hold_is_refused_without_being_quoted(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDSPAN_API_KEY", "s3cr\n3t")
    with pytest.raises(ModelError, match="the key in MIDSPAN_API_KEY holds characters") as caught:
        await fill_once(server.model("openai"))
    assert "s3cr" not in str(caught.value)


async def test_a_request_to_this_machine_never_takes_a_proxy(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert (await fill_once(server.model("openai"))).candidates[0].text == TEXT


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A key and a certificate that it signed itself."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate, and it is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return key, certificate


async def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: tuple[Path, Path]) -> None:
    key, signed = certificate
    with serving(ssl_keyfile=str(key), ssl_certfile=str(signed)) as server:
        model = server.model("openai").replace("http:", "https:").replace("127.0.0.1", "localhost")
        assert "its certificate does not verify" in await complaint(model)
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
def test_a_wrong_name_is_one_line_that_quotes_no_secret(model: str, says: str) -> None:
    with pytest.raises(ModelError) as caught:
        endpoint_of(model)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("model", ["embedded", "/models/qwen", "dream-coder", "openai"])
def test_other_names_are_of_no_server(model: str) -> None:
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
def test_what_leaves_the_machine_is_known_from_the_host(url: str, server: str, stays: bool, private: bool) -> None:
    endpoint = endpoint_of(f"openai+{url}#some/model")
    assert endpoint is not None
    assert (endpoint.server, endpoint.loopback, endpoint.private) == (server, stays, private)
    assert endpoint.model == "some/model"
    assert not endpoint.url.endswith("/")

"""The dialects: what each server is asked, and how its answers become candidates."""

import attrs
import pytest
from remote_client import HOLE, error_line, fill_once, start_backend
from starlette.responses import JSONResponse
from support.remote_server import TEXT, TOKENS, ModelServer, answers_body, answers_status, answers_text

from engine.protocol.messages import Snippet
from engine.remote.backend import RemoteBackend
from engine.remote.request import PREFIX_CHARACTERS, SUFFIX_CHARACTERS, UNKNOWN_CONFIDENCE
from lsp_server.settings import DEFAULT_GATE


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


async def test_openai_gets_prompt_suffix_and_a_stop_at_the_line_end(server: ModelServer) -> None:
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


async def test_llamacpp_gets_the_snippets_and_a_time_limit(server: ModelServer) -> None:
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


async def test_the_text_that_is_sent_is_limited(server: ModelServer) -> None:
    fill = attrs.evolve(HOLE, prefix="x" * 50_000 + "y", suffix="z" * 50_000)
    await fill_once(server.model("openai"), fill)
    (body,) = server.bodies
    assert 0 < len(body["prompt"]) <= PREFIX_CHARACTERS
    assert body["prompt"].endswith("y")
    assert len(body["suffix"]) == SUFFIX_CHARACTERS


async def test_the_left_edge_of_the_prompt_stays_while_the_user_types(
    server: ModelServer, openai: RemoteBackend
) -> None:
    for typed in ("", "a", "ab"):
        prefix = "".join(map(str, range(20_000)))[:49_500] + typed
        await openai.submit(attrs.evolve(HOLE, prefix=prefix), None).result
    beginnings = {body["prompt"][:5000] for body in server.bodies}
    assert len(beginnings) == 1


async def test_several_candidates_are_one_greedy_and_the_rest_sampled(server: ModelServer) -> None:
    server.script += [answers_text("first"), answers_text("second")]
    filled = await fill_once(server.model("openai"), attrs.evolve(HOLE, candidates=3, temperature=0.5, seed=4))
    greedy, sampled = sorted(server.bodies, key=lambda body: body["temperature"])
    assert (greedy["temperature"], greedy.get("n")) == (0.0, None)
    assert (sampled["temperature"], sampled["n"], sampled["seed"]) == (0.5, 2, 4)
    assert {candidate.text for candidate in filled.candidates} == {"first", "second"}
    server.received.clear()
    await fill_once(server.model("llamacpp"), attrs.evolve(HOLE, candidates=3, temperature=0.5, seed=4))
    assert sorted((body["temperature"], body.get("seed")) for body in server.bodies) == [
        (0.0, None),
        (0.5, 5),
        (0.5, 6),
    ]


async def test_a_fill_of_one_line_ends_at_the_newline_even_if_the_servers_text_does_not(server: ModelServer) -> None:
    server.script.append(answers_text("width * height\nprint(1)", finish="length"))
    (candidate,) = (await fill_once(server.model("openai"))).candidates
    assert (candidate.text, candidate.finish) == ("width * height", "complete")
    server.script.append(answers_text("width\n* height", finish="length"))
    (candidate,) = (await fill_once(server.model("openai"), attrs.evolve(HOLE, extent="lines"))).candidates
    assert (candidate.text, candidate.finish) == ("width\n* height", "canvas full")


async def test_without_probabilities_the_confidence_is_one_fixed_value(server: ModelServer) -> None:
    server.script.append(answers_text("width"))
    (candidate,) = (await fill_once(server.model("openai"))).candidates
    assert (candidate.tokens, candidate.confidence) == (["width"], [UNKNOWN_CONFIDENCE])
    assert DEFAULT_GATE.worth(UNKNOWN_CONFIDENCE, len("width * height")) > 0


async def test_tokens_that_are_parts_of_a_character_still_spell_the_text(server: ModelServer) -> None:
    split = [{"token": "x", "logprob": -0.1, "bytes": [0xC3]}, {"token": "y", "logprob": -0.2, "bytes": [0xA9]}]
    answer = JSONResponse({"content": "é", "completion_probabilities": [*split, {"token": "<end>", "logprob": -9.0}]})
    server.script.append(answers_body(bytes(answer.body)))
    (candidate,) = (await fill_once(server.model("llamacpp"))).candidates
    assert (candidate.tokens, candidate.confidence) == (["", "é"], [0.9048, 0.8187])


async def test_a_field_that_the_server_refuses_is_omitted_afterwards(
    server: ModelServer, openai: RemoteBackend
) -> None:
    server.script += [answers_status(400, "logprobs is not supported"), answers_status(422, "unknown field: stop")]
    for _ in range(2):
        filled = await openai.submit(HOLE, None).result
        assert filled.candidates[0].text == TEXT
    assert [("logprobs" in body, "stop" in body) for body in server.bodies] == [
        (True, True),
        (False, True),
        (False, False),
        (False, False),
    ]


async def test_a_server_that_takes_no_suffix_gets_the_tags_of_its_model(server: ModelServer) -> None:
    server.script.append(answers_status(400, '{"error": "suffix is not currently supported"}'))
    await fill_once(server.model("openai", "qwen2.5-coder"))
    tagged = f"<|fim_prefix|>{HOLE.prefix}<|fim_suffix|>{HOLE.suffix}<|fim_middle|>"
    assert (server.bodies[1]["prompt"], "suffix" in server.bodies[1]) == (tagged, False)
    server.received.clear()
    await fill_once(server.model("vllm", "qwen2.5-coder"))
    assert [body["prompt"] for body in server.bodies] == [tagged]
    server.script.append(answers_status(400, "suffix is not currently supported"))
    assert "takes no suffix" in await error_line(server.model("openai", "mystery"))


async def test_llamacpp_in_the_openai_dialect_is_noticed_because_it_ignores_the_suffix(server: ModelServer) -> None:
    server.behaviour = answers_status(200, '{"choices": [{"text": "as if there were no suffix"}]}', Server="llama.cpp")
    assert "llamacpp+URL" in await error_line(server.model("openai", "mystery"))


async def test_vllm_gets_a_diffusion_models_suffix_as_a_fixed_part_of_the_canvas(server: ModelServer) -> None:
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


async def test_vllm_that_refuses_the_canvas_options_does_not_get_them_again(server: ModelServer) -> None:
    backend = await start_backend(server.model("vllm", "diffusiongemma"))
    server.script += [answers_status(400, "no such endpoint here")]
    for _ in range(2):
        assert (await backend.submit(HOLE, None).result).candidates[0].text == TEXT
    await backend.stop()
    assert [("vllm_xargs" in body, body.get("suffix")) for body in server.bodies[1:]] == [(False, HOLE.suffix)] * 2

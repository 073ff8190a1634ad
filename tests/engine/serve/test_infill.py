"""llama.cpp's dialect, asked as llama.vim and llama.vscode ask it."""

import json
import re
from typing import Any

from http_service import PREFIX, HttpService, infill

from engine.client.connection import EngineClient
from engine.client.launcher import EngineOptions, connect_or_start
from engine.protocol.messages import Fill, Snippet


async def _asked_directly(running: EngineOptions, fill: Fill) -> str:
    client: EngineClient = await connect_or_start(running, "test")
    try:
        return (await client.fill(fill)).candidates[0].text
    finally:
        await client.close()


async def test_llama_vim_gets_the_engines_text_with_the_asked_fields_flat(
    service: HttpService, running: EngineOptions
) -> None:
    body = infill(n_indent=0)
    answer = service.post("/infill", body)
    assert answer.status_code == 200
    assert re.match(r"\s*\{", answer.text)
    assert '"content":"' in answer.text, "llama.vim shows nothing after a colon and a space"
    fields = answer.json()
    assert fields["timings/predicted_n"] > 0
    assert fields["truncated"] is False
    assert set(fields) == set(body["response_fields"])
    direct = Fill(
        1,
        PREFIX,
        body["input_suffix"],
        snippets=[Snippet("solid.py", body["input_extra"][0]["text"])],
        extent="lines",
        max_tokens=8,
        budget_ms=60_000,
    )
    assert fields["content"] == await _asked_directly(running, direct)
    assert fields["content"]


def test_a_request_without_any_text_is_refused_in_one_line(service: HttpService) -> None:
    answer = service.post("/infill", {})
    assert answer.status_code == 400
    assert "`input_prefix` is missing" in answer.text


def test_all_fields_come_where_none_are_named(service: HttpService) -> None:
    fields: dict[str, Any] = service.post("/infill", infill(response_fields=None)).json()
    assert fields["stop"] is True
    assert fields["stop_type"] in ("eos", "limit")
    assert fields["timings"]["predicted_n"] == fields["tokens_predicted"] <= 8
    assert "completion_probabilities" not in fields
    assert service.post("/infill", infill(n_probs=1, response_fields=None)).json()["completion_probabilities"]


def test_llama_vims_warming_request_reads_and_writes_nothing(service: HttpService) -> None:
    extra = [{"text": "def warm():\n    return 1\n" * 3, "time": 1, "filename": "warm.py"}]
    warming = infill(
        input_prefix="",
        input_suffix="",
        prompt="",
        input_extra=extra,
        n_predict=0,
        temperature=0.0,
        samplers=[],
        t_max_prompt_ms=1,
        t_max_predict_ms=1,
        response_fields=[""],
    )
    answer = service.post("/infill", warming)
    assert (answer.status_code, answer.text) == (200, "{}")
    assert service.post("/infill", {**warming, "response_fields": ["content", "tokens_predicted"]}).json() == {
        "content": "",
        "tokens_predicted": 0,
    }


def test_a_streamed_warming_request_has_one_empty_event(service: HttpService) -> None:
    streamed = service.post("/infill", infill(n_predict=0, stream=True, response_fields=None))
    (line,) = streamed.text.split("\n\n")[:-1]
    event = json.loads(line.removeprefix("data: "))
    assert (streamed.status_code, event["content"], event["stop"]) == (200, "", True)


def test_what_was_warmed_is_cached_for_the_hole(service: HttpService) -> None:
    text = "".join(f"def part{number}(value):\n    return value + {number}\n\n" for number in range(60))
    hole = infill(input_prefix=text, prompt="x = ", response_fields=None, n_predict=128)  # llama.vim's default
    service.post("/infill", {**hole, "n_predict": 0})
    timings = service.post("/infill", hole).json()["timings"]
    assert timings["cache_n"] > 4 * timings["prompt_n"]


def test_llama_vscode_gets_an_array_for_several_texts_and_an_object_for_one(service: HttpService) -> None:
    body = {name: value for name, value in infill().items() if name not in ("stop", "response_fields")}
    several = service.post("/infill", {**body, "n_cmpl": 3, "temperature": 0.1}).json()
    assert isinstance(several, list)
    assert 1 < len({each["content"] for each in several}) <= 3
    assert [each["index"] for each in several] == list(range(len(several)))
    one = service.post("/infill", {**body, "n_cmpl": 1}).json()
    assert one["content"] == several[0]["content"]


def test_a_stop_string_ends_the_text_before_it(service: HttpService) -> None:
    whole = service.post("/infill", infill(n_indent=0, response_fields=None, n_predict=16)).json()["content"]
    stop = whole[2:4]
    fields = service.post("/infill", infill(n_indent=0, response_fields=None, n_predict=16, stop=[stop])).json()
    assert fields["content"] == whole[: whole.index(stop)]
    assert (fields["stop_type"], fields["stopping_word"]) == ("word", stop)


def test_a_stream_joins_to_the_same_text(service: HttpService) -> None:
    whole = service.post("/infill", infill(response_fields=None)).json()["content"]
    streamed = service.post("/infill", infill(stream=True, response_fields=None))
    assert streamed.headers["content-type"].startswith("text/event-stream")
    events = [line.removeprefix("data: ") for line in streamed.text.splitlines() if line]
    pieces = [json.loads(event) for event in events]
    assert "".join(piece["content"] for piece in pieces) == whole
    assert [piece["stop"] for piece in pieces] == [False] * (len(pieces) - 1) + [True]


def test_health_and_props_say_what_llama_vscode_looks_for(service: HttpService) -> None:
    assert service.get("/health").json() == {"status": "ok"}
    props = service.get("/props").json()
    assert props["default_generation_settings"]["n_ctx"] > 0
    assert props["model_alias"]

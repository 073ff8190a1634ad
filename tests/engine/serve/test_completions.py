"""OpenAI's, Mistral's, Ollama's and Tabby's dialects, as plugins speak them."""

import json
from typing import Any

import pytest
from http_service import PREFIX, SUFFIX, HttpService

_HOLE = {"model": "midspan", "prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 8}
_FIM = {
    "qwen": f"<|fim_prefix|>{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>",
    "qwen, suffix first": f"<|fim_suffix|>{SUFFIX}<|fim_prefix|>{PREFIX}<|fim_middle|>",
    "starcoder": f"<fim_prefix>{PREFIX}<fim_suffix>{SUFFIX}<fim_middle>",
    "codellama": f"<PRE> {PREFIX} <SUF>{SUFFIX} <MID>",
    "deepseek": f"<｜fim▁begin｜>{PREFIX}<｜fim▁hole｜>{SUFFIX}<｜fim▁end｜>",  # noqa: RUF001
    "glm": f"<|code_prefix|>{PREFIX}<|code_suffix|>{SUFFIX}<|code_middle|>",
    "seed": f"<[fim-suffix]>{SUFFIX}<[fim-prefix]>{PREFIX}<[fim-middle]>",
    "codestral": f"[SUFFIX]{SUFFIX}[PREFIX]{PREFIX}",
}


def _text(service: HttpService, **fields: Any) -> str:
    answer = service.post("/v1/completions", {**_HOLE, **fields})
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["choices"][0]["text"]
    return text


def _events(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("style", _FIM)
def test_tags_in_the_prompt_are_the_same_hole_as_a_suffix(service: HttpService, style: str) -> None:
    tagged = {"model": "midspan", "prompt": _FIM[style], "max_tokens": 8, "stop": ["<|endoftext|>"]}
    answer = service.post("/v1/completions", tagged).json()
    assert answer["id"]  # Zed needs both
    assert answer["choices"][0]["text"] == _text(service)


def test_a_prompt_without_tags_is_continued(service: HttpService) -> None:
    assert _text(service, suffix=None) != _text(service)


def test_minuet_streams_the_text_of_a_hole(service: HttpService) -> None:
    streamed = service.post("/v1/completions", {**_HOLE, "stream": True, "stream_options": {"include_usage": True}})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    *events, usage = _events(streamed.text)
    assert "".join(event["choices"][0]["text"] for event in events) == _text(service)
    assert len(events) > 1, "the text came as a whole"
    assert [event["choices"][0]["finish_reason"] for event in events[:-1]] == [None] * (len(events) - 1)
    assert events[-1]["choices"][0]["finish_reason"] in ("stop", "length")
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] > 0


def test_a_stream_never_sends_what_a_stop_cuts_off(service: HttpService) -> None:
    whole = _text(service, max_tokens=16)
    stop = whole[3:6]
    streamed = service.post("/v1/completions", {**_HOLE, "max_tokens": 16, "stream": True, "stop": [stop]})
    events = _events(streamed.text)
    assert "".join(event["choices"][0]["text"] for event in events) == whole[: whole.index(stop)]
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


def test_log_probabilities_belong_to_the_tokens_of_the_text(service: HttpService) -> None:
    choice = service.post("/v1/completions", {**_HOLE, "logprobs": 1}).json()["choices"][0]
    found = choice["logprobs"]
    assert "".join(found["tokens"]) == choice["text"]
    assert all(value <= 0 for value in found["token_logprobs"])
    assert [
        choice["text"][at:].startswith(token) for at, token in zip(found["text_offset"], found["tokens"], strict=True)
    ]
    assert len(found["top_logprobs"]) == len(found["token_logprobs"]) == len(found["tokens"]) > 0


def test_several_texts_begin_differently(service: HttpService) -> None:
    answer = service.post("/v1/completions", {**_HOLE, "n": 3, "temperature": 0.2}).json()
    assert len({choice["text"] for choice in answer["choices"]}) > 1
    assert [choice["index"] for choice in answer["choices"]] == list(range(len(answer["choices"])))
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]


def test_a_newline_as_stop_fills_one_line(service: HttpService) -> None:
    assert "\n" not in _text(service, stop="\n", max_tokens=32)


def test_models_are_listed_under_our_name_and_their_own(service: HttpService) -> None:
    names = [model["id"] for model in service.get("/v1/models").json()["data"]]
    assert names[0] == "midspan"
    for name in names:
        assert _text(service, model=name)
    refused = service.post("/v1/completions", {**_HOLE, "model": "gpt-9"})
    assert refused.status_code == 404
    assert "gpt-9" in refused.json()["error"]["message"]


def test_mistrals_clients_get_a_message(service: HttpService) -> None:
    body = {**_HOLE, "model": "codestral-latest", "temperature": 0, "stop": None}
    answer = service.post("/v1/fim/completions", body).json()
    assert answer["choices"][0]["message"]["content"] == _text(service)
    streamed = _events(service.post("/v1/fim/completions", {**body, "stream": True}).text)
    assert "".join(event["choices"][0]["delta"]["content"] for event in streamed) == _text(service)
    refused = service.post("/v1/fim/completions", {**body, "max_tokens": -1})
    assert refused.status_code == 400
    assert refused.json()["object"] == "error"
    assert "max_tokens is -1" in refused.json()["message"]


def test_ollamas_clients_get_a_response_streamed_unless_they_refuse(service: HttpService) -> None:
    body = {"model": "midspan:latest", "prompt": PREFIX, "suffix": SUFFIX, "options": {"num_predict": 8}}
    whole = service.post("/api/generate", {**body, "stream": False}).json()
    assert whole["response"] == _text(service)
    assert whole["done"] is True
    assert whole["created_at"].endswith("Z")
    lines = [json.loads(line) for line in service.post("/api/generate", body).text.splitlines()]
    assert "".join(line["response"] for line in lines) == whole["response"]
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    raw = {**body, "prompt": _FIM["qwen"], "suffix": None, "raw": True, "stream": False}
    assert service.post("/api/generate", raw).json()["response"] == whole["response"]


def test_ollamas_clients_find_the_model_and_load_it(service: HttpService) -> None:
    tags = service.get("/api/tags").json()["models"]
    assert "midspan:latest" in [tag["name"] for tag in tags]
    loaded = service.post("/api/generate", {"model": "midspan"}).json()
    assert (loaded["done"], loaded["done_reason"], loaded["response"]) == (True, "load", "")
    refused = service.post("/api/generate", {"model": "llama9", "prompt": "x"})
    assert refused.status_code == 404
    assert "llama9" in refused.json()["error"]


def test_ollamas_clients_read_what_the_model_is_before_they_ask(service: HttpService) -> None:
    shown = service.post("/api/show", {"model": "midspan"}).json()
    architecture = shown["model_info"]["general.architecture"]
    assert shown["model_info"][f"{architecture}.context_length"] > 0
    assert "insert" in shown["capabilities"]
    assert service.post("/api/show", {"name": "midspan:latest"}).json() == shown
    assert "midspan:latest" in [one["name"] for one in service.get("/api/ps").json()["models"]]
    refused = service.post("/api/show", {"model": "llama9"})
    assert (refused.status_code, "llama9" in refused.json()["error"]) == (404, True)


def test_a_name_may_tell_a_client_which_tags_to_write(service: HttpService) -> None:
    assert _text(service, model="qwen2.5-coder:midspan", prompt=_FIM["qwen"], suffix=None) == _text(service)
    assert service.post("/v1/completions", {**_HOLE, "model": "qwen2.5-coder:7b"}).status_code == 404


def test_a_prompt_with_the_line_ends_of_windows_is_the_same_hole_and_keeps_them(service: HttpService) -> None:
    prompt, suffix = PREFIX.replace("\n", "\r\n"), SUFFIX.replace("\n", "\r\n")
    fields = {"max_tokens": 32, "temperature": 0}
    plain = _text(service, **fields)
    assert "\n" in plain, "else this shows nothing"
    assert _text(service, prompt=prompt, suffix=suffix, **fields) == plain.replace("\n", "\r\n")
    first = plain.partition("\n")[0]
    assert _text(service, prompt=prompt, suffix=suffix, stop=["\r\n"], **fields) == first
    body = {**_HOLE, **fields, "prompt": prompt, "suffix": suffix, "stream": True}
    streamed = "".join(event["choices"][0]["text"] for event in _events(service.post("/v1/completions", body).text))
    assert "\n" not in streamed.replace("\r\n", "")


def test_tabbys_clients_are_told_apart_by_their_segments(service: HttpService) -> None:
    body = {
        "language": "python",
        "segments": {"prefix": PREFIX, "suffix": SUFFIX, "filepath": "shapes.py", "git_url": "", "clipboard": ""},
        "user": "somebody",
        "temperature": 0.1,
        "mode": "standard",
    }
    answer = service.post("/v1/completions", body).json()
    assert answer["id"].startswith("cmpl-")
    assert answer["choices"][0]["index"] == 0
    assert answer["choices"][0]["text"]
    assert service.get("/v1/health").json()["model"]
    assert service.post("/v1/health", {}).json()["version"]
    assert service.get("/v1beta/server_setting").json() == {"disable_client_side_telemetry": True}
    shown = {"type": "view", "completion_id": answer["id"], "choice_index": 0, "view_id": "v"}
    assert service.post("/v1/events", shown).status_code == 200

"""Clients that others wrote, over loopback: the packages `openai` and `ollama`."""

import pytest
from http_service import PREFIX, SUFFIX, HttpService


def test_openais_package_completes_streams_and_lists(service: HttpService) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0)
    hole = {"model": "midspan", "prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 8}
    whole = client.completions.create(**hole, logprobs=1)
    assert "".join(whole.choices[0].logprobs.tokens) == whole.choices[0].text != ""
    streamed = client.completions.create(**hole, stream=True)
    assert "".join(chunk.choices[0].text for chunk in streamed) == whole.choices[0].text
    assert "midspan" in [model.id for model in client.models.list()]
    with pytest.raises(openai.NotFoundError, match="gpt-9"):
        client.completions.create(**{**hole, "model": "gpt-9"})
    with pytest.raises(openai.BadRequestError, match="max_tokens is -1"):
        client.completions.create(**{**hole, "max_tokens": -1})


def test_ollamas_package_generates_streams_and_lists(service: HttpService) -> None:
    ollama = pytest.importorskip("ollama")
    client = ollama.Client(host=service.url)
    hole = {"model": "midspan", "prompt": PREFIX, "suffix": SUFFIX, "options": {"num_predict": 8}}
    whole = client.generate(**hole)
    assert whole.response
    assert whole.done
    assert "".join(part.response for part in client.generate(**hole, stream=True)) == whole.response
    assert "midspan:latest" in [model.model for model in client.list().models]
    with pytest.raises(ollama.ResponseError, match="llama9"):
        client.generate(**{**hole, "model": "llama9"})

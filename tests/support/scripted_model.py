"""What a real HTTP server on loopback answers in a model's place: tokens and probabilities that a test sets."""

import itertools
import math
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from support.remote_server import Behaviour, ModelServer

Written = list[tuple[str, float]]
"""The tokens of a text, each with its probability."""


def writes(*texts: Written) -> Behaviour:
    """Answer with these texts, one for each candidate, in a cycle."""
    choices = itertools.cycle(_choice(text) for text in texts)

    async def behave(server: ModelServer, request: Request, body: dict[str, Any]) -> Response:
        return _completion(list(itertools.islice(choices, body.get("n") or 1)))

    return behave


def guesses(best: str, *others: str) -> Behaviour:
    """Answer with `best`, and with `others` as the drawn texts, whichever of the two requests comes first."""

    async def behave(server: ModelServer, request: Request, body: dict[str, Any]) -> Response:
        texts = others if body.get("n") else (best,)
        return _completion([_choice([(text, 0.9)]) for text in texts])

    return behave


def _choice(text: Written) -> dict[str, Any]:
    return {
        "text": "".join(token for token, _ in text),
        "finish_reason": "stop",
        "logprobs": {
            "tokens": [token for token, _ in text],
            "token_logprobs": [math.log(probability) for _, probability in text],
        },
    }


def _completion(choices: list[dict[str, Any]]) -> Response:
    numbered = [{"index": number, **choice} for number, choice in enumerate(choices)]
    return JSONResponse({"choices": numbered, "usage": None})

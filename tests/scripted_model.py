"""What a real HTTP server on loopback answers in a model's place: tokens and probabilities that a test sets."""

import itertools
import math
from typing import Any

from remote_server import Behaviour, ModelServer
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

Written = list[tuple[str, float]]
"""The tokens of a text, each with its probability."""


def writes(*texts: Written) -> Behaviour:
    """Answer with these texts, one for each candidate, in a cycle."""
    choices = itertools.cycle(
        {
            "text": "".join(token for token, _ in text),
            "finish_reason": "stop",
            "logprobs": {
                "tokens": [token for token, _ in text],
                "token_logprobs": [math.log(probability) for _, probability in text],
            },
        }
        for text in texts
    )

    async def behave(server: ModelServer, request: Request, body: dict[str, Any]) -> Response:
        numbered = enumerate(itertools.islice(choices, body.get("n") or 1))
        return JSONResponse({"choices": [{"index": number, **choice} for number, choice in numbered], "usage": None})

    return behave

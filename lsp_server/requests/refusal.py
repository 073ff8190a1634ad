"""The error of a request that cannot be done."""

from lsprotocol import types
from pygls.exceptions import JsonRpcException


def refusal(message: str) -> JsonRpcException:
    """Return the error with which the editor gets `message`, one line for the user."""
    return JsonRpcException(message, code=types.LSPErrorCodes.RequestFailed.value)

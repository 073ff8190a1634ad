"""Midspan's own exceptions. Each message says what is wrong, with what, and what to do."""

from pathlib import Path


class MidspanError(Exception):
    """The base of all our errors. `str(error)` is one line for the user; `code` names the kind for programs."""

    code = "error"


class ProtocolError(MidspanError):
    """A frame is malformed, too large or of an unknown type, or one side refuses the other."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class EngineUnavailable(MidspanError):
    """The engine cannot be found, started or reached."""

    code = "engine-unavailable"


class RemoteError(MidspanError):
    """The server of a remote model cannot be reached, refuses the request, or sends an answer that is not valid."""

    code = "remote"


class ModelError(MidspanError):
    """A model is missing, damaged, or of a family that this version does not know."""

    code = "model"


def describe(error: BaseException) -> str:
    """Return an exception's type and where it was raised. Its text is left out, as it may quote the user's code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    return f"{type(error).__name__} at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"

"""Midspan's own exceptions. Each message says what is wrong, with what, and what to do."""


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

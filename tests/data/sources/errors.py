"""The few exceptions Midspan raises itself. Each message says what was wrong, with what, and what to do."""


class MidspanError(Exception):
    """Base of all our errors; `str(error)` is one line that a user can act on."""

    code = "error"


class ProtocolError(MidspanError):
    """A frame that is malformed, too large, unknown or of another protocol version."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class EngineUnavailable(MidspanError):
    """The engine could not be found, started or talked to."""

    code = "engine-unavailable"


class RemoteError(MidspanError):
    """The server of a remote model cannot be reached, refuses, or answers what is no answer."""

    code = "remote"


class ModelError(MidspanError):
    """A model is missing, damaged or of a family this version does not know."""

    code = "model"

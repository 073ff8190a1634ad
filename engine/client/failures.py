"""What can go wrong between a client and its engine."""

from engine.errors import EngineUnavailable, MidspanError


class EngineFailure(MidspanError):
    """The engine answered a request with Failed. `code` is the code of that message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class EngineSilent(EngineUnavailable):
    """An engine accepted the connection but does not answer: it hangs or is suspended."""

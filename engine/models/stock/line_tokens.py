"""The tokens of lines, remembered: between two keystrokes all lines but one are the same."""

from collections.abc import Callable

MOST_BYTES = 16 * 1024 * 1024
PIECE = 2000
"""Characters. A longer line, as minified code has, is tokenized in pieces, of which a key changes only one."""
_BYTES_A_TOKEN = 40
_BYTES_A_LINE = 200
_WIDEST = 4


class LineTokens:
    """Tokenizes lines with `encode`. It keeps at most about `most_bytes`: then it forgets the older half."""

    def __init__(self, encode: Callable[[str], list[int]], most_bytes: int = MOST_BYTES) -> None:
        self._encode, self._most_bytes = encode, most_bytes
        self._known: dict[str, list[int]] = {}
        self.bytes = 0
        """What the remembered lines take, estimated."""

    def of(self, line: str) -> list[int]:
        """Return the tokens of a line, which the caller must not change."""
        if len(line) > PIECE:
            pieces = (line[start : start + PIECE] for start in range(0, len(line), PIECE))
            return [token for piece in pieces for token in self.of(piece)]
        tokens = self._known.get(line)
        if tokens is None:
            tokens = self._known[line] = self._encode(line)
            self.bytes += _size(line, tokens)
            if self.bytes > self._most_bytes:
                self._forget()
        return tokens

    def _forget(self) -> None:
        for line in list(self._known)[: (len(self._known) + 1) // 2]:
            self.bytes -= _size(line, self._known.pop(line))


def _size(line: str, tokens: list[int]) -> int:
    width = 1 if line.isascii() else _WIDEST
    return _BYTES_A_LINE + width * len(line) + _BYTES_A_TOKEN * len(tokens)

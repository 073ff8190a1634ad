"""Draws icon.png: two brackets, and between them a middle that is partly noise."""

import struct
import zlib
from pathlib import Path

import numpy as np

SIZE, FINE = 128, 4
BACKGROUND, BRACKET, TOKEN = (24, 28, 44), (235, 238, 248), (96, 214, 190)
BRACKETS = ((18, 28, 8, 72), (18, 28, 24, 8), (18, 92, 24, 8), (102, 28, 8, 72), (86, 28, 24, 8), (86, 92, 24, 8))
TOKENS = (
    (38, 46, 52, 8, 1.0),
    (38, 60, 22, 8, 1.0),
    (64, 60, 26, 8, 0.45),
    (38, 74, 14, 8, 0.45),
    (56, 74, 20, 8, 0.2),
)


def main() -> None:
    """Draw at four times the size, then average: this smooths the edges."""
    canvas = np.zeros((SIZE * FINE, SIZE * FINE, 4))
    _rectangle(canvas, (4, 4, 120, 120), BACKGROUND, 1.0, radius=24)
    for box in BRACKETS:
        _rectangle(canvas, box, BRACKET, 1.0, radius=3)
    for *box, opacity in TOKENS:
        _rectangle(canvas, box, TOKEN, opacity, radius=4)
    small = canvas.reshape(SIZE, FINE, SIZE, FINE, 4).mean(axis=(1, 3))
    Path(__file__).with_name("icon.png").write_bytes(_png(small.round().astype(np.uint8)))


def _rectangle(canvas: np.ndarray, box, colour, opacity: float, radius: float) -> None:
    left, top, width, height = box
    y, x = np.mgrid[: canvas.shape[0], : canvas.shape[1]] / FINE
    # The distance to the rectangle without its round border.
    beyond_x = np.maximum(np.maximum(left + radius - x, x - (left + width - radius)), 0)
    beyond_y = np.maximum(np.maximum(top + radius - y, y - (top + height - radius)), 0)
    inside = beyond_x**2 + beyond_y**2 <= radius**2
    canvas[inside, :3] = opacity * np.array(colour) + (1 - opacity) * canvas[inside, :3]
    canvas[inside, 3] = 255


def _png(pixels: np.ndarray) -> bytes:
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # Each row begins with its filter, none.
    head = struct.pack(">2I5B", SIZE, SIZE, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


if __name__ == "__main__":
    main()

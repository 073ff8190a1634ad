// The text that the page begins with. Denoising fills its hole rightly, in fewer passes than left to right: a test asks
// the shipped weights (tests/play/test_play_page.py).
export const NAME = 'points.py';

const ABOVE = `import math
from typing import NamedTuple


class Point(NamedTuple):
    x: float
    y: float
    z: float


def manhattan(a: Point, b: Point) -> float:
    return abs(a.x - b.x) + `;

const BELOW = `


def distance(a: Point, b: Point) -> float:
    return math.sqrt((a.x - b.x) ** 2 + (a.y - b.y) ** 2 + (a.z - b.z) ** 2)


if __name__ == "__main__":
    print(manhattan(Point(1, 2, 3), Point(3, 2, 1)))
`;

export const TEXT = ABOVE + BELOW;
export const CURSOR = ABOVE.length;

// The text that the page begins with. What is below the hole says how it goes on, and the hole repeats itself: there is
// something to draft and to verify.
export const NAME = 'vector.py';

const ABOVE = `from dataclasses import dataclass


@dataclass
class Vector:
    x: float
    y: float
    z: float

    def __add__(self, other: "Vector") -> "Vector":
        return Vector(self.x + other.x, `;

const BELOW = `)

    def __sub__(self, other: "Vector") -> "Vector":
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def dot(self, other: "Vector") -> float:
        return self.x * other.x + self.y * other.y + self.z * other.z


if __name__ == "__main__":
    print(Vector(1, 2, 3) + Vector(3, 2, 1))
`;

export const TEXT = ABOVE + BELOW;
export const CURSOR = ABOVE.length;

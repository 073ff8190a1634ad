// The text that the page begins with. Its hole has something to verify: the lines above repeat themselves.
export const NAME = 'shapes.py';

const ABOVE = `from dataclasses import dataclass


@dataclass
class Box:
    width: float
    height: float
    depth: float

    def area(self) -> float:
        return self.width * self.height

    def volume(self) -> float:
        return `;

const BELOW = `

    def scaled(self, factor: float) -> "Box":
        return Box(self.width * factor, self.height * factor, self.depth * factor)


if __name__ == "__main__":
    box = Box(2, 3, 4)
    print(box.area(), box.volume())
`;

export const TEXT = ABOVE + BELOW;
export const CURSOR = ABOVE.length;

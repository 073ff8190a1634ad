"""What a model fills in, previewed and applied in a real Neovim: missing annotations, and another answer."""

from collections.abc import Callable

from neovim import Neovim
from neovim_project import filetype, lines

Open = Callable[..., Neovim]


def test_missing_annotations_are_previewed_and_added(in_neovim: Open) -> None:
    text = "class Circle:\n    def __init__(self, radius: float):\n        self.radius = radius\n"
    neovim = in_neovim(text + "\n    def area(self) -> float:\n        return 3 * self.radius\n", "circle.py")
    neovim.until_ready()
    whole = neovim.text()

    neovim.nvim.command("Midspan annotate")
    neovim.eventually(lambda: filetype(neovim) == "midspan-preview", "no preview opens")
    assert "  +     def __init__(self, radius: float) -> None:" in lines(neovim)
    neovim.keys("<C-y>")
    neovim.eventually(neovim.messages, "nothing is told")

    assert neovim.messages() == ["Midspan: 1 place in 1 file changed"]
    assert neovim.text() == whole.replace("float):", "float) -> None:")


def test_of_the_models_answers_one_is_applied(in_neovim: Open) -> None:
    neovim = in_neovim("def area(radius):\n    return 3 * radius\n\n\nprint(area(1))\n", "circle.py")
    neovim.until_ready()
    by_hand = neovim.text()

    neovim.nvim.command("2Midspan refill")
    neovim.eventually(lambda: filetype(neovim) == "midspan-preview", "no preview opens")
    shown = lines(neovim)
    first, second = (next(n for n, line in enumerate(shown) if line.startswith(mark)) for mark in ("(x)", "( )"))
    answer = "\n".join(line[4:] for line in shown[first:second] if line.startswith("  + "))
    neovim.keys("<C-y>")
    neovim.eventually(neovim.messages, "nothing is told")

    assert neovim.text() == by_hand.replace("    return 3 * radius", answer)
    neovim.keys("u")
    assert neovim.text() == by_hand

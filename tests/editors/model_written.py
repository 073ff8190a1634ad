"""What a larger model writes, for the tests that preview it, apply it and undo it in each editor."""

import attrs


@attrs.frozen
class ModelWritten:
    """A text with the cursor at "|", the model's answer, and the text after it.

    `command` is the action's name in Neovim, `action` its title in a menu.
    """

    command: str
    action: str
    marked: str
    written: str
    filled: str

    @property
    def text(self) -> str:
        """The text without the cursor."""
        return self.marked.replace("|", "")


MODEL_WRITTEN = [
    ModelWritten("stubs", "Fill 1 stub", "def o|ne():\n    pass\n", "return 1", "def one():\n    return 1\n"),
    ModelWritten(
        "docstrings",
        "Add 1 docstring",
        "def f():\n    '''Do f.'''\n    return 1\n\n\ndef g|():\n    return 2\n",
        "Do g.",
        "def f():\n    '''Do f.'''\n    return 1\n\n\ndef g():\n    '''Do g.'''\n    return 2\n",
    ),
]

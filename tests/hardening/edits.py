"""What an editor may send: texts that are hard to count, places in and outside of a text, and garbage."""

import hypothesis.strategies as st

from hardening.edited_text import Position

URIS = ("file:///project/one", "untitled:two")
FRAGMENTS = (
    *("\n", "\r\n", "\r", "\t", " ", "    ", "", "(", ")", "{", "}", '"', "'", "#", ":", "=", ".", ","),
    *("x", "name", "return ", "def f(a, b):\n", "if True:\r\n", "for each in items:\n    pass\n", "import os\n"),
    *(
        "\U0001f600",
        "\u00e9",
        "e\u0301",
        "\u2028",
        "\ufeff",
        "\u4e2d\u6587",
        "\U0001f468\u200d\U0001f469",
        "\x0b\x0c\x1c\x85",
    ),
    *("\ud83d", "\ude00", "a\ud83d", "\ude00b", '{"a": [1, 2', "```\n", "'''\n", "\\", "/*", "*/"),
)
FAR = 2**31 - 1
"""The largest column and line of LSP."""
_SPLIT = st.sampled_from(("\r", "\n", "\r\n", "\U0001f600", "\ud83d", "\ude00"))
"""What makes or breaks a line end or a character of what stands beside it."""
TEXTS = st.one_of(st.lists(st.sampled_from(FRAGMENTS), max_size=6).map("".join), _SPLIT)
LINES = st.one_of(st.integers(0, 2), st.integers(0, 12), st.integers(0, FAR))
_COLUMNS = st.one_of(st.integers(0, 1), st.integers(0, 20), st.integers(0, FAR))
POSITIONS = st.builds(Position, LINES, _COLUMNS)
DOCUMENTS = st.sampled_from(URIS)
RARELY = st.integers(0, 39).map(lambda number: number == 17)
GARBAGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
SETTINGS_TO_SPOIL = (
    "budgetMs",
    "maxLines",
    "maxTokens",
    "gate",
    "wholeLines",
    "rule",
    "contextTokens",
    "languages",
    "x",
)
PASTES = (3, 30, 300)
METHODS = (
    *(
        "textDocument/inlineCompletion",
        "midspan/fill",
        "textDocument/completion",
        "workspace/executeCommand",
        "no/such",
    ),
    *("notify textDocument/didChange", "notify textDocument/didOpen", "notify no/such", "notify $/cancelRequest"),
    *("notify textDocument/didShowCompletion", "notify notebookDocument/didChange", "notify $/setTrace"),
)

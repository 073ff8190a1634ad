"""The bounds on what a stranger sends: a repository, a client, a server, a model's file.

SECURITY.md has a table of the doors, each with its bounds. A room adds no number of its own for how long a path is, how
many things there are, how deep they are nested, how many bytes they have or how long they take. All of them are far
above what people and their programs send.
"""

# All doors.
LONGEST_PATH = 4096
"""Characters. No system opens a longer one."""
LONGEST_NAME = 256
"""Characters: of a file, a field, a tensor."""
MOST_VALUES = 5_000
"""Values of a JSON text that a stranger sends, in all lists and objects together. Plugins send some hundreds."""
DEEPEST = 32
"""Lists and objects inside each other."""
MOST_JSON_BYTES = 64 * 1024 * 1024
"""A JSON file, such as a tokenizer's."""

# A folder: the language server, `midspan refactor`, `play` and `serve --workspace`.
MAX_FILE_BYTES = 200_000
"""A file that is learned, searched or edited. Larger files are data or generated code."""
MOST_ENTRIES = 200_000
"""Files and folders that a walk through a folder looks at."""
WALK_S = 20.0
"""Seconds of a walk. The folder may be a whole disk, or on a network."""
MOST_PATTERNS, LONGEST_PATTERN = 1_000, 400
"""Lines of a .gitignore that are read, and characters of one."""
GIT_S = 20.0
"""Seconds of a call of git."""
MOST_GIT_BYTES = 32 * 1024 * 1024
"""The output of git. An index of 3 MB can name 2 GB of paths."""
MOST_GIT_MEMORY = 1 << 30
"""Bytes that git may allocate; files that it maps do not count."""

# HTTP: `midspan serve` and `play`.
MOST_BODY_BYTES = 4 * 1024 * 1024
"""A request: more than a Fill can have."""
BODY_S = 30.0
"""Seconds in which a body comes whole, and in which a client takes a piece of a streamed answer."""
HEAD_S = 30.0
"""Seconds in which the head of a request comes whole, from its first byte or the opening of the connection."""
PIECE_BYTES = 4096
"""Received bytes that are parsed before other clients have their turn."""
MOST_NAMES = 64
"""Strings in a list of a request."""
MOST_HUNKS = 32
"""Hunks of an edit to repeat."""
MOST_REGION_CHARACTERS = 200_000
"""A region to rewrite, with the text around it."""

# The page of `midspan play`. A browser's editor is slow with more, and the model reads some kilobytes.
MOST_LISTED_FILES = 5_000
MOST_PAGE_BYTES = 1024 * 1024
"""A file that the page opens; also the characters of a text on it."""

# A model's files.
MOST_HEADER_BYTES = 64 * 1024 * 1024
"""A GGUF's header. One with 262,144 tokens and 600,000 merges has 17 MB."""
MOST_HEADER_ITEMS = 3_000_000
"""All lists in a GGUF's header together. The header above has 1.4 million."""
MOST_TENSORS, MOST_FIELDS = 100_000, 10_000
MOST_PACKED_FILES = 3
"""Files of packed weights that are kept, those that were used last. Each is about as large as its model."""
MOST_MANIFEST_BYTES = 1024 * 1024
"""Ollama's file that says what a model consists of."""
MOST_OTHER_MODELS = 1_000
"""Models of Ollama and of LM Studio."""

# A hub.
HUB_S = 30.0
"""Seconds without a byte."""
HUB_LIST_S = 60.0
"""Seconds in which the list of a repository's files comes whole."""
MOST_HUB_BYTES = 8 * 1024 * 1024
"""The list, and the text of an error."""
MOST_HUB_VALUES = 50_000
"""Values of the list's JSON."""
MOST_HUB_FILES = 1_000

# A server in the model's place.
MAX_ANSWER_BYTES = 256 * 1024
"""An answer, without its tokens and without the parts of the request that the server may repeat."""
TOKEN_BYTES = 1024
"""A token in an answer, with its probability and its likeliest rivals."""
CONNECT_S = 3.0

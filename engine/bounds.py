"""The bounds on what a stranger sends: a repository, a client, a server, a model's file.

SECURITY.md has a table of the doors, each with its bounds. A room adds no number of its own for how long a path is, how
many things there are, how deep they are nested, how many bytes they have or how long they take. All of them are far
above what people and their programs send.
"""

LONGEST_PATH = 4096
"""Characters. No system opens a longer one."""

MOST_ENTRIES = 200_000
"""Files and folders that a walk through a folder looks at."""
WALK_S = 20.0
"""Seconds of a walk. The folder may be a whole disk, or on a network."""
GIT_S = 20.0
"""Seconds of a call of git."""
MOST_GIT_BYTES = 32 * 1024 * 1024
"""Of what git prints. An index of 3 MB can name 2 GB of paths."""

MOST_BODY_BYTES = 4 * 1024 * 1024
"""Of a request over HTTP. More than a Fill can have."""
BODY_S = 30.0
"""Seconds in which a body comes whole, and in which a client takes a piece of a streamed answer."""
HEAD_S = 30.0
"""Seconds in which the head of a request comes whole, from its first byte or the opening of the connection."""
MOST_VALUES = 5_000
"""Of a JSON text that a stranger sends, all lists and objects together. Plugins send some hundreds."""
DEEPEST = 32
"""Lists and objects inside each other."""
MOST_NAMES = 64
"""Strings in a list of a request, each of at most LONGEST_NAME characters."""
LONGEST_NAME = 256

MOST_HUNKS = 32
"""Of an edit that shall be repeated."""
MOST_REGION_CHARACTERS = 200_000
"""Of a region that shall be rewritten, with the text around it."""

MOST_HEADER_BYTES = 64 * 1024 * 1024
"""Of a GGUF's header. One with 262,144 tokens and 600,000 merges has 17 MB."""
MOST_HEADER_ITEMS = 3_000_000
"""Of all lists in a GGUF's header together. Such a one has 1.4 million."""
MOST_TENSORS, MOST_FIELDS = 100_000, 10_000

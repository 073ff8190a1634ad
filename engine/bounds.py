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

"""A memory that knows one odd line of a workspace, and a hole in the middle of that line."""

import numpy as np
from mixing_networks import believing_network
from support.sources import source_paths

from engine.memory.workspace import EngineMemories
from engine.models.embedded.model import EmbeddedModel
from engine.protocol.messages import Fill

LINE = "    destination_of_everything = unlikely_name(other_thing, 4711)\n"
REST = "ely_name(other_thing, 4711)"
HOLE = Fill(
    id=1,
    prefix="def work(other_thing):\n    destination_of_everything = unlik",
    suffix="\n    return 1\n",
    path="a/b.py",
    max_tokens=32,
    budget_ms=6e5,
    rule="left-to-right",
    workspace="home",
)


def memories_of(embedded: EmbeddedModel) -> EngineMemories:
    """Return a memory of the workspace "home": ten of the frozen sources, and known.py with the line three times."""
    found = EngineMemories(embedded, embedded.tokenizer, believing_network(), 1 << 24)
    for path in source_paths()[:10]:
        found.learn("home", path.stem, np.array(found.tokenize(path.read_text()), np.int32))
    found.learn("home", "known.py", np.array(found.tokenize("def f(other_thing):\n" + LINE * 3), np.int32))
    return found

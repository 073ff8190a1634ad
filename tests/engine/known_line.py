"""A memory that knows one odd line of a workspace, and a hole in the middle of that line."""

import numpy as np
from sources import source_paths

from engine.memory.engine_memories import EngineMemories
from engine.memory.followers import RUNS
from engine.memory.gate import HIDDEN, MemoryGate
from engine.memory.row_memory import SCOPES
from engine.memory.row_statistics import FEATURES
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


def believing_gate() -> MemoryGate:
    """Return a gate that believes the memory nearly always, and the longest run most."""
    return MemoryGate(
        hidden=np.zeros((FEATURES, HIDDEN), np.float32),
        hidden_bias=np.zeros(HIDDEN, np.float32),
        output=np.zeros((HIDDEN, 1 + SCOPES), np.float32),
        output_bias=np.array([0.0, 3.0, 4.0, 3.0], np.float32),
        back_off=np.full((SCOPES, len(RUNS), 2), 0.01, np.float32),
    )


def memories_of(embedded: EmbeddedModel) -> EngineMemories:
    """Return a memory of the workspace "home": ten of the frozen sources, and known.py with the line three times."""
    found = EngineMemories(embedded, embedded.tokenizer, believing_gate(), 1 << 24)
    for path in source_paths()[:10]:
        found.learn("home", path.name, np.array(found.tokenize(path.read_text()), np.int32))
    found.learn("home", "known.py", np.array(found.tokenize("def f(other_thing):\n" + LINE * 3), np.int32))
    return found

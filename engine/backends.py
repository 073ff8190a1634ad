"""From options to what fills holes: a network in this process, or a server that the user named."""

from collections.abc import Callable

import attrs

from engine.protocol.messages import ModelInfo
from engine.remote.endpoint import Endpoint
from engine.schedule.backend import Backend

MakeBackend = Callable[[], Backend]
"""Call it inside the event loop."""


@attrs.frozen
class Core:
    """An engine in one process. `threads` 0 takes all cores; `memory_megabytes` bounds what is known of workspaces.

    `cache_megabytes` bounds the contexts that no fill uses; 0 is the bound for a person's own machine. Each person who
    types needs one, of some 17 MB with the embedded model.
    """

    model: str
    threads: int = 0
    device: str = "auto"
    precision: str = "auto"
    memory_megabytes: int = 256
    cache_megabytes: int = 0


def local_backend(core: Core, on_stage: Callable[[str], None] = lambda stage: None) -> tuple[ModelInfo, MakeBackend]:
    """Load a model. Raises ModelError in one line."""
    # Imported late because torch takes seconds: a process that does not need this ends without it.
    from engine.library.resolve import folder_of
    from engine.memory.mixing_network import MixingNetwork
    from engine.memory.workspace import EngineMemories
    from engine.models.load import load
    from engine.schedule.file_queue import FileQueue
    from engine.schedule.scheduler import Scheduler

    loaded = load(core.model, threads=core.threads, device=core.device, precision=core.precision, on_stage=on_stage)
    cache_bytes = core.cache_megabytes << 20 or None
    if not core.memory_megabytes:
        return loaded.info, lambda: Scheduler(loaded, cache_bytes, on_stage)
    mixing = MixingNetwork.of_model(folder_of(core.model))
    memories = EngineMemories(loaded, loaded.tokenizer, mixing, core.memory_megabytes << 20, loaded.memory_use)
    files = FileQueue(memories, memories.tokenize)
    return loaded.info, lambda: Scheduler(loaded, cache_bytes, on_stage, files, memories)


def remote_backend(endpoint: Endpoint) -> tuple[ModelInfo, MakeBackend]:
    """Return the backend that asks a server. Nothing is sent yet."""
    from engine.remote.backend import RemoteBackend
    from engine.remote.team import TeamBackend

    team = endpoint.dialect == "midspan"
    return endpoint.info, lambda: TeamBackend(endpoint) if team else RemoteBackend(endpoint)

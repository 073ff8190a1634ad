"""What the two processes take while somebody types for long: files are opened, edited and closed, without a pause."""

import time
from pathlib import Path

import attrs
import psutil
from sources import typed_lines

from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.cli.lsp_messages import FillOptions

_QUARTERS = 5
_LINES = 400


@attrs.frozen
class Resident:
    """Megabytes of both processes, and the keys typed until then."""

    minutes: float
    keys: int
    server: float
    engine: float


async def type_for(model: str, minutes: float, folder: Path) -> list[Resident]:
    """Type lines of real code for so long, one key after the answer to the other; weigh at each quarter."""
    spans, weighed, keys = typed_lines(_LINES), list[Resident](), 0
    async with LspSession(model, workspace=folder) as session:
        await session.open(spans[0].path, spans[0].text)
        await session.fill(Cursor.at_offset(spans[0].path, spans[0].text, spans[0].offset), FillOptions())
        await session.close(spans[0].path)
        engine = (await session.status()).engine
        if engine is None:
            return []
        server_process, engine_process = psutil.Process(session.pid), psutil.Process(engine.pid)
        began = time.perf_counter()
        while len(weighed) < _QUARTERS:
            for span in spans:
                after = (time.perf_counter() - began) / 60
                if after >= minutes * len(weighed) / (_QUARTERS - 1):
                    server, of_engine = (each.memory_info().rss / 1e6 for each in (server_process, engine_process))
                    weighed.append(Resident(after, keys, server, of_engine))
                if len(weighed) == _QUARTERS:
                    break
                await session.open(span.path, span.text)
                first = Cursor.at_offset(span.path, span.text, span.offset)
                for typed, char in enumerate(span.middle):
                    place = attrs.evolve(first, character=first.character + typed)
                    await session.type_text(place, char)
                    await session.suggest(attrs.evolve(place, character=place.character + 1))
                    keys += 1
                await session.close(span.path)
    return weighed

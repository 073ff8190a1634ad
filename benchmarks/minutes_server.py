"""Where the server alone has a suggestion: the pieces typed once more, without an editor and its menu."""

from pathlib import Path

from minutes_pieces import Piece, keys_of

from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.cli.lsp_messages import FillOptions


async def alone(project: Path, pieces: list[Piece]) -> list[str]:
    """Return for each key of the pieces what the server suggests after it, "" for nothing."""
    found: list[str] = []
    async with LspSession("embedded", workspace=project) as session:
        for piece in pieces:
            path, text = project / piece.name, piece.before + piece.after
            await session.open(path, text)
            await session.fill(Cursor.at_offset(path, text, len(piece.before)), FillOptions())
            typed = ""
            for key in keys_of(piece.typed):
                before = Cursor.at_offset(path, piece.before + typed + piece.after, len(piece.before + typed))
                await session.type_text(before, key)
                typed += key
                after = Cursor.at_offset(path, piece.before + typed + piece.after, len(piece.before + typed))
                items = await session.suggest(after)
                found.append(items[0].insert_text if items else "")
            await session.close(path)
    return found

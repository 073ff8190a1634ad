"""Where the server alone has a suggestion: the pieces typed once more, without an editor and its menu."""

from pathlib import Path

from minutes_pieces import Piece, keys_of

from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.cli.lsp_messages import FillOptions


async def has_one(project: Path, pieces: list[Piece]) -> list[bool]:
    """Return for each key of the pieces whether the server has a suggestion after it."""
    found: list[bool] = []
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
                found.append(bool(await session.suggest(after)))
            await session.close(path)
    return found

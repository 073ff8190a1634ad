"""What the engine may read of a file that the hole is not in."""

from lsp_server.documents.credentials import without_credentials
from lsp_server.hole.hole import normalize_newlines


def context_text(text: str) -> str:
    """Return a text as models are trained on it, without the lines that look like a credential."""
    return without_credentials(normalize_newlines(text))

"""The registry of languages, over the official grammar wheels.

Each language has its own wheel: `tree-sitter-languages` is abandoned, and its successor downloads parsers at run time.
"""

from pathlib import PurePath

from lsp_server.languages.brace_languages import BRACE_LANGUAGES
from lsp_server.languages.language import Language
from lsp_server.languages.markup_languages import MARKUP_LANGUAGES
from lsp_server.languages.word_languages import WORD_LANGUAGES

LANGUAGES = (*BRACE_LANGUAGES, *WORD_LANGUAGES, *MARKUP_LANGUAGES)

_BY_ID = {name: language for language in LANGUAGES for name in (language.id, *language.aliases)}
_BY_EXTENSION = {extension: language for language in LANGUAGES for extension in language.extensions}


def language_for(language_id: str, path: str) -> Language:
    """Return the language with the editor's id, else the one of the path's extension, else one without a grammar."""
    known = _BY_ID.get(language_id.lower()) or _BY_EXTENSION.get(PurePath(path).suffix.lower())
    return known or Language(language_id or "plaintext", quotes=('"',))

"""docs/settings.md, written from the settings: `python tests/support/settings_page.py > docs/settings.md`."""

import json
import re

import attrs

from engine.protocol.editor_messages import camel_case
from lsp_server.settings import SECTION, Settings, documented_default

_HEAD = f"""# Settings

Set these under `{SECTION}` in your editor's settings, or as initialization options. If a value is wrong, Midspan says
so once and uses the default. `python tests/support/settings_page.py` makes this page.
"""
_LONGEST_DEFAULT = 40
_OBVIOUS = re.compile("^(one of|a whole number from|a number from) ")
"""What a column called "allowed" need not say."""


def settings_page() -> str:
    """Return the page: a table of what a new user may want to change, and one of the rest."""
    parts = [_HEAD]
    for level, title in (("basic", "The first five"), ("advanced", "Advanced")):
        rows = [_row(field) for field in attrs.fields(Settings) if field.metadata["level"] == level]
        parts += [f"\n## {title}\n\n| setting | default | allowed | |\n| --- | --- | --- | --- |\n", *rows]
    return "".join(parts)


def _row(field: "attrs.Attribute[object]") -> str:
    default = json.dumps(documented_default(field))
    if len(default) > _LONGEST_DEFAULT:
        default = default[: default.rfind(",", 0, _LONGEST_DEFAULT)] + ", ...]"
    allowed = _OBVIOUS.sub("", field.metadata["kind"].allowed.replace("|", "\\|"))
    return f"| `{camel_case(field.name)}` | `{default}` | {allowed} | {field.metadata['doc']} |\n"


if __name__ == "__main__":
    print(settings_page(), end="")

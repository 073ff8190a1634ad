"""What README promises is what is there."""

import json
import re
from pathlib import Path

import attrs
from support.settings_page import settings_page

from engine.protocol.editor_messages import camel_case
from lsp_server.settings import Settings, documented_default

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_basic_settings_stand_in_readme_with_their_defaults() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `?(.*?)`? \|", README, re.MULTILINE))
    fields = {camel_case(field.name): field for field in attrs.fields(Settings) if field.metadata["level"] == "basic"}
    assert set(rows) == set(fields)
    for shown, field in fields.items():
        assert json.loads(rows[shown]) == documented_default(field), shown


def test_the_page_of_settings_is_made_from_the_settings() -> None:
    assert (ROOT / "docs" / "settings.md").read_text() == settings_page()


def test_every_link_in_the_documents_leads_somewhere() -> None:
    for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")):
        for link in re.findall(r"\]\(([^)]+)\)", document.read_text()):
            path, _, heading = link.partition("#")
            target = document.parent / path if path else document
            if not link.startswith("http"):
                assert target.exists(), f"{document.name}: {link}"
                assert not heading or heading in headings(target), f"{document.name}: {link}"


def headings(document: Path) -> set[str]:
    """Return the anchors of a document's headings."""
    titles = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_every_command_that_readme_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`?make (\w+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target

"""All code actions, in the order of the menu."""

from collections.abc import Sequence

from lsp_server.bulk.action import Action, Project
from lsp_server.bulk.known_rules import KnownRules
from lsp_server.bulk.repeat import Repeat


def actions_of(project: Project, rules: KnownRules) -> Sequence[Action]:
    """Return the actions of a session."""
    return [Repeat(project, rules)]

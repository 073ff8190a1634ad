"""All code actions, in the order of the menu."""

from collections.abc import Sequence

from lsp_server.bulk.action import Action, Project
from lsp_server.bulk.fill_slots import slot_actions
from lsp_server.bulk.known_rules import KnownRules
from lsp_server.bulk.paste import Paste
from lsp_server.bulk.refill_action import Refill
from lsp_server.bulk.repeat import Repeat
from lsp_server.refactor.worker import Worker


def actions_of(project: Project, rules: KnownRules, worker: Worker) -> Sequence[Action]:
    """Return the actions of a session."""
    return [Repeat(project, rules), Paste(project, worker), *slot_actions(project), Refill(project)]

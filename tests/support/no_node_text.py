"""A plugin for mypy: the server must not read `tree_sitter.Node.text`.

Its trees are parsed from buffers that are used again, and the binding calls the reader of the parse for the text. That
is over by then, so the process ends with a segmentation fault. A node's bytes are `source.data[start_byte:end_byte]`.
"""

from collections.abc import Callable

from mypy.plugin import AttributeContext, Plugin
from mypy.types import Type


class NoNodeText(Plugin):
    """Reports each use of the attribute in the language server, by type: our own nodes have a `text` too."""

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        if fullname.startswith("tree_sitter.") and fullname.endswith("Node.text"):
            return _report
        return None


def _report(context: AttributeContext) -> Type:
    context.api.fail(
        "Node.text of the server's trees is a segmentation fault; use data[start_byte:end_byte]", context.context
    )
    return context.default_attr_type


def plugin(_: str) -> type[Plugin]:
    """Return the plugin to mypy."""
    return NoNodeText

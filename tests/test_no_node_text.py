"""What mypy reports of the texts of nodes, as part of `make lint`."""

from pathlib import Path

from mypy import api

ROOT = Path(__file__).parent.parent
SOURCE = """import tree_sitter
from lsp_server.refactor.code.node import Node

def wrong(node: tree_sitter.Node) -> bytes | None:
    return node.text

def right(node: Node) -> str:
    return node.text
"""


def test_the_text_of_a_node_of_tree_sitter_is_reported_and_that_of_our_own_nodes_is_not(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(SOURCE)
    settings = tmp_path / "mypy.ini"
    settings.write_text(f"[mypy]\nplugins = {ROOT / 'tests/support/no_node_text.py'}\n")

    reported, _, status = api.run(["--config-file", str(settings), "--cache-dir", str(tmp_path / "cache"), str(module)])

    assert status == 1
    assert [line.partition(":")[2].partition(":")[0] for line in reported.splitlines() if ": error:" in line] == ["5"]
    assert "segmentation fault" in reported

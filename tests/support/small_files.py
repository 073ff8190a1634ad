"""Which files are below the floor: under 60 lines, with one importer, which lies beside them.

`make lint` prints them and never fails for them. Small may be a package's own file, one that is run, one that is
imported only inside functions because it is loaded late, and one between two rooms.
"""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "lsp_server")
FLOOR = 60
"""Lines."""


def small_files(root: Path) -> dict[Path, Path]:
    """Return the files below the floor, relative to `root`, each with the file that it could join."""
    files = {_name(path.relative_to(root)): path for package in PACKAGES for path in (root / package).rglob("*.py")}
    importers: dict[str, set[str]] = defaultdict(set)
    late: set[str] = set()
    for module, path in files.items():
        tree = ast.parse(path.read_text("utf-8"))
        first = {name for node in tree.body for name in _imported(node)}
        for name in {name for node in ast.walk(tree) for name in _imported(node)} & files.keys():
            importers[name].add(module)
            if name not in first:
                late.add(name)
    return {
        path.relative_to(root): files[importer].relative_to(root)
        for module, path in sorted(files.items())
        if not path.name.startswith("__") and module not in late and len(importers[module]) == 1
        for importer in importers[module]
        if files[importer].parent == path.parent and len(path.read_text("utf-8").splitlines()) < FLOOR
    }


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports, and the names that may be modules."""
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def main() -> None:
    """Print the files below the floor."""
    found = small_files(ROOT)
    print(f"{len(found)} files below the floor of {FLOOR} lines, with one importer in their room:")
    for path, importer in found.items():
        print(f"  {path} could join {importer.name}")


if __name__ == "__main__":
    main()

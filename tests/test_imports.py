"""The import graph of the two packages has no circle, so each module can be read after those that it imports."""

import grimp


def test_no_module_imports_itself_over_others() -> None:
    graph = grimp.build_graph("engine", "lsp_server", cache_dir=None)  # imports for types only count too
    found = circles({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
    assert not found, "\n".join(" <-> ".join(circle) for circle in found)


def test_a_circle_is_found_with_all_its_members() -> None:
    imports = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a"}, "g": set[str]()}
    assert circles(imports) == [["a", "b", "c"], ["d", "e"]]


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or over others, sorted by name."""
    reachable = {module: reach(module, imports) for module in imports}
    groups = {
        frozenset(other for other in reachable[module] if module in reachable[other])
        for module in imports
        if module in reachable[module]
    }
    return sorted(sorted(group) for group in groups)


def reach(start: str, imports: dict[str, set[str]]) -> set[str]:
    """Return every module that `start` imports, directly or over others."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = imports[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh
    return reached

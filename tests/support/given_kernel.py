"""Puts a kernel that was built elsewhere in the place of the installed one. As a plugin of pytest, that of KERNEL."""

import importlib.util
import os
import sys
from types import ModuleType

NAME = "engine.models.embedded._kernel"
VARIABLE = "KERNEL"


def use_kernel(path: str) -> ModuleType:
    """Load the kernel at `path` as the one that engine.models.embedded.runner will import."""
    spec = importlib.util.spec_from_file_location(NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pytest_configure() -> None:
    use_kernel(os.environ[VARIABLE])

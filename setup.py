"""The kernel of the embedded model, built where there is a compiler. Without it the same passes run in NumPy."""

import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

KERNEL = Extension(
    "engine.models.embedded._kernel",
    ["engine/models/embedded/native/module.c"],
    depends=[str(header) for header in sorted(Path("engine/models/embedded/native").glob("*.h"))],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    # No contraction: a row's rounding must not depend on how the compiler treats the rows that are computed with it.
    extra_compile_args=[] if sys.platform == "win32" else ["-O3", "-g0", "-std=gnu11", "-ffp-contract=off", "-pthread"],
    # GNU's linker drops the names of functions: 8 kB.
    extra_link_args=[] if sys.platform == "win32" else ["-pthread", *(["-s"] if sys.platform == "linux" else [])],
    py_limited_api=True,
    optional=True,
)


class BuildPython(build_py):
    """Puts the Neovim plugin into the wheel, where `midspan setup` finds it (engine/cli/setup/editors.py)."""

    def run(self) -> None:
        super().run()
        plugin = Path(__file__).parent / "editors" / "neovim"
        if not self.editable_mode and plugin.is_dir():
            shutil.copytree(plugin, Path(self.build_lib, "engine", "cli", "setup", "neovim"), dirs_exist_ok=True)


setup(ext_modules=[KERNEL], cmdclass={"build_py": BuildPython}, options={"bdist_wheel": {"py_limited_api": "cp311"}})

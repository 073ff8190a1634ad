"""Build the kernel for 64-bit ARM and run its tests in an emulator: `make test-neon`. Without tools it is skipped.

Three runs: which paths some processors get, the tests of test_kernel.py on all paths, and all paths with a build that
ends at undefined behaviour. It is built for macOS too, but nothing can run that here.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

import fetch_neon
from fetch_neon import ARM, COMPILER, EMULATOR, PYTHON, ROOT

SOURCE = ROOT / "engine" / "models" / "embedded" / "native" / "module.c"
TESTS = ROOT / "tests" / "engine" / "models" / "embedded"
FLAGS = (
    "-fPIC",
    "-pthread",
    "-std=gnu11",
    "-ffp-contract=off",
    "-DPy_LIMITED_API=0x030B0000",
    "-Wall",
    "-Wextra",
    "-Werror",
)
FAST = ["-O3", "-fno-sanitize=all"]
TRAPPING = ["-O1", "-fsanitize=undefined", "-fsanitize-trap=undefined"]
LINUX, MACOS = "aarch64-linux-gnu.2.28", "aarch64-macos"
PROCESSORS = {
    "max": ["neon-dot", "plain"],
    "neoverse-v1": ["neon-dot", "plain"],
    "neoverse-n1": ["neon-dot", "plain"],
    "cortex-a72": ["plain"],
}


def main() -> None:
    if not fetch_neon.is_here():
        print("test-neon: skipped; `make neon` fetches an ARM Python, qemu and a compiler into .editors/neon")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fast = build(folder / "fast.so", LINUX, ["-shared", *FAST])
        trapping = build(folder / "trapping.so", LINUX, ["-shared", *TRAPPING])
        build(folder / "macos.o", MACOS, ["-c", *FAST])
        print("test-neon: built for Linux and macOS")
        for processor, expected in PROCESSORS.items():
            program = "import sys; from support.given_kernel import use_kernel; print(use_kernel(sys.argv[1]).paths())"
            found = emulated(["-c", program, str(fast)], fast, processor, capture=True)
            if found != f"{expected}\n":
                sys.exit(f"test-neon: {processor} has the paths {found}, not {expected}")
            print(f"test-neon: {processor} has {', '.join(expected)}")
        # Python without this project's own settings of pytest, which name plugins that are not there.
        options = [
            "-c",
            os.devnull,
            f"--rootdir={ROOT}",
            "--noconftest",
            "-p",
            "support.given_kernel",
            "-p",
            "no:cacheprovider",
        ]
        emulated(["-m", "pytest", "-q", *options, str(TESTS / "test_kernel.py")], fast)
        print(emulated([str(TESTS / "sanitized_kernel.py"), str(trapping)], trapping, capture=True), end="")


def build(target: Path, system: str, flags: Sequence[str]) -> Path:
    """Build the kernel as `target` for a system, with the headers of this Python: the stable ABI is one for all."""
    headers = f"-I{sysconfig.get_path('include')}"
    command = [sys.executable, "-m", "ziglang", "cc", "-target", system, *FLAGS, *flags, headers, str(SOURCE)]
    environment = os.environ | {"PYTHONPATH": str(COMPILER)}
    if subprocess.run([*command, "-o", str(target)], env=environment).returncode:
        sys.exit(f"test-neon: the kernel does not build for {system}")
    return target


def emulated(arguments: Sequence[str], kernel: Path, processor: str = "max", *, capture: bool = False) -> str:
    """Run Python in the emulator and return what it printed, if that is captured. Ends the program if it fails."""
    libraries = ARM.root / "usr" / "lib" / "aarch64-linux-gnu"
    places = [libraries, libraries / "blas", libraries / "lapack"]
    command = [str(EMULATOR), "-cpu", processor, "-L", str(ARM.root)]
    command += ["-E", "LD_LIBRARY_PATH=" + ":".join(map(str, places)), str(PYTHON)]
    environment = {
        "PATH": os.environ["PATH"],
        "KERNEL": str(kernel),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests"), str(TESTS)]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    ran = subprocess.run([*command, *arguments], cwd=ROOT, env=environment, text=True, capture_output=capture)
    if ran.returncode:
        sys.exit(f"test-neon: failed on {processor} {ran.stderr or ''}")
    return ran.stdout or ""


if __name__ == "__main__":
    main()

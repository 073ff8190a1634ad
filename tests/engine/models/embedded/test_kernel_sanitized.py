"""The kernel touches no memory that is not its own, and has no undefined behaviour: it runs under the sanitizers."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from engine.models.embedded.runner import kernel_paths

ROOT = Path(__file__).parents[4]
SOURCE = ROOT / "engine" / "models" / "embedded" / "native" / "module.c"
FLAGS = (
    "-shared -fPIC -pthread -O1 -g -std=gnu11 -ffp-contract=off -DPy_LIMITED_API=0x030B0000 -fno-sanitize-recover=all"
)
SANITIZERS = "-fsanitize=address,undefined"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the kernel with sanitizers. Skips where gcc or its sanitizers are missing."""
    if shutil.which("gcc") is None or sys.platform != "linux":
        pytest.skip("needs gcc on Linux")
    target = tmp_path_factory.mktemp("sanitized") / "_kernel.abi3.so"
    include = f"-I{sysconfig.get_path('include')}"
    command = ["gcc", *FLAGS.split(), SANITIZERS, include, str(SOURCE), "-o", str(target), "-lm"]
    built = subprocess.run(command, capture_output=True, text=True)
    if "asan" in built.stderr or "ubsan" in built.stderr:
        pytest.skip("gcc has no sanitizers here")
    assert built.returncode == 0, built.stderr
    return target


@pytest.mark.slow
@pytest.mark.timeout(400)  # Building takes 17 seconds of a processor, which may be busy with other tests.
def test_every_path_runs_clean_under_the_sanitizers(kernel: Path) -> None:
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    environment = os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",  # Python itself frees little when it ends.
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    script = Path(__file__).with_name("sanitized_kernel.py")
    ran = subprocess.run([sys.executable, str(script), str(kernel)], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert ran.stdout.split("\n")[:-1] == [f"{path} ran and refused" for path in kernel_paths() for _ in range(2)]

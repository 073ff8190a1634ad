"""`midspan refactor`: a command of the language server's package, run in a process of its own.

The engine imports nothing of the language server; `midspan fill` starts it as a process too.
"""

import subprocess
import sys
from collections.abc import Sequence


def run(arguments: Sequence[str]) -> int:
    """Run the command with the user's arguments and return its exit status."""
    # -P: Python must not import modules from the user's folder, such as a types.py or json.py.
    process = subprocess.Popen([sys.executable, "-P", "-m", "lsp_server.refactor_cli", *arguments])
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass  # the command gets the same signal, and ends

"""What a command leaves that has ended."""

import subprocess

import attrs
from typer.testing import CliRunner

from engine.cli import app


@attrs.frozen
class Ended:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @classmethod
    def of(cls, run: subprocess.CompletedProcess[str]) -> "Ended":
        return cls(run.returncode, run.stdout, run.stderr)


def run_here(*arguments: str) -> Ended:
    """Run `midspan` in this process, which takes a tenth of the time that a new one does."""
    result = CliRunner().invoke(app, arguments)
    return Ended(result.exit_code, result.stdout, result.stderr)

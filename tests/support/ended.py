"""What a command leaves that has ended."""

import subprocess

import attrs


@attrs.frozen
class Ended:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @classmethod
    def of(cls, run: subprocess.CompletedProcess[str]) -> "Ended":
        return cls(run.returncode, run.stdout, run.stderr)

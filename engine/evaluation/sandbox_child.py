"""The script inside the sandbox: it gives up every right, then runs the program that it reads from stdin.

A bare interpreter runs it, `python -I -S -B sandbox_child.py CPU_SECONDS MEMORY_BYTES`, so it imports none of our
modules. A program that reaches its end exits with the status PASSED; no exception and no sys.exit() gives that status.
A program that computes for too long exits with OUT_OF_TIME, or the kernel kills it a second later.
"""

import os
import sys

PASSED = 97
OUT_OF_TIME = 98

_REFUSED = (
    "ctypes.",
    "ftplib.",
    "os.chflags",
    "os.chmod",
    "os.chown",
    "os.exec",
    "os.fork",
    "os.kill",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.spawn",
    "os.startfile",
    "os.symlink",
    "os.system",
    "os.truncate",
    "os.utime",
    "pty.spawn",
    "resource.",
    "shutil.",
    "signal.",
    "socket.",
    "subprocess.",
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def limit(cpu_seconds: int, memory_bytes: int) -> None:
    """Limit processor time, memory, file size, core dumps and processes. The kernel does not count root's processes."""
    import resource
    import signal

    # The kernel does not send this signal to the first process of a namespace unless that handles it.
    signal.signal(signal.SIGXCPU, lambda *_: os._exit(OUT_OF_TIME))
    for name, soft, hard in (
        (resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1),
        (resource.RLIMIT_AS, memory_bytes, memory_bytes),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NPROC, 0, 0),
    ):
        current = resource.getrlimit(name)[1]
        ceiling = hard if current == resource.RLIM_INFINITY else min(hard, current)
        resource.setrlimit(name, (min(soft, ceiling), ceiling))


def forbid_file_changes() -> None:
    """Let the kernel refuse to write, make, remove or execute any file, if it has Landlock (Linux 5.13)."""
    if sys.platform != "linux":
        return
    import ctypes

    create_ruleset, restrict_self, no_new_privileges = 444, 446, 38
    execute, write, truncate = 1 << 0, 1 << 1, 1 << 14
    remove_and_make = sum(1 << bit for bit in range(4, 13))
    system = ctypes.CDLL(None)
    version = system.syscall(create_ruleset, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return
    handled = execute | write | remove_and_make | (truncate if version >= 3 else 0)
    ruleset = system.syscall(create_ruleset, ctypes.byref(ctypes.c_uint64(handled)), ctypes.c_size_t(8), 0)
    if ruleset >= 0 and system.prctl(no_new_privileges, 1, 0, 0, 0) == 0:
        system.syscall(restrict_self, ruleset, 0)
        os.close(ruleset)


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    """Raise PermissionError on everything that no solution needs: writing, processes, signals, sockets, foreign code.

    An audit hook (PEP 578) cannot be removed. It stops careless code on every system. Only the kernel stops code that
    attacks the interpreter itself.
    """
    if event == "open":
        flags = arguments[2]
        if isinstance(flags, int) and not flags & _WRITING:
            return
    elif not event.startswith(_REFUSED):
        return
    raise PermissionError(f"{event} is not allowed here")


def main() -> None:
    program = sys.stdin.buffer.read()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    sys.stdin = os.fdopen(0)
    forbid_file_changes()
    limit(int(sys.argv[1]), int(sys.argv[2]))
    del sys.argv[1:]
    sys.addaudithook(refuse)
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
    os._exit(PASSED)


if __name__ == "__main__":
    main()

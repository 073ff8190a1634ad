"""Another user of the machine, who wants the code: a process with that user's id tries what it can.

The attempts run in a child of root's, after setuid. Each that succeeds prints its name.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from engine.client.launcher import EngineOptions, connect_or_start
from engine.client.lock import read_record
from engine.protocol.framing import pack
from engine.protocol.messages import PROTOCOL_VERSION, Hello
from hardening.work import Row, Work

STRANGER = 65534
CAN_BE_A_STRANGER = sys.platform == "linux" and hasattr(os, "geteuid") and os.geteuid() == 0
_CODE = """
import json, os, socket, sys
folder, lock, token, path, port, pid = json.loads(sys.argv[1])
os.setgroups([]); os.setgid({stranger}); os.setuid({stranger})

def connect(family, address, hello):
    with socket.socket(family) as raw:
        raw.settimeout(10)
        raw.connect(address)
        raw.sendall(hello)
        return b"welcome" in raw.recv(4000)

def plant(name):
    with open(os.path.join(folder, name), "x") as file:
        file.write("mine")
    return True

def replace(target):
    os.rename(target, target + ".old")
    return True

hello = bytes.fromhex({hello!r})
attempts = {{
    "list the folder": lambda: os.listdir(folder) is not None,
    "plant a file in the folder": lambda: plant("engine-x.lock"),
    "read the lock": lambda: bool(open(lock).read()),
    "write the lock": lambda: open(lock, "r+") is not None,
    "replace the lock": lambda: replace(lock),
    "read the token": lambda: bool(open(token).read()),
    "replace the folder": lambda: replace(folder),
    "connect to the socket": lambda: bool(path) and connect(socket.AF_UNIX, path, hello),
    "connect to the port without the token": lambda: bool(port) and connect(socket.AF_INET, ("127.0.0.1", port), hello),
    "read the engine's memory": lambda: open(f"/proc/{{pid}}/mem", "rb") is not None,
    "read the engine's environment": lambda: bool(open(f"/proc/{{pid}}/environ").read()),
    "stop the engine": lambda: os.kill(pid, 19) is None,
}}
done = []
for name, attempt in attempts.items():
    try:
        if attempt():
            done.append(name)
    except OSError:
        pass
print(json.dumps([len(attempts), done]))
"""


def attempts(
    folder: Path, lock: Path, token: Path, socket: str, port: int, pid: int, hello: bytes
) -> tuple[int, list[str]]:
    """Try everything as another user. Return how much was tried, and what succeeded."""
    code = _CODE.format(stranger=STRANGER, hello=hello.hex())
    known = json.dumps([str(folder), str(lock), str(token), socket, port, pid])
    done = subprocess.run([sys.executable, "-c", code, known], capture_output=True, check=True, text=True, cwd="/")
    tried, succeeded = json.loads(done.stdout)
    return tried, succeeded


async def try_all(folder: Path, transport: str) -> tuple[int, list[str]]:
    """Start an engine in a folder, over "unix" or "tcp", and have the other user try everything."""
    os.environ["MIDSPAN_TRANSPORT"] = transport
    options = EngineOptions(model="embedded", threads=1)
    try:
        client = await connect_or_start(options, "hardening")
    finally:
        del os.environ["MIDSPAN_TRANSPORT"]
    record = read_record(options.paths.lock)
    assert record is not None
    paths, hello = options.paths, pack(Hello(PROTOCOL_VERSION, "stranger"))
    try:
        return await asyncio.to_thread(
            attempts, folder, paths.lock, paths.token, record.socket, record.port, record.pid, hello
        )
    finally:
        await client.shutdown()
        await client.close()


def soak(work: Work) -> list[Row]:
    """Let the other user try everything over both transports."""
    if not CAN_BE_A_STRANGER:
        return [Row("another user tries to get in", 0, seen="skipped: needs root on Linux")]
    tried, lost = 0, list[str]()
    for transport in ("unix", "tcp"):
        count, succeeded = asyncio.run(try_all(work.folder, transport))
        tried += count
        lost += [f"{transport}: {name}" for name in succeeded]
    return [Row("another user tries to get in", tried, lost)]

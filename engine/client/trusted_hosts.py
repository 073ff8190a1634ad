"""The other machines to which the user's code may be sent, because the user confirmed them."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from engine.client.address import is_loopback
from engine.folders import config_folder
from engine.json_file import read_json, write_config

VARIABLE = "MIDSPAN_TRUSTED_HOSTS"
_FILE = "trusted-hosts.json"


def remote_host_of(model: str) -> str | None:
    """Return the host of a model's server on another machine, with the port that the URL names.

    None for a model or a server on this machine, and for a URL that is wrong: the engine refuses that.
    """
    url = model.partition("+")[2]
    if "://" not in url:
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if not host or is_loopback(host):
        return None
    host = f"[{host}]" if ":" in host else host
    return host if port is None else f"{host}:{port}"


def trusted_hosts() -> frozenset[str]:
    """Return what the user confirmed: in the file of the configuration folder, and in $MIDSPAN_TRUSTED_HOSTS."""
    named = (host.strip().lower() for host in os.environ.get(VARIABLE, "").split(","))
    return frozenset((*_kept(), *(host for host in named if host)))


def is_trusted(host: str) -> bool:
    """Whether the user confirmed this host, with this port if it has one."""
    return host.lower() in trusted_hosts()


def trust(host: str) -> None:
    """Keep that the user confirmed a host. Raises ModelError in one line."""
    write_config(_path(), sorted({*_kept(), host.lower()}))


def distrust(host: str) -> None:
    """Forget that. Raises ModelError in one line."""
    write_config(_path(), sorted(_kept() - {host.lower()}))


def trust_for_now(model: str) -> None:
    """Confirm the host of a model that the user typed, for this process and those that it starts."""
    if (host := remote_host_of(model)) is not None:
        os.environ[VARIABLE] = f"{os.environ.get(VARIABLE, '')},{host}".lstrip(",")


def _kept() -> frozenset[str]:
    try:
        hosts = read_json(_path())
    except (OSError, ValueError):
        return frozenset()
    return frozenset(host for host in hosts if isinstance(host, str)) if isinstance(hosts, list) else frozenset()


def _path() -> Path:
    return config_folder() / _FILE

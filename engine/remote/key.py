"""The API key of a remote model's server: from the environment or the system's keyring, never from a setting."""

import importlib
import os
import re

from engine.client.trusted_hosts import is_trusted
from engine.errors import ModelError
from engine.remote.endpoint import Endpoint

VARIABLE = "MIDSPAN_API_KEY"
_KEYRING_SERVICE = "midspan"


def variable_of(endpoint: Endpoint) -> str:
    """Return the environment variable for the key of this host, such as MIDSPAN_API_KEY_API_EXAMPLE_COM."""
    return f"{VARIABLE}_{re.sub('[^0-9A-Za-z]', '_', endpoint.host.strip('[]')).upper()}"


def find_key(endpoint: Endpoint) -> str | None:
    """Return the key for a server: from the host's own variable, else from the general one, else from the keyring.

    The general one goes only to this machine and to hosts that the user confirmed: a workspace's settings can name any.
    The keyring is read only if the optional package `keyring` is installed, with service "midspan" and the host as user
    name. It may ask the user for permission, which takes time. Returns None when there is no key. Raises ModelError
    when the key contains characters that a header cannot hold; the message does not quote it.
    """
    variables = [variable_of(endpoint)]
    if endpoint.loopback or is_trusted(endpoint.server):
        variables.append(VARIABLE)
    for variable in variables:
        if key := os.environ.get(variable, "").strip():
            return _checked(key, variable)
    key = (_from_keyring(endpoint.host) or "").strip()
    return _checked(key, "the keyring") if key else None


def _checked(key: str, source: str) -> str:
    # The HTTP library's own error for such a key would quote it.
    if not all("!" <= char <= "~" for char in key):
        raise ModelError(f"the key in {source} holds characters that no key has; set it again")
    return key


def _from_keyring(host: str) -> str | None:
    try:
        keyring = importlib.import_module("keyring")
        key = keyring.get_password(_KEYRING_SERVICE, host)
    except Exception:  # not installed, locked, or without a backend: if a key is needed, the server's answer says so
        return None
    return key if isinstance(key, str) else None

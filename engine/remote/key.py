"""The key of a remote model's server: from the environment or the system's keyring, never from a setting."""

import importlib
import os
import re

from engine.errors import ModelError
from engine.remote.endpoint import Endpoint

VARIABLE = "MIDSPAN_API_KEY"
_KEYRING_SERVICE = "midspan"


def variable_of(endpoint: Endpoint) -> str:
    """Return the environment variable for the key of this one host: MIDSPAN_API_KEY_API_EXAMPLE_COM."""
    return f"{VARIABLE}_{re.sub('[^0-9A-Za-z]', '_', endpoint.host.strip('[]')).upper()}"


def find_key(endpoint: Endpoint) -> str | None:
    """Return the key for a server, or None: the host's own variable, else the general one, else the keyring's.

    The keyring is asked only where the optional package `keyring` is installed, for service "midspan" and the host as
    user name; it may ask the user and so may take its time. Raises ModelError when what was found can be no key; the
    message does not quote it.
    """
    for variable in (variable_of(endpoint), VARIABLE):
        if key := os.environ.get(variable, "").strip():
            return _checked(key, variable)
    key = (_from_keyring(endpoint.host) or "").strip()
    return _checked(key, "the keyring") if key else None


def _checked(key: str, place: str) -> str:
    # A header cannot hold it, and the complaint of the HTTP library would quote it.
    if not all("!" <= char <= "~" for char in key):
        raise ModelError(f"the key in {place} holds characters that no key has; set it anew")
    return key


def _from_keyring(host: str) -> str | None:
    try:
        keyring = importlib.import_module("keyring")
        found = keyring.get_password(_KEYRING_SERVICE, host)
    except Exception:  # not installed, locked, or without any backend: then there is no key, which the server will say
        return None
    return found if isinstance(found, str) else None

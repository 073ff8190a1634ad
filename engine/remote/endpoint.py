"""A remote model's name, DIALECT+URL[#MODEL], split into dialect, server and model."""

import importlib
import os
import re
from typing import Literal, get_args
from urllib.parse import SplitResult, urlsplit

import attrs

from engine.client.address import is_loopback, is_trusted
from engine.errors import ModelError
from engine.protocol.messages import ModelInfo

VARIABLE = "MIDSPAN_API_KEY"
"""Where a key is: in the environment or in the system's keyring, never in a setting."""
_KEYRING_SERVICE = "midspan"
DialectName = Literal["openai", "mercury", "llamacpp", "vllm", "midspan"]
FAMILY = "remote"
READING_TOKENS = 8_000
"""The tokens that request.py lets through, at three characters a token. No server says how long its window is."""
_FORM = "write DIALECT+URL#MODEL, as in openai+http://127.0.0.1:8000/v1#qwen"


@attrs.frozen
class Endpoint:
    """A server and the model to use there. `url` has no slash at its end. If `model` is "", the server chooses.

    `server` is the host with its port.
    """

    dialect: DialectName
    url: str
    host: str
    server: str
    model: str = ""

    @property
    def loopback(self) -> bool:
        """Whether the server runs on this machine. Then no code leaves it."""
        return is_loopback(self.host)

    @property
    def private(self) -> bool:
        """Whether nobody on the network can read what is sent."""
        return self.loopback or self.url.startswith("https:")

    @property
    def info(self) -> ModelInfo:
        """The facts about the model that are known without asking the server: its name and where it runs."""
        return ModelInfo(
            name=self.model or self.server,
            family=FAMILY,
            licence="its server's",
            parameters=0,
            context_tokens=0,
            canvas_tokens=0,
            noise="absorbing",
            device=FAMILY,
            dtype="unknown",
            server=self.server,
            reading_tokens=READING_TOKENS,
        )


def endpoint_of(model: str) -> Endpoint | None:
    """Return the server that a model's name names; None when the name is not that of a remote model.

    Raises ModelError in one line for a URL that is wrong. The line never quotes the URL: people put passwords and keys
    into it.
    """
    dialect, plus, url = model.partition("+")
    if "://" not in model:
        return None
    if not plus or "://" in dialect:
        raise ModelError(f"a URL alone does not say how to talk to its server; {_FORM}")
    if dialect not in get_args(DialectName):
        raise ModelError(f"no dialect is called {dialect[:20]!r}; there are {', '.join(get_args(DialectName))}")
    parts, host, port = _split(url)
    if parts.scheme not in ("http", "https"):
        raise ModelError(f"a model's server is reached over http or https, not {parts.scheme[:20]!r}; {_FORM}")
    if parts.username is not None or parts.password is not None or parts.query:
        raise ModelError(
            "the URL of a model's server holds a user name, a password or a query; leave them out, and put its key "
            "into the environment variable MIDSPAN_API_KEY"
        )
    return Endpoint(
        dialect=dialect,  # type: ignore[arg-type]  # checked above
        url=f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}",
        host=host,
        server=host if port is None else f"{host}:{port}",
        model=parts.fragment,
    )


def _split(url: str) -> tuple[SplitResult, str, int | None]:
    """Return the parts of a URL, its host (IPv6 in brackets) and its port. Raises ModelError."""
    if not url.isprintable() or " " in url:
        raise ModelError(f"the URL of a model's server holds spaces or control characters; {_FORM}")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ModelError(f"the URL of a model's server is wrong: {str(error).split(':')[0]}; {_FORM}") from None
    if not host:
        raise ModelError(f"the URL of a model's server names no host; {_FORM}")
    return parts, f"[{host}]" if ":" in host else host, port


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

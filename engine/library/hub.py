"""The Hugging Face hub: the files of a repository, and clear errors. No other module here but pull.py uses the network.

The transfer is our own (pull.py), because huggingface_hub 2 discards the received part of a file when a download is
interrupted. Addresses, tokens, the session and the errors come from huggingface_hub, so HF_ENDPOINT, HF_TOKEN and
HF_HUB_OFFLINE work as usual.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import attrs
import cattrs
import httpx2
from huggingface_hub import constants, get_session, get_token, hf_raise_for_status
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from engine.bounds import HUB_LIST_S, HUB_S, LONGEST_NAME, MOST_HUB_BYTES, MOST_HUB_FILES, MOST_HUB_VALUES
from engine.errors import ModelError
from engine.json_file import parse_small_json
from engine.library.catalog import CatalogModel
from engine.library.weights_header import OUR_OWN
from engine.reading import is_inside

WEIGHTS = ".safetensors"
_PULLED_SUFFIXES = (WEIGHTS, ".json", ".jinja", ".txt", ".md")
_PULLED_NAMES = re.compile(r"(?:LICENSE|NOTICE)[\w-]*|tokenizer\.model(?:\.v\d+)?")
_COMMIT = re.compile("[0-9a-f]{40,64}")
_TEMPORARY = (408, 429, 500, 502, 503, 504)


@attrs.frozen
class HubFile:
    """A file in the hub's list, `size` in bytes. A large file has a sha256; a small file has only git's sha1."""

    name: str
    size: int
    sha256: str
    git_sha1: str


@attrs.frozen
class HubListing:
    """The files of a repository that a pull needs, at a commit."""

    commit: str
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)


@attrs.frozen
class _LargeFile:
    sha256: str


@attrs.frozen
class _RepositoryFile:
    rfilename: str
    size: int
    blobId: str = ""
    lfs: _LargeFile | None = None


@attrs.frozen
class _Repository:
    """The fields that we read from the hub's answer about a repository."""

    sha: str
    siblings: tuple[_RepositoryFile, ...]


def list_files(model: CatalogModel, revision: str) -> HubListing:
    """Return the files of a model to pull: safetensors or the catalog's GGUF, configuration, tokenizer and licence, but
    no code.

    Raises ModelError, also when the repository has its weights only in other formats.
    """
    # We do not use HfApi because it tells the hub in headers, and in another request, what is installed on this
    # machine.
    url = f"{constants.ENDPOINT}/api/models/{model.hub}/revision/{quote(revision, safe='')}"
    with (
        hub_errors_explained(model, revision),
        get_session().stream("GET", url, params={"blobs": True}, headers=headers() | PLAIN, timeout=HUB_S) as answer,
    ):
        check_status(answer)
        repository = cattrs.structure(parse_small_json(_body(answer), MOST_HUB_VALUES), _Repository)
    if len(repository.siblings) > MOST_HUB_FILES or _COMMIT.fullmatch(repository.sha) is None:
        raise ModelError(f"{model.hub} has more than {MOST_HUB_FILES} files or no commit; is HF_ENDPOINT right?")
    files = [
        HubFile(file.rfilename, file.size, file.lfs.sha256 if file.lfs else "", file.blobId)
        for file in repository.siblings
        if file.rfilename == model.file or is_pulled_file(file.rfilename, with_weights=not model.file)
    ]
    names = [file.name for file in files]
    if model.file:
        if model.file not in names:
            raise ModelError(f"{model.hub} has no file {model.file}; its files have other names now")
        return HubListing(repository.sha, tuple(files))
    if not any(name.endswith(WEIGHTS) for name in names):
        raise ModelError(
            f"{model.hub} has no weights as safetensors; Midspan pulls no other format, because it could contain code"
        )
    if "config.json" not in names:
        raise ModelError(f"{model.hub} has no config.json; it is not a model that Midspan can load")
    return HubListing(repository.sha, tuple(files))


def check_status(answer: httpx2.Response) -> None:
    """Raise HfHubHTTPError if the hub refused a request, whose body is not read yet and may be anything."""
    if answer.is_success:
        return
    request, named = answer.request, ((name, value) for name, value in answer.headers.items() if name.startswith("x-"))
    answer = httpx2.Response(answer.status_code, headers=list(named), content=_body(answer), request=request)
    try:
        hf_raise_for_status(answer)
    except (AttributeError, RecursionError, TypeError, ValueError):  # huggingface_hub expects an object in a body
        raise HfHubHTTPError(f"status {answer.status_code}", response=answer) from None


PLAIN = {"Accept-Encoding": "identity"}
"""Asks for bytes as they are: a few of a compressed answer can be gigabytes."""


def _body(answer: httpx2.Response) -> bytes:
    """Return an answer's body. Raises ValueError for one that is too long, compressed or too slow."""
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise ValueError("the answer is compressed")
    body, deadline = bytearray(), time.monotonic() + HUB_LIST_S
    for piece in answer.iter_raw():
        body += piece
        if len(body) > MOST_HUB_BYTES or time.monotonic() > deadline:
            raise ValueError("the answer is too long")
    return bytes(body)


def headers() -> dict[str, str]:
    """Return the headers of every request to the hub, with the user's token if there is one."""
    token = get_token()
    return {"User-Agent": "midspan", **({"Authorization": f"Bearer {token}"} if token else {})}


def is_pulled_file(name: str, with_weights: bool = True) -> bool:
    """Whether a pull includes this file of a repository. Code and files in folders are never pulled."""
    if not is_inside(name) or len(name) > LONGEST_NAME or "/" in name or "\\" in name or name.startswith("."):
        return False
    if OUR_OWN.fullmatch(name) or (name.endswith(WEIGHTS) and not with_weights):
        return False
    return name.endswith(_PULLED_SUFFIXES) or _PULLED_NAMES.fullmatch(name) is not None


def is_temporary(error: Exception) -> bool:
    """Whether the same request could succeed a moment later."""
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in _TEMPORARY
    return isinstance(error, httpx2.TransportError) and not isinstance(error, httpx2.UnsupportedProtocol)


@contextmanager
def hub_errors_explained(model: CatalogModel, revision: str) -> Iterator[None]:
    """Turn the errors of a request to the hub into ModelError with one line."""
    try:
        yield
    except OfflineModeIsEnabled:
        raise ModelError("HF_HUB_OFFLINE is set, and a pull needs the network; unset it for this command") from None
    except GatedRepoError:
        raise ModelError(
            f"{model.hub} is gated: accept its terms at {model.licence_page}, then set HF_TOKEN to your token"
        ) from None
    except RevisionNotFoundError:
        raise ModelError(
            f"{model.hub} has no revision {revision}; to drop a pull that was begun: midspan models remove {model.name}"
        ) from None
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"no {model.hub} at {constants.ENDPOINT} that you may see (status {error.response.status_code}); "
            "if it needs an account, set HF_TOKEN"
        ) from None
    except HfHubHTTPError as error:
        raise ModelError(_status_line(model, error.response.status_code)) from None
    except httpx2.HTTPError as error:
        raise ModelError(
            f"{constants.ENDPOINT} cannot be reached ({type(error).__name__}); the pulled part is kept: try again later"
        ) from None
    except (httpx2.InvalidURL, cattrs.BaseValidationError, ValueError, KeyError, TypeError):
        raise ModelError(f"{constants.ENDPOINT} does not answer as a hub does; is HF_ENDPOINT right?") from None


def _status_line(model: CatalogModel, status: int) -> str:
    if status == 401:
        return f"the hub does not accept your token for {model.hub} (status 401); set HF_TOKEN to one that is valid"
    if status == 403:
        return f"you may not have {model.hub} (status 403): see {model.licence_page}, and set HF_TOKEN"
    if status == 404:
        return f"{model.hub} lacks a file that the hub has listed (status 404); pull it again"
    return f"the hub answered with status {status} for {model.hub}; the pulled part is kept: try again later"

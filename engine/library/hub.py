"""What a repository at the hub holds, and why it cannot be had. The one way from Midspan to the network for models.

The transfer is our own (pull.py): what huggingface_hub 2 has of a file when a download is interrupted, it throws away.
Addresses, tokens, the session and errors are huggingface_hub's, and with them HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
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

from engine.errors import ModelError
from engine.library.catalog import CatalogModel

WEIGHTS = ".safetensors"
_TAKEN = (WEIGHTS, ".json", ".jinja", ".txt", ".md")
_TAKEN_WHOLE = ("LICENSE", "NOTICE", "tokenizer.model")
TIMEOUT_S = 30.0
_TRY_AGAIN = (408, 429, 500, 502, 503, 504)


@attrs.frozen
class HubFile:
    """A file as the hub lists it, `size` in bytes: large ones with their sha256, small ones with git's sha1 of them."""

    name: str
    size: int
    sha256: str
    git_sha1: str


@attrs.frozen
class HubListing:
    """The files to take of a repository, at a commit."""

    commit: str
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


@attrs.frozen
class _LargeFile:
    sha256: str


@attrs.frozen
class _Sibling:
    rfilename: str
    size: int
    blobId: str = ""
    lfs: _LargeFile | None = None


@attrs.frozen
class _Repository:
    """What the hub answers when it is asked for a repository, as far as we read it."""

    sha: str
    siblings: tuple[_Sibling, ...]


def list_files(model: CatalogModel, revision: str) -> HubListing:
    """Return what to take of a model's repository: weights as safetensors, configuration, tokenizer, licence; no code.

    Raises ModelError, also when the weights are there in other formats only.
    """
    # Not HfApi: it has the hub told by headers, and by a request of its own, what is installed here and what runs it.
    url = f"{constants.ENDPOINT}/api/models/{model.hub}/revision/{quote(revision, safe='')}"
    with told(model, revision):
        answer = get_session().get(url, params={"blobs": True}, headers=headers(), timeout=TIMEOUT_S)
        hf_raise_for_status(answer)
        found = cattrs.structure(answer.json(), _Repository)
    files = [
        HubFile(sibling.rfilename, sibling.size, sibling.lfs.sha256 if sibling.lfs else "", sibling.blobId)
        for sibling in found.siblings
        if is_taken(sibling.rfilename)
    ]
    if not any(file.name.endswith(WEIGHTS) for file in files):
        raise ModelError(f"{model.hub} has no weights as safetensors; Midspan takes no others, as they can hold code")
    if not any(file.name == "config.json" for file in files):
        raise ModelError(f"{model.hub} has no config.json; it is not a model that Midspan can load")
    return HubListing(found.sha, tuple(files))


def headers() -> dict[str, str]:
    """Return what every request to the hub carries: who asks, and the user's token where there is one."""
    token = get_token()
    return {"User-Agent": "midspan", **({"Authorization": f"Bearer {token}"} if token else {})}


def is_taken(name: str) -> bool:
    """Whether a file of a repository is one that we take: never code, nor what lies in its folders."""
    if PurePosixPath(name).name != name or "\\" in name or name.startswith("."):
        return False
    return name.endswith(_TAKEN) or name.startswith(_TAKEN_WHOLE)


def is_passing(error: Exception) -> bool:
    """Whether the same request may well succeed a moment later."""
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in _TRY_AGAIN
    return isinstance(error, httpx2.TransportError) and not isinstance(error, httpx2.UnsupportedProtocol)


@contextmanager
def told(model: CatalogModel, revision: str) -> Iterator[None]:
    """Turn what can go wrong at the hub inside into ModelError with one line."""
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
            f"{model.hub} has no revision {revision}; if a pull was begun: midspan models remove {model.name}"
        ) from None
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"no {model.hub} at {constants.ENDPOINT} that you may see (status {error.response.status_code}); "
            "where it needs an account, set HF_TOKEN"
        ) from None
    except HfHubHTTPError as error:
        raise ModelError(_status_line(model, error.response.status_code)) from None
    except httpx2.HTTPError as error:
        raise ModelError(
            f"{constants.ENDPOINT} cannot be reached ({type(error).__name__}); what was pulled is kept: try again later"
        ) from None
    except (httpx2.InvalidURL, cattrs.BaseValidationError, ValueError, KeyError, TypeError):
        raise ModelError(f"{constants.ENDPOINT} does not answer as a hub does; {_ENDPOINT}") from None


def _status_line(model: CatalogModel, status: int) -> str:
    if status == 401:
        return f"the hub does not take your token for {model.hub} (status 401); set HF_TOKEN to one that is valid"
    if status == 403:
        return f"you may not have {model.hub} (status 403): see {model.licence_page}, and set HF_TOKEN"
    if status == 404:
        return f"{model.hub} lacks a file that the hub has listed (status 404); pull it again"
    return f"the hub answered with status {status} for {model.hub}; what was pulled is kept: try again later"


_ENDPOINT = "is HF_ENDPOINT right?"

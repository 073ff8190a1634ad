"""Documents that the model never sees: those with secrets, those that are too large, and binary ones."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath

MAX_DOCUMENT_BYTES = 2 * 1024 * 1024
_LONGEST_NAME = 1024
_COPY = (
    r"\.(?:bak|backup|copy|old|orig|save|saved|sav|tmp|temp|swp|swo|swn|txt|dpkg-\w{3,8}|rpm\w{3,4}|~\d{1,3}~|\d{1,12})"
)
_BACKUP = re.compile(rf"(?:{_COPY}|~| \(\d{{1,3}}\)| copy|[_-](?:bak|backup|old|copy)){{1,8}}$")
_TOO_LARGE = f"has more than {MAX_DOCUMENT_BYTES // 1024 // 1024} MB"


def why_secret(path: str, patterns: Sequence[str]) -> str | None:
    """Return why the model must not see the file at this path, as a phrase that follows "the file", or None.

    A pattern without a slash is matched with the file's name, one with a slash with the end of its path. Case does not
    matter: `.ENV` is a secret too. Nor does what programs and people add to the name of a copy: `server.key.bak`.
    """
    full_path = PurePath(path).as_posix().lower()
    for one in dict.fromkeys((full_path, _BACKUP.sub("", full_path[-_LONGEST_NAME:]) or full_path)):
        name = one.rpartition("/")[2]
        for pattern in patterns:
            glob = pattern.lower()
            if fnmatchcase(name, glob) or ("/" in glob and fnmatchcase(f"/{one}", f"*/{glob.lstrip('/')}")):
                return f'matches "{pattern}" of the setting midspan.exclude'
    return None


def why_unfit(text: str) -> str | None:
    """Return why a text is not for the model, as a phrase that follows "the file", or None."""
    # Nothing is encoded that is too large by its characters alone.
    if len(text) > MAX_DOCUMENT_BYTES:
        return _TOO_LARGE
    return why_data_unfit(text.encode(errors="replace"))


def why_data_unfit(data: bytes) -> str | None:
    """Return the same for a text in UTF-8, at once for a large one too."""
    if len(data) > MAX_DOCUMENT_BYTES:
        return _TOO_LARGE
    return "is binary: it has NUL bytes" if b"\0" in data else None


SECRET_FILES = (
    # The default of the setting `exclude`. Each group names who says so.
    # Environments: dotenv's and direnv's documentation, and backups that editors leave beside them.
    *(".env", ".env.*", ".env~", "*.env", ".envrc"),
    # Keys and certificates: OpenSSH's and OpenSSL's names, PKCS #8 and #12, Java, PuTTY, OpenVPN, GnuPG, KeePass.
    *("*.pem", "*.key", "*.p8", "*.pfx", "*.p12", "*.keystore", "*.jks", "*.ppk", "*.ovpn", "*.gpg", "*.kdbx"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    # Credentials of tools: git, curl, npm, PyPI, PostgreSQL, MySQL, Apache, boto and s3cmd, Vault, Kubernetes, Docker.
    *("credentials*", ".git-credentials", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd"),
    *(".boto", ".s3cfg", ".vault-token", "kubeconfig", "*.kubeconfig", ".kube/config", ".dockercfg"),
    *(".docker/config.json", ".aws/config"),
    # Variables and state of Terraform, which its documentation calls sensitive.
    *("*.tfvars", "*.tfvars.json", "*.tfstate", "*.tfstate.backup"),
    # Keys of service accounts, as Google's console names them, and what projects call their secrets.
    *("service-account*.json", "secrets.*", "secrets/*", ".secrets/*"),
    # What somebody typed.
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history"),
)

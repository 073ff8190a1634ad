"""Lines that look like a credential: another file's context never gets them.

The forms are those that the issuers document, and that scanners such as detect-secrets and gitleaks look for. A value
in quotes beside a telling name counts if it is neither a word, nor a place for one such as `<token>`.
"""

import re

_ISSUED = (
    r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",  # AWS, access key ids
    r"\bgh[pousr]_[A-Za-z0-9]{36,}",  # GitHub
    r"\bgithub_pat_[A-Za-z0-9_]{60,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",  # GitLab
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",  # Slack
    r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
    r"\bsk-[A-Za-z0-9_-]{32,}",  # OpenAI and Anthropic
    r"\bAIza[0-9A-Za-z_-]{35}",  # Google
    r"\bhf_[A-Za-z0-9]{30,}",  # Hugging Face
    r"\bSG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}",  # SendGrid
    r"\bnpm_[A-Za-z0-9]{36}\b",
    r"\bpypi-[A-Za-z0-9_-]{50,}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.",  # JSON Web Token
    r"://[^\s/:@\"']+:[^\s/:@\"'{}$<]{4,}@",  # a password in a URL
)
_NAMED = (
    r"(?:passw(?:or)?d|passphrase|secret|token|api_?key|auth_?key|access_?key|private_?key|credentials?)\w*[\"']?"
    r"\s*(?::|=>|:?=)\s*[\"'](?P<value>[^\"'\s]{8,})[\"']"
)
_ISSUED_FORM = re.compile("|".join(_ISSUED))
_NAMED_FORM = re.compile(_NAMED, re.IGNORECASE)
# A line without any of these has no such form, and to look for them takes a fiftieth of the time.
_HINTS = (
    "akia",
    "asia",
    "abia",
    "acca",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "sk_",
    "rk_",
    "sk-",
    "aiza",
    "hf_",
    "sg.",
    "npm_",
    "pypi-",
    "eyj",
    "://",
    "passw",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "authkey",
    "auth_key",
    "accesskey",
    "access_key",
    "privatekey",
    "private_key",
    "credential",
)
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)")
_PLACEHOLDER = re.compile(r"[<{$%*]|\.\.\.|x{4}|example|changeme|your|dummy|fake|test", re.IGNORECASE)


def without_credentials(text: str) -> str:
    """Return a text with "\\n" for line ends, with each line that looks like a credential made empty."""
    if "PRIVATE KEY-----" in text:
        text = _KEY_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    lowered = text.lower()
    hints = [hint for hint in _HINTS if hint in lowered]
    if not hints:
        return text
    lines = text.split("\n")
    return "\n".join("" if _has_credential(line, hints) else line for line in lines)


def _has_credential(line: str, hints: list[str]) -> bool:
    lowered = line.lower()
    if not any(hint in lowered for hint in hints):
        return False
    named = _NAMED_FORM.search(line)
    return _ISSUED_FORM.search(line) is not None or (named is not None and _is_secret(named["value"]))


def _is_secret(value: str) -> bool:
    """Return whether a value is no word and no placeholder: it mixes digits with letters."""
    return not _PLACEHOLDER.search(value) and any(map(str.isdigit, value)) and any(map(str.isalpha, value))

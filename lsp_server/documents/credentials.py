"""Lines that look like a credential: another file's context never gets them, nor does the memory.

The forms that issuers give their keys are those of detect-secrets 1.5.0 (Yelp, Apache License 2.0; NOTICE), bounded,
with some that the issuers document. The package itself takes 0.4 seconds to import, for requests, and its expressions
for names go back and forth in a stranger's line. So a value beside a telling name is looked for here: it counts if it
is neither a word, nor a place for one such as `<token>`. A long text in quotes counts by its entropy alone.

No expression here repeats without a bound, and each is tried only where one of its hints is: a text of any kind takes
time in proportion to its length.
"""

import itertools
import math
import re
from collections import Counter, deque
from collections.abc import Iterator

import attrs

from lsp_server.documents.source import normalize_newlines


@attrs.frozen
class _Form:
    """What an issuer's keys look like. A text without one of the hints, in small letters, has none."""

    hints: tuple[str, ...]
    form: re.Pattern[str]

    @classmethod
    def of(cls, form: str, *hints: str) -> "_Form":
        return cls(hints, re.compile(form))


_MIXED = r"(?=[^\s\"'<>${}]{0,60}\d)(?=[^\s\"'<>${}]{0,60}[A-Za-z])[A-Za-z0-9+/=_.!@#%^&*~?,-]{8}"
"""The start of a value with digits and letters."""


def _assigned(name: str) -> Iterator[str]:
    """Yield how a value is given to a name, in small letters."""
    return (name + rest for rest in (":", "=", " =", "':", '":', '" :'))


_FORMS = (
    # From detect-secrets.
    _Form.of(r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}", "a3t", "abia", "acca", "akia", "asia"),
    _Form.of(r"(?:[\s=:\"']|^)AKC[a-zA-Z0-9]{10,100}(?:[\s\"']|$)", "akc"),  # Artifactory
    _Form.of(r"AccountKey=[a-zA-Z0-9+/=]{88}", "accountkey="),  # Azure
    _Form.of(r"gh[pousr]_[A-Za-z0-9_]{36}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _Form.of(r"gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-[A-Za-z0-9_-]{20}", "glpat-", "gldt-", "glft-", "glsoat-"),
    _Form.of(r"gl(?:rt|cbt|imt|ptt|agent|oas)-[A-Za-z0-9_-]{20}", "glrt-", "glcbt-", "glimt-", "glptt-", "glagent-"),
    _Form.of(r"gloas-[A-Za-z0-9_-]{64}|GR1348941[A-Za-z0-9_-]{20}", "gloas-", "gr1348941"),
    _Form.of(r"(?<![\w-])eyJ[A-Za-z0-9_=-]{10,1000}\.eyJ[A-Za-z0-9_=-]{10}", "eyj"),  # JSON Web Token
    _Form.of(r"-us(?<=[0-9a-f]{32}-us)[0-9]{1,2}\b", "-us"),  # Mailchimp
    _Form.of(r":_(?:authToken|auth|password)\s{0,4}=\s{0,4}[^\s$]{8}", ":_auth", ":_password"),  # npm
    _Form.of(r"npm_[A-Za-z0-9]{36}", "npm_"),
    _Form.of(r"sk-(?<!\wsk-)[A-Za-z0-9_-]{32}", "sk-"),  # OpenAI, Anthropic
    _Form.of(r"pypi-[A-Za-z0-9_-]{50}", "pypi-"),
    _Form.of(r"SG\.[A-Za-z0-9_-]{20,64}\.[A-Za-z0-9_-]{20}", "sg."),  # SendGrid
    _Form.of(r"xox[abceoprs]-[A-Za-z0-9-]{10}", "xox"),  # Slack
    _Form.of(r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/]{20}", "hooks.slack.com/"),
    _Form.of(r"sq0(?:csp|atp)-[0-9A-Za-z_-]{22}", "sq0csp-", "sq0atp-"),  # Square
    _Form.of(r"k_(?:live|test)_[A-Za-z0-9]{16}|whsec_[A-Za-z0-9+/]{24}", "k_live_", "k_test_", "whsec_"),  # Stripe
    _Form.of(r"(?<!\d)\d{8,10}:AA[0-9A-Za-z_-]{33}(?![\w-])", ":aa"),  # Telegram
    _Form.of(r"AC[0-9a-f]{32}(?!\w)", "ac"),  # Twilio
    _Form.of(r"SK[0-9a-f]{32}(?!\w)", "sk"),
    _Form.of(r"api\.softlayer\.com/soap/v3(?:\.1)?/[a-z0-9]{64}", "softlayer"),
    _Form.of(r"://[^\s/:@\"'{}$<]{0,100}:[^\s/:@\"'{}$<]{4,200}@", "://"),  # a password in a URL
    # Documented by the issuers themselves.
    _Form.of(r"github_pat_[A-Za-z0-9_]{60}", "github_pat_"),
    _Form.of(r"AIza[0-9A-Za-z_-]{35}|GOCSPX-[\w-]{20}|\bya29\.[\w-]{20}", "aiza", "gocspx-", "ya29."),  # Google
    _Form.of(r"hf_(?<!\whf_)[A-Za-z0-9]{30}", "hf_"),  # Hugging Face
    _Form.of(r"do[opr]_v1_[a-f0-9]{60}", "dop_v1_", "doo_v1_", "dor_v1_"),  # DigitalOcean
    _Form.of(r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{30}", "shpat_", "shpca_", "shppa_", "shpss_"),  # Shopify
    _Form.of(r"dapi[a-f0-9]{32}", "dapi"),  # Databricks
    _Form.of(r"AGE-SECRET-KEY-1[A-Z0-9]{50}", "age-secret-key-1"),
    _Form.of(r"hv[sbr]\.[\w-]{24}", "hvs.", "hvb.", "hvr."),  # Vault
    _Form.of(r"glsa_[A-Za-z0-9]{32}_|ATATT3[\w=-]{50}|PMAK-[a-f0-9]{24}", "glsa_", "atatt3", "pmak-"),
    _Form.of(r"\.atlasv1\.[\w-]{50}|lin_api_[A-Za-z0-9]{30}|dp\.pt\.\w{40}", ".atlasv1.", "lin_api_", "dp.pt."),
    _Form.of(
        r"dckr_pat_[\w-]{20}|NRAK-[A-Z0-9]{26}|sbp_[a-f0-9]{40}|figd_[\w-]{30}", "dckr_pat_", "nrak-", "sbp_", "figd_"
    ),
    _Form.of(
        r"rubygems_[a-f0-9]{40}|tskey-\w{2,10}-[\w-]{16}|pscale_\w{2,8}_[\w-]{30}", "rubygems_", "tskey-", "pscale_"
    ),
    _Form.of(
        r"xkeysib-[a-f0-9]{60}|EAACEdEose0cBA|\bkey-[a-f0-9]{32}\b|\bfo1_[\w-]{40}",
        "xkeysib-",
        "eaaced",
        "key-",
        "fo1_",
    ),
    _Form.of(
        r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{50}|\$[156y]\$[./A-Za-z0-9]{2,20}\$[./A-Za-z0-9]{20}", "$2", "$1$", "$5$", "$6$"
    ),
    # What programs and protocols write, with a value that mixes digits and letters. Most texts have no hint of these.
    _Form.of(rf"uthorization[\"']?\s{{0,4}}[:=,]\s{{0,4}}[\"']?(?i:token|apikey|key) {_MIXED}", "uthorization"),
    _Form.of(
        rf"ookie[\"']?\s{{0,4}}[:=,]\s{{0,4}}[\"']?[\w.-]{{1,40}}={_MIXED}\S{{8}}",
        "cookie:",
        "cookie=",
        "cookie'",
        'cookie"',
    ),
    _Form.of(rf"[?&](?i:sig|signature|x-amz-signature)={_MIXED}\S{{12}}", "?sig", "&sig", "amz-signature="),
    _Form.of(rf"(?:sshpass|login|mysql\w{{0,6}})\b[^\n]{{0,80}}? -p ?{_MIXED}", "sshpass", "docker login", "mysql "),
    _Form.of(rf"curl [^\n]{{0,80}}?(?:-u|--user)[ =][\"']?[\w.@-]{{1,60}}:{_MIXED}", "curl "),
    _Form.of(rf"login[ \t]{{1,4}}\S{{1,60}}[ \t]{{1,4}}password[ \t]{{1,4}}{_MIXED}", "machine "),  # .netrc
    _Form.of(rf":(?:\d{{2,5}}|\*):[\w*-]{{1,60}}:[\w*-]{{1,60}}:{_MIXED}", ":5432:", ":*:"),  # .pgpass
    _Form.of(
        rf"(?:set|setenv)[ \t]{{1,4}}\w{{0,30}}(?i:pass|secret|token|key|pwd)\w{{0,20}}[ \t]{{1,4}}{_MIXED}",
        *("setenv ", "set pass", "set secret", "set token"),
    ),
    _Form.of(rf"(?:passwd|requirepass)[ \t]{{1,4}}{_MIXED}", "passwd ", "requirepass "),
    _Form.of(rf"(?:PASSWORD|RIVATE_KEY|CCESS_KEY)={_MIXED}\S{{0,200}} ", "password=", "private_key=", "access_key="),
    _Form.of(rf"pass(?<![\w.]pass)[\"']?[ \t]{{0,4}}[:=][ \t]{{0,4}}[\"']{_MIXED}", *_assigned("pass")),
    _Form.of(rf"auth[\"'][ \t]{{0,4}}:[ \t]{{0,4}}[\"']{_MIXED}", 'auth":', "auth':", 'auth" :'),  # docker's
    _Form.of(rf"pass(?<![\w.]pass)(?:: ?|=){_MIXED}\S{{0,200}}(?m:$)", "pass:", "pass="),
    _Form.of(rf"_auth(?:: ?|=){_MIXED}\S{{0,200}}(?m:$)", "_auth:", "_auth="),
    _Form.of(r"[Bb]earer[ ]{1,4}(?=[\w.~+/=-]{0,40}\d)[\w.~+/=-]{20}", "bearer "),
    _Form.of(r"[Aa]uthorization[\"']?\s{0,4}[:=,]\s{0,4}[\"']?[Bb]asic[ ]{1,4}[A-Za-z0-9+/=]{12}", "basic "),
)
_NAMES = (
    *("passw", "passphrase", "pwd", "_pass", "-pass", "dbpass", "userpass", "secret", "token", "credential"),
    *("apikey", "api_key", "api-key", "authkey", "auth_key", "auth-key", "accesskey", "access_key", "access-key"),
    *("privatekey", "private_key", "private-key", "signingkey", "signing_key", "signing-key", "encryptionkey"),
    *("encryption_key", "encryption-key", "clientkey", "client_key", "accountkey", "account_key", "servicekey"),
    *("service_key", "masterkey", "master_key", "license_key"),
)
# What may follow a telling name, up to the value: the rest of the name, what closes a key, a type, what assigns.
_VALUE = re.compile(
    r"[\w.-]{0,40}+(?:\[\d{0,6}\])?[\"'`\])]{0,4}+"
    r"(?P<joint>"
    r"(?:[ \t]{0,8}:[ \t]{0,4}|[ \t]{1,8})(?:&?'?\w{0,10}[ \t]{1,2})?[&\w<>\[\]|?.*]{1,40}[ \t]{0,4}=(?![=>])"  # a type
    r"|[ \t]{0,8}(?::=|=>|\?=|[|]{2}=|[!=]={1,2}|=|:|,|->|>|\()(?:[ \t]{0,4}(?:value|default|content)[ \t]{0,2}[:=])?"
    r"|[\"']?[ \t]{0,4}(?:value|default|content)[ \t]{0,2}[:=]"
    r"|[ \t]{1,8})"
    r"(?P<space>[ \t]{0,8}+)"
    r"(?:[\[\]\w]{1,20}\()?"  # Some("..."), String("..."), []byte("...")
    r"(?:[A-Za-z@$#]{0,3}(?P<quote>[\"'`]{1,3})(?P<quoted>[^\"'`\s]{7,300}+)[\"'`]"
    r"|(?P<bare>[A-Za-z0-9+/=_.!@#$%^&*~?-]{8,300}+)(?=[ \t]{0,40}$|[ \t]{1,40}#|[;\"'<&\\]))",
    re.MULTILINE,
)
_LONG = re.compile(r"[\"'`]([A-Za-z0-9+/]{32,200}={0,2})[\"'`]")
_MOST_ENTROPY_CHECKS = 5_000
_LEAST_ENTROPY = 4.5
"""Bits a character, as detect-secrets asks for in base64. A text of words has less."""
_PLACEHOLDER = re.compile(
    r"^[<%{\[]|^\$[\w({]|\$\{|\{\{|\{\w{0,40}\}|%\(|%[sd]|\.\.\.|x{4}|\*{4}|example|changeme|your|dummy|fake|test|"
    r"placeholder|redacted|insert|sample",
    re.IGNORECASE,
)
_BEGIN = re.compile(
    r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-\d", re.IGNORECASE
)
_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|Private-MAC:", re.IGNORECASE)
_OF_KEY = re.compile(r"[\s\"'#*]{0,40}+(?:[A-Za-z0-9+/=]{0,200}+[\s\"'+,;\\n)]{0,8}+$|[A-Z][\w-]{2,30}: )")


def context_text(text: str) -> str:
    """Return what the engine may read of a file that the hole is not in: without lines that look like a credential.

    Its line ends are those on which models are trained.
    """
    return without_credentials(normalize_newlines(text))


def without_credentials(text: str) -> str:
    """Return a text with "\\n" for line ends, with each line that looks like a credential made empty."""
    lowered = text.lower()
    if "private key" in lowered or "putty-user-key" in lowered:
        text = "\n".join(_without_keys(text.split("\n")))
        lowered = text.lower()
    if len(lowered) != len(text):  # a letter whose small form is longer
        lowered = "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
    parts, position = list[str](), 0
    for at in sorted(_found(text, lowered)):
        if at >= position:
            parts.append(text[position : text.rfind("\n", 0, at) + 1])
            position = _line_end(text, at)
    return "".join([*parts, text[position:]])


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _found(text: str, lowered: str) -> Iterator[int]:
    """Yield a place in each line that looks like a credential, maybe more than once."""
    for form in _FORMS:
        if any(hint in lowered for hint in form.hints):
            yield from (match.end() - 1 for match in form.form.finditer(text))
    for name in _NAMES:
        at = lowered.find(name)
        while at >= 0:
            end = at + len(name)
            match = _VALUE.match(text, end) if not lowered.startswith("iz", end) else None  # a tokenizer
            if match is not None and _is_assigned(match, text, at):
                yield at
                end = _line_end(text, at)
            at = lowered.find(name, end)
    for match in itertools.islice(_LONG.finditer(text), _MOST_ENTROPY_CHECKS):
        if _is_mixed(match[1]) and _entropy(match[1]) >= _LEAST_ENTROPY and not _PLACEHOLDER.search(match[1]):
            yield match.start()


def _is_assigned(match: re.Match[str], text: str, at: int) -> bool:
    if match["quote"]:
        return _is_secret(match["quoted"])
    joint, space, value = match["joint"], match["space"], match["bare"]
    if joint.strip() == "":  # --password value
        return "--" in text[max(0, at - 40) : at].rpartition(" ")[2] and _is_secret(value)
    # In code an unquoted value is a name or a call. YAML and shells write values so.
    is_shell = joint in ("=", "?=") and not space
    is_name = value.isidentifier() and not (len(value) >= 32 and _is_mixed(value) and _entropy(value) >= 4)
    is_config = joint in (":", ">") or (joint.strip() == "=" and not is_name)
    return (is_shell or is_config) and _is_secret(value) and _is_random(value)


def _is_secret(value: str) -> bool:
    """Return whether a value is no word and no placeholder: it mixes digits with letters."""
    return not _PLACEHOLDER.search(value) and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_random(value: str) -> bool:
    """Return whether a value without quotes is no name: its letters and digits alternate, or it has other signs."""
    kinds = [character.isdigit() for character in value if character.isalnum()]
    changes = sum(first != second for first, second in itertools.pairwise(kinds))
    has_signs = any(character in "!@#$%^&*~+=?" for character in value)
    return _entropy(value) >= 2.5 and (changes >= 3 or has_signs)


def _is_mixed(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.islower, value)) and any(map(str.isupper, value))


def _entropy(value: str) -> float:
    """Return the Shannon entropy of a text in bits a character."""
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)


def _without_keys(lines: list[str]) -> Iterator[str]:
    """Yield lines, with those of private keys empty: up to the end of a key, or as far as it goes on like one."""
    ends = deque(number for number, line in enumerate(lines) if _END.search(line))
    inside, last = False, -1
    for number, line in enumerate(lines):
        begin = _BEGIN.search(line)
        if begin is not None:
            while ends and ends[0] < number:
                ends.popleft()
            inside, last = True, ends[0] if ends else -1
            if last == number and _END.search(line, begin.end()) is None:
                ends.popleft()
                last = ends[0] if ends else -1
        elif inside and last < 0 and not _OF_KEY.match(line):
            inside = False
        yield "" if inside else line
        if number == last:
            inside, last = False, -1

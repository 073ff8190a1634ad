"""Lines that look like a credential are not put into another file's context."""

import pytest

from lsp_server.documents.credentials import without_credentials

# Written in parts, so that no scanner takes these made-up values for real ones.
_SECRETS = [
    'aws_id = "AKIA' + 'Q3EGRSYT4VNWXZ7B"',
    'github = "ghp_' + "a1B2" * 9 + '"',
    "SLACK=xoxb-" + "123456789012-abcdef",
    "stripe.api_key = 'sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc'",
    'key: "AIza' + "Sy" + "D1e2f3G4h5" * 3 + 'abc"',
    'db = connect("postgres://me:h0rse' + 'battery@db.local/app")',
    'password = "c0rrect' + 'horse"',
    '"api_key": "9f8e7d' + '6c5b4a"',
    'const authToken = "a8f5f167' + 'f44f4964e6c998dee827110c";',
    "jwt = 'eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc'",
]


@pytest.mark.parametrize("line", _SECRETS)
def test_a_line_with_a_credential_becomes_empty(line: str) -> None:
    assert without_credentials(f"above = 1\n    {line}\nbelow = 2\n") == "above = 1\n\nbelow = 2\n"
    assert without_credentials(line) == ""


@pytest.mark.parametrize(
    "line",
    [
        "password = getpass()",
        'password = "correct horse battery"',
        'token = os.environ["GITHUB_TOKEN"]',
        'api_key = "<your key>"',
        'secret = "changeme123"',
        "def token_of(text: str) -> int:",
        'url = "https://example.org/user:name"',
        'url = f"https://{user}:{password}@{host}"',
        'TOKEN_KIND = "identifier"',
        "tokens = tokenizer.encode('12345678 abc')",
    ],
)
def test_ordinary_code_stays(line: str) -> None:
    assert without_credentials(line + "\n") == line + "\n"


def test_a_private_key_goes_whole_and_the_lines_below_stay_where_they_are() -> None:
    key = "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE" + " KEY-----"
    assert without_credentials(f"a\n{key}\nb\n") == "a\n\n\n\n\nb\n"
    assert without_credentials("a\n" + key.partition("abcd")[0]) == "a\n\n\n"

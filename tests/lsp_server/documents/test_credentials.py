"""Lines that look like a credential are not put into another file's context."""

import pytest

from lsp_server.documents.credentials import without_credentials
from lsp_server.exclusion import SECRET_FILES, why_secret

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


_VALUE = "h0rse" + "b4ttery"
_KEY = "x7Kq2m" + "Pz9LwT"
_HEX = "0123456789abcdef"
_HARD = [
    f"password: {_VALUE}",
    f"DB_PASSWORD={_VALUE}!9",
    "export API_TOKEN=9f8e7d" + "6c5b4a3210",
    f"ENV SECRET_KEY={_KEY}",
    f"secret_key: '{_KEY}'",
    f'password = b"{_VALUE}"',
    f"password = rb'{_VALUE}'",
    f'const password: string = "{_VALUE}";',
    f'const TOKEN: &\'static str = "{_VALUE}";',
    f'var password string = "{_VALUE}"',
    f'config["DB_PASSWORD"] = "{_VALUE}"',
    f'os.environ.setdefault("API_TOKEN", "{_VALUE}9")',
    f'setPassword("{_VALUE}")',
    'client.login(password="p4$$' + 'w0rd!9")',
    f'"password" => "{_VALUE}",',
    f":password => '{_VALUE}'",
    f"password := `{_VALUE}`",
    '#define API_KEY "9f8e7d' + '6c5b4a"',
    f'char password[25] = "{_VALUE}";',
    f"<password>{_VALUE}</password>",
    f'<add key="DbPassword" value="{_VALUE}" />',
    '"Server=db;User=sa;Password=h0rse' + '99x1;Trusted=no"',
    'curl -H "Authorization: Bearer abcDEF' + '0123456789abcdef01"',
    "Authorization: Basic dXNlcjpw" + "YXNzd29yZDEyMw==",
    f"mysql --password {_VALUE}",
    f"mysql --password={_VALUE}",
    f"redis://:{_VALUE}@cache:6379/0",
    f"postgres://app:{_VALUE}@db/app",
    f"api-key: {_HEX}{_HEX}",
    f"apiKey: '{_HEX}'",
    'ENCRYPTION_KEY="Zm9vYmFyYmF6' + 'cXV4MTIzNDU2Nzg5MA=="',
    'key = "q1W2e3R4t5Y6u7I8' + 'o9P0aSdFgHjKlZxC"',
    "AccountKey=" + "aB3/" * 22,
    f'token = String("{_VALUE}9")',
    f'val secret = Some("{_KEY}")',
    f'if password == "{_VALUE}":',
    '"client_secret": "GOCSPX-' + 'abcdefghijklmnopqrst"',
    "aws_secret_access_key = wJalrXUtnFEMI" + "/K7MDENG/bPxRfiCYzzzKEY1",
    'bot = "123456789:AA' + 'abcdefghijklmnopqrstuvwxyz0123456"',
    "//registry.npmjs.org/:_authToken=" + "abcdef12-3456-7890",
    'stripe = "whsec_' + 'abcdefghijklmnopqrstuvwx"',
    'SLACK_URL = "https://hooks.slack.com/services/' + 'T00000000/B00000000/XYXYXYXYXYXY"',
    'passphrase ?= "h0rse-' + 'b4ttery"',
    f'pwd: "{_VALUE}"',
    f'twilio = "AC{_HEX}{_HEX}"',
    f"pass: {_VALUE}1!",
    f'pass = "{_VALUE}"',
    f"PGPASSWORD={_VALUE} psql -h db",
    f"sshpass -p {_VALUE} ssh me@host",
    f"curl -s -u admin:{_VALUE} https://host/",
    f"mysql -u root -p{_VALUE} db",
    f"docker login -u me -p {_VALUE}",
    f"machine api.host login me password {_VALUE}",
    f"db:5432:app:me:{_VALUE}",
    f'"auth": "bWU6aDByc2Vi{_KEY}"',
    f"_auth={_KEY}9=",
    f"https://host/x?sig={_KEY}{_KEY}",
    "aws_session_token = q1W2e3R4t5Y6u7I8" + "o9P0aSdFgHjKlZxC",
    f"setenv API_KEY {_KEY}9",
    f"passwd {_VALUE}",
    f"TOKEN?={_KEY}9",
    f"Set-Cookie: sid={_KEY}{_KEY}; HttpOnly",
    f"Authorization: token {_KEY}{_KEY}",
    'hash = "$2b$12$' + "KIXQ1Vn0uXv7oX1s9cQpPu" + 'Jq8oXQ1Vn0uXv7oX1s9cQpPuJq8oXQ1"',
    f'password := []byte("{_VALUE}")',
    "xoxc-" + "1234567890-1234567890-abc",
    "dckr_pat_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n",
    "tskey-auth-" + "kA1b2C3CNTRL-A1b2C3d4E5f6G7h8I9j0",
]


@pytest.mark.parametrize("line", [*_SECRETS, *_HARD])
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
        'tokenizer = AutoTokenizer.from_pretrained("google/mt5-small")',
        "password: user2.password",
        "token = sha256_digest(value2)",
        "secret: SecretStr | None = None",
        "token: int = 12345678",
        "password = request.form['password2']",
        '"GPT2ForTokenClassification",',
        "choices.append('type=triton_BLOCK-M=128_BLOCK-K=32_numstages=4')",
        "export TOKEN=$GITHUB_TOKEN2",
        "  password: ${DB_PASSWORD_1}",
        "assert result.passed == 12345678",
        "curl -u $USER:$PASSWORD1 https://host/",
        "if x: pass  # 12345678ab",
        "set password_file to path1",
    ],
)
def test_ordinary_code_stays(line: str) -> None:
    assert without_credentials(line + "\n") == line + "\n"


@pytest.mark.parametrize("kind", ["RSA ", "", "X25519 ", "OPENSSH ", "PGP ", "ENCRYPTED "])
def test_private_keys_of_all_kinds_go_whole(kind: str) -> None:
    block = " BLOCK" if kind == "PGP " else ""
    begin, end = (f"-----{word} {kind}PRIVATE" + f" KEY{block}-----" for word in ("BEGIN", "END"))
    assert without_credentials(f"a\n{begin}\nVersion: 1\n\nMIIE\n{end}\nb\n") == "a\n\n\n\n\n\nb\n"
    assert without_credentials(f'a = "{begin}\\nMIIE\\n{end}"\nb\n') == "\nb\n"
    lowered = f"{begin}\nMIIE\n{end}".lower()
    assert without_credentials(f"a\n{lowered}\nb\n") == "a\n\n\n\nb\n"


def test_code_that_only_names_the_start_of_a_key_stays() -> None:
    code = (
        'if "-----BEGIN PRIVATE' + ' KEY-----" in text:\n    raise ValueError("a key")\n\n\ndef f(x):\n    return x\n'
    )
    assert without_credentials(code) == code.partition("\n")[2].join(["\n", ""])


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "part",
    [
        *(
            "token",
            "token ",
            "token=",
            "token['",
            "eyJ",
            "eyJ.",
            "eyJaaaaaaaaaaaa.",
            "://a:",
            '"a',
            "'A1a",
            "AKIA",
            "AC",
        ),
        *("-----BEGIN PRIVATE" + " KEY-----", "-----BEGIN PRIVATE" + " KEY-----\n", "-----END PRIVATE" + " KEY-----\n"),
        *(
            "secret\t",
            "pwd:" + " " * 60,
            "pwd=aaaaaaaa1!" + " " * 50,
            "pwd=a1b2c3d4$%",
            "bearer ",
            "-us",
            "İtoken",
            "\n",
        ),
        *("PRIVATE" + " KEY" + "/+'\"n;,\\" * 40 + "\n", "SG." + "a" * 60 + ".", "ghp_aaaa", "123456789:AA", "sk-"),
    ],
)
def test_no_text_takes_longer_than_its_length(part: str) -> None:
    """2 MB of each: `token` 39,000 times on a line once kept the event loop for minutes."""
    text = (part * (2_000_000 // len(part) + 1))[:2_000_000]
    assert without_credentials(text).count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "name",
    [
        "server.key.bak",
        "server.key~",
        "id.pem.old",
        "server.key.1",
        "server.key.20240101",
        "server.key (1)",
        ".env.bak~",
    ],
)
def test_a_copy_of_a_secret_file_is_one_too(name: str) -> None:
    assert why_secret(f"/project/{name}", SECRET_FILES) is not None
    assert why_secret(f"/project/{name}/main.py", SECRET_FILES) is None


def test_a_private_key_goes_whole_and_the_lines_below_stay_where_they_are() -> None:
    key = "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE" + " KEY-----"
    assert without_credentials(f"a\n{key}\nb\n") == "a\n\n\n\n\nb\n"
    assert without_credentials("a\n" + key.partition("abcd")[0]) == "a\n\n\n"

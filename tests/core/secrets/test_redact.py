import random
import string

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.growth import grows_in_step
from tests.support.secrets import load

from foldline.core.ledger.facts.kinds import CheckFact, ConstraintFact, Item, Ledger, MetName
from foldline.core.secrets import redact as module
from foldline.core.secrets.derived import redact_facts
from foldline.core.secrets.redact import redact

# Put together at run time, so that nothing in this file has the shape of a key.
MIX = "a1B2c3D4e5F6g7H8i9J0"
UPPER = "A1B2C3D4E5F6G7H8"
HEX = "0a1b2c3d4e5f6071"
BODY = "MIIEpAIBAAKCAQEA" * 4
PEM = "-----BEGIN {0}PRIVATE KEY-----{1}" + BODY + "{1}" + BODY + "{1}-----END {0}PRIVATE KEY-----"

SECRETS = {
    "AWS key": ["AK" + "IA" + UPPER, "AS" + "IA" + UPPER],
    "GitHub token": ["gh" + "p_" + MIX * 2, "gh" + "s_" + MIX * 2, "github" + "_pat_" + MIX * 3],
    "GitLab token": ["gl" + "pat-" + MIX],
    "Anthropic key": ["sk" + "-ant-api03-" + MIX * 3 + "-_AA"],
    "API key": ["sk" + "-" + MIX * 2, "sk" + "-proj-" + MIX * 4, "sk" + "-or-v1-" + HEX * 4],
    "Stripe key": ["sk" + "_live_" + MIX, "rk" + "_test_" + MIX, "wh" + "sec_" + MIX],
    "Slack token": ["xo" + "xb-123456789012-" + MIX, "xa" + "pp-1-" + UPPER + "-" + MIX],
    "Google key": ["AI" + "za" + (MIX * 2)[:35]],
    "Google token": ["ya" + "29." + MIX * 2],
    "Google secret": ["GOC" + "SPX-" + MIX + "abcdefgh"],
    "npm token": ["np" + "m_" + (MIX * 2)[:36]],
    "PyPI token": ["py" + "pi-" + MIX * 4],
    "Hugging Face token": ["h" + "f_" + MIX * 2],
    "Groq key": ["gs" + "k_" + MIX * 2],
    "xAI key": ["xa" + "i-" + MIX * 3],
    "SendGrid key": ["S" + "G." + MIX + "." + MIX * 2],
    "DigitalOcean token": ["do" + "p_v1_" + HEX * 4],
    "Databricks token": ["da" + "pi" + HEX * 2],
    "JWT": ["ey" + "J" + MIX + ".ey" + "J" + MIX * 2 + "." + MIX],
    "private key": [PEM.format("RSA ", "\n"), PEM.format("", "\\n"), PEM.format("OPENSSH ", "\r\n")],
}
SHAPED = [(kind, secret) for kind, group in SECRETS.items() for secret in group]


@pytest.mark.parametrize(("kind", "secret"), SHAPED, ids=[f"{k}-{i}" for i, (k, _) in enumerate(SHAPED)])
@pytest.mark.parametrize("around", ["{}", "key is {}.", '{{"value": "{}"}}', "`{}`", "x={} y", "\n{}\n"])
def test_a_secret_of_a_known_shape_is_taken_out_wherever_it_stands(
    kind: str, secret: str, around: str
) -> None:
    assert redact(around.format(secret)) == around.format(f"[redacted: {kind}]")


PLACED = [
    ("git clone https://{}@git.example.org/team/app.git", MIX, "token"),
    ("host=db password={} user=app", "48151623", "password"),
    ("postgres://app:{}@db:5432/x", "s3cr3tpw", "password"),
    ("redis://:{}@cache:6379/0", "pass9word", "password"),
    ("Authorization: Bearer {}", MIX, "credentials"),
    ("authorization: Basic {}", "dXNlcjpwYXNzd29yZA==", "credentials"),
    ('{{"Authorization": "Bearer {}"}}', MIX, "credentials"),
    ("curl -H 'Authorization: token {}' u", MIX, "credentials"),
    ("sent the header Bearer {} to it", MIX, "token"),
    ("curl -s -u admin:{} https://example.com", "hunter2", "password"),
    ("AccountKey={};EndpointSuffix=x", MIX * 3 + "==", "key"),
    ("https://x.blob/y?sv=1&sig={}&se=2", MIX + "%2B", "signature"),
    ("https://hooks.slack.com/services/{}", "T0AB12CD3/B0AB12CD3/" + MIX, "Slack webhook"),
    ("DB_PASSWORD={}", "hunter2", "password"),
    ("export STRIPE_SECRET={}", "abcdef-ghijkl", "secret"),
    ("AWS_SECRET_ACCESS_KEY={}", "wJalrXUtn/K7MDENG+bPxRfiCY", "key"),
    ("SECRET_KEY_BASE={}", MIX, "key"),
    ("JWT_SECRET_2='{}'", MIX, "secret"),
    ('{{"api_key": "{}"}}', MIX, "key"),
    ('{{\\"apiKey\\": \\"{}\\"}}', MIX, "key"),
    ("password: {}", "hunter2", "password"),
    ("passphrase = '{}'", "open#sesame", "password"),
    ("mysql --password={} -e x", "hunter2", "password"),
    ("deploy --api-key {} --now", MIX, "key"),
    ("client_secret: {}", MIX, "secret"),
]


@pytest.mark.parametrize(("text", "secret", "kind"), PLACED)
def test_a_secret_is_known_by_its_place_or_its_name(text: str, secret: str, kind: str) -> None:
    assert redact(text.format(secret)) == text.format(f"[redacted: {kind}]")


def test_a_private_key_without_its_end_loses_its_body_and_nothing_else() -> None:
    cut = "-----BEGIN " + "PRIVATE KEY-----\n" + BODY + "\n" + BODY + "\nand then we went on"

    assert redact(cut) == "[redacted: private key]\nand then we went on"


def test_a_long_value_goes_whole() -> None:
    assert redact("API_" + "KEY=" + MIX * 100 + " next") == "API_" + "KEY=[redacted: key] next"


INNOCENT = load("secrets.toml")[1]
PIECES = [secret for _, secret in SHAPED] + [text.format(s) for text, s, _ in PLACED] + INNOCENT
GLUE = [
    "",
    " ",
    "\n",
    "-",
    "_",
    "=",
    ":",
    '"',
    "token=",
    "password: ",
    "://",
    "@",
    "Bearer ",
    "sk-",
    "ſ",
    "İ",
]


@given(st.lists(st.sampled_from(PIECES + GLUE) | st.text(max_size=4), max_size=10).map("".join))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)

    assert redact(once) == once


@given(st.lists(st.sampled_from(SHAPED), min_size=1, max_size=4))
def test_no_shaped_secret_survives_between_words(chosen: list[tuple[str, str]]) -> None:
    text = redact(" and ".join(secret for _, secret in chosen))

    assert not any(secret in text for _, secret in chosen)


@pytest.mark.parametrize(
    "piece",
    [
        "sk-", "eyJ-", "eyJaaaaaaaa.", "://", "-----BEGIN " + "PRIVATE KEY-----", "A" * 100, " ", "Bearer ", "token:",
        "api_key=a", 'password: "', "secret" * 3 + "=", "curl -u a:", "echo a | ", "kind: Secret\ndata:\n",
        "-----END RSA " + "PRIVATE KEY-----", "-----BEGIN " + "PRIVATE KEY-----\n" + BODY + "\n", "Cookie: a=b; ",
        "://a:b@", "?key=", "machine x login y password ", "- name: password\n  value: ", "token\\u003a",
        "password%253D", "\\\n", "a\u200b", "\x1b[0m", "&amp", "UEFTUz1odW50ZXIy", "gh secret set a --body ",
        "aws ssm put-parameter SecureString ", "echo a | gh secret set b ", "a:5432:b:c:d",
        "ghp_", "ghs_1-", "ghp_" + MIX * 2 + "-", "-_", "eyJ" + "a" * 16 + ".", "AQ.Ab",
    ],
)  # fmt: skip
def test_a_hostile_text_takes_time_in_step_with_its_size(piece: str) -> None:
    assert grows_in_step(lambda size: redact(piece * (size // len(piece))), 4_000)


def test_every_string_of_a_ledger_is_redacted_and_the_rest_is_the_same_object() -> None:
    secret = "gh" + "p_" + MIX * 2
    clean = ConstraintFact(text="never push to main", entry="e1")
    ledger = Ledger(
        constraints=(clean,),
        items=(Item("user", f"the token is {secret}", "e1"), Item("said", "I keep it.", "e2")),
        checks=(CheckFact(command=f"curl -H 'X: {secret}'", outcome="ok", entries=("e2",)),),
        names=(MetName("a.py", 0.5),),
    )

    cleaned = redact_facts(ledger)

    assert secret.encode() not in msgspec.json.encode(cleaned)
    assert cleaned.constraints[0] is clean
    assert cleaned.names is ledger.names
    assert cleaned.items[1] is ledger.items[1]
    assert redact_facts(cleaned) is cleaned


@given(st.lists(st.sampled_from(PIECES + GLUE) | st.text(max_size=4), max_size=6))
def test_a_ledger_is_redacted_as_each_of_its_strings_is(pieces: list[str]) -> None:
    ledger = Ledger(constraints=tuple(ConstraintFact(piece, "") for piece in pieces))

    redacted = [redact(piece) for piece in pieces]
    clean = {piece for piece in pieces if redact(piece) == piece}
    assert [fact.text for fact in redact_facts(ledger).constraints] == redacted
    assert [fact.text for fact in redact_facts(ledger, clean).constraints] == redacted


@pytest.mark.parametrize("head", ["fm2_", "glc_", "eyJrIjoi", "sntrys_", "whsec_", "ops_eyJ"])
def test_a_token_is_found_wherever_a_slash_or_a_plus_stands_in_it(head: str) -> None:
    draw = random.Random(11)
    letters = string.ascii_letters + string.digits
    for place in range(0, 60, 4):
        body = "".join(draw.choices(letters, k=120))
        token = f"{head}{body[:place]}/{body[place:]}"
        assert token not in redact(f"see {token} there")
        assert body[-30:] not in redact(f"see {token} there")


@pytest.mark.parametrize("gap", ["\n", " "], ids=["lines", "one line"])
def test_a_secret_is_found_wherever_a_long_text_is_taken_apart(
    monkeypatch: pytest.MonkeyPatch, gap: str
) -> None:
    monkeypatch.setattr(module, "_PIECE", 1_000)
    monkeypatch.setattr(module, "_OVERLAP", 300)
    filler = f"a word and another one{gap}" * 200
    for secret in ("gh" + "p_" + MIX * 2, PEM.format("RSA ", "\n")):
        for at in range(600, 1_400, 23):
            text = f"{filler[:at]}\n{secret}\n{filler[at:]}"
            found = redact(text)
            assert found.count("[redacted: ") == 1
            assert not any(secret[n : n + 12] in found for n in range(len(secret) - 12))
            assert len(found) < len(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://deploy@git.example.org/app.git",
        "ssh://git-deployment-user-production@example.org/x",
        "password=1234",
        "pass=20260131",
        "PASSWORD_MIN=12",
    ],
)
def test_a_plain_user_of_a_url_and_a_short_number_are_no_secrets(text: str) -> None:
    assert redact(text) == text

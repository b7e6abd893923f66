from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.secrets import DISGUISES, disguised, in_disguise, load, load_disguised

from foldline.core.secrets.commands import commanded
from foldline.core.secrets.decoded import as_read
from foldline.core.secrets.named import is_secret_field, named
from foldline.core.secrets.places import placed
from foldline.core.secrets.redact import redact
from foldline.core.secrets.shapes import blocks

FILES = {
    "secrets.toml": 150,
    "secrets_held_out.toml": 40,
    "secrets_templates.toml": 40,
    "secrets_held_out_2.toml": 32,
}
AROUND = {
    "alone": lambda text: text,
    "prose": lambda text: f"Here it is, use it for the next step:\n\n{text}\n\nThanks.",
    "listing": lambda text: "\n".join(f"{n:6}\u2192{line}" for n, line in enumerate(text.split("\n"), 40)),
    "grep": lambda text: "\n".join(
        f"config/app.conf:{n}:{line}" for n, line in enumerate(text.split("\n"), 7)
    ),
    "diff": lambda text: "\n".join(f"+{line}" for line in text.split("\n")),
    "JSON": lambda text: json.dumps({"stdout": text, "exit_code": 0}),
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("place", AROUND)
def test_no_piece_of_a_secret_is_left_wherever_it_stands(place, seed, file):
    secrets = load(file, seed)[0]
    left = {
        secret.name: shown
        for secret in secrets
        if (shown := secret.shown_in(redact(AROUND[place](secret.text))))
    }
    assert not left
    assert len(secrets) >= FILES[file]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("place", AROUND)
def test_what_only_looks_like_a_secret_is_left_as_it_is(place, file):
    innocents = load(file)[1]
    assert not [text for text in innocents if redact(AROUND[place](text)) != AROUND[place](text)]
    assert len(innocents) >= FILES[file]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("place", AROUND)
def test_no_piece_of_a_secret_is_left_whatever_its_disguise(place, disguise, file):
    secrets = [in_disguise(secret, disguise) for secret in load(file)[0]]
    left = {
        secret.name: shown
        for secret in secrets
        if (shown := secret.shown_in(redact(AROUND[place](secret.text))))
    }
    assert not left


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("place", AROUND)
def test_what_only_looks_like_a_secret_is_left_in_any_disguise(place, disguise, file):
    texts = [AROUND[place](disguised(text, disguise)) for text in load(file)[1]]
    assert not [text for text in texts if redact(text) != text]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("place", AROUND)
def test_a_shape_that_is_cut_or_spelled_otherwise_is_found(place, seed):
    secrets = load_disguised("secrets_held_out_2.toml", seed)
    assert not [one.name for one in secrets if one.shown_in(redact(AROUND[place](one.text)))]
    assert len(secrets) == 8


LISTS = {
    "bullets": lambda texts: "\n".join(f"- {text}" for text in texts),
    "in ticks": lambda texts: "\n".join(f"- `{text}`" for text in texts),
    "in quotes": lambda texts: "\n".join(f'{n}. "{text}"' for n, text in enumerate(texts)),
    "JSON": json.dumps,
    "JSON in JSON": lambda texts: json.dumps(json.dumps(texts)),
    "Python": repr,
    "table": lambda texts: "\n".join(f"| {text} | yes |" for text in texts),
    "pairs": lambda texts: json.dumps([{"name": "one", "value": text} for text in texts]),
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("form", LISTS)
def test_a_list_of_secrets_says_none_of_them_and_a_list_of_others_is_left_as_it_is(form, file):
    secrets, innocents = load(file, seed=3)
    for at in range(0, len(secrets), 5):
        some = secrets[at : at + 5]
        text = redact(LISTS[form]([secret.text for secret in some]))
        assert not {one.name: piece for one in some if (piece := one.shown_in(text))}
    for at in range(0, len(innocents), 4):
        text = LISTS[form](innocents[at : at + 4])
        assert redact(text) == text


# ---- shortcuts that skip rules which cannot match: they find what all the rules find


pytestmark = pytest.mark.slow

PIECES = (
    "password", "pass", "Passwort", "pwd", "api_key", "token", "DSN", "connection_string", "WEBHOOK_URL", "pat", "path",
    "cookie_", "auth", "İ", "contraseña", "kind", "Secret", "data", "Private-Lines", "PRIVATE KEY", "-----BEGIN RSA ",
    "-----", "https", "//user", "@host", "?sig", "curl", "-u", "mysql", "-p", "Bearer", "value", "hunter2!Xy",
    "Zk3vQ9dLm2Tx8WpB", "hvs.", "1//0", "sl.", "src/a.py", "</name><value>", "->", "\\n", "\\", "\n", " ", "=", ":", ",",
    '"', "'", "`", ";", "|", ".", "/", "~", "$", "&", "#", "\u2003", "\u2192", "{", "}", "9", "a",
)  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=14).map("".join)


@given(texts)
def test_what_holds_no_separator_holds_no_secret_but_a_shape(text: str) -> None:
    bare = "".join(text.translate(dict.fromkeys(map(ord, "=:\"',>"))).split())
    assert not [span for rule in (blocks, placed, commanded, named) for span in rule(bare)]


@given(texts, texts)
@example("password", "hunter2!Xy")
@example("pass", "hunter2!Xy")
@example("path", "src/a.py")
@example("İpat", "Zk3vQ9dLm2Tx8WpB")
def test_a_field_is_judged_as_where_it_stands_in_a_text(name: str, value: str) -> None:
    said = f'"{as_read(name)}": "'
    spans = named(f'{said}{as_read(value).replace(chr(34), chr(39)).replace(chr(10), " ")}"')
    assert is_secret_field(name, value) == any(span.start <= len(said) for span in spans)

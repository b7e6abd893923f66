"""Shortcuts that skip rules which cannot match: they find what all the rules find."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from foldline.core.secrets.commands import commanded
from foldline.core.secrets.decoded import as_read, encoded
from foldline.core.secrets.keys import blocks
from foldline.core.secrets.named import is_secret_field, named
from foldline.core.secrets.places import placed
from foldline.core.secrets.redact import find
from foldline.core.secrets.shapes import shaped
from foldline.core.secrets.span import joined

pytestmark = pytest.mark.slow

PIECES = (
    *(
        "password",
        "Passwort",
        "pwd",
        "api_key",
        "secret",
        "token",
        "DSN",
        "connection_string",
        "WEBHOOK_URL",
        "pat",
    ),
    *("path", "cookie_", "auth", "İ", "contraseña", "kind", "Secret", "data", "Private-Lines", "PRIVATE KEY"),
    *(
        "-----BEGIN RSA ",
        "-----",
        "https",
        "//user",
        "@host",
        "?sig",
        "curl",
        "-u",
        "mysql",
        "-p",
        "Bearer",
        "value",
    ),
    *(
        "hunter2!Xy",
        "Zk3vQ9dLm2Tx8WpB",
        "gh" + "p_0123456789abcdefghijABCDEFGHIJ012345",
        "hvs.",
        "1//0",
        "sl.",
        "src/a.py",
    ),
    *(
        "</name><value>",
        "->",
        ">",
        "<",
        "\\n",
        '\\"',
        "\n",
        "\t",
        " ",
        "=",
        ":",
        ": ",
        ",",
        '"',
        "'",
        "`",
        ";",
        "|",
    ),
    *(".", "/", "-", "_", "~", "@", "$", "&", "#", "\u2003", "\u2192", "{", "}", "9", "a"),
)
RULES = (shaped, blocks, placed, commanded, named)
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=14).map("".join)


@given(texts)
@settings(max_examples=600)
@example("src/foldline/core/hvs.Zk3vQ9dLm2Tx8WpBZk3vQ9dLm2")
@example("<name>DB_PASSWORD</name><value>hunter2!Xy</value>")
def test_a_text_is_searched_by_every_rule_that_can_match(text: str) -> None:
    assume(as_read(text) == text and not [*encoded(text)])
    every = joined(span for rule in RULES for span in rule(text))
    assert find(text) == (every if len(text) >= 6 else [])


@given(texts)
@settings(max_examples=600)
def test_what_holds_no_separator_holds_no_secret_but_a_shape(text: str) -> None:
    bare = "".join(text.translate(dict.fromkeys(map(ord, "=:\"',>"))).split())
    assert not [span for rule in RULES[1:] for span in rule(bare)]


@given(texts, texts)
@settings(max_examples=600)
@example("password", "hunter2!Xy")
@example("pass", "hunter2!Xy")
@example("path", "src/a.py")
@example("İpat", "Zk3vQ9dLm2Tx8WpB")
def test_a_field_is_judged_as_where_it_stands_in_a_text(name: str, value: str) -> None:
    assume(as_read(name) == name and as_read(value) == value)
    said = f'"{name}": "'
    spans = named(f'{said}{value.replace(chr(34), chr(39)).replace(chr(10), " ")}"')
    assert is_secret_field(name, value) == any(span.start <= len(said) for span in spans)

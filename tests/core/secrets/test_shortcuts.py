"""Shortcuts that skip rules which cannot match: they find what all the rules find."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foldline.core.secrets.commands import commanded
from foldline.core.secrets.decoded import as_read
from foldline.core.secrets.named import is_secret_field, named
from foldline.core.secrets.places import placed
from foldline.core.secrets.shapes import blocks

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

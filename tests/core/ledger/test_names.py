"""Names in texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.core.ledger.text import names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open `src/app/main.py` now", [("path", "app/main.py")]),
        ("see /home/ann/shop/src/app/main.py:12:4", [("path", "app/main.py")]),
        ("Dockerfile.dev and setup.cfg.", [("path", "setup.cfg")]),
        ("at ./run.sh and ~/notes.md", [("path", "run.sh"), ("path", "notes.md")]),
        ("(https://example.org/a?b=1).", [("url", "https://example.org/a?b=1")]),
        ("commit 3f5d7634c2 done", [("id", "3f5d763")]),
        ("123e4567-e89b-12d3-a456-426614174000", [("id", "123e4567-e89b-12d3-a456-426614174000")]),
        ("fix ABC-123 and #4567", [("id", "ABC-123"), ("id", "#4567")]),
        ("port 8431, in 2024, of 10000", [("number", "8431")]),
        (
            "call parse_rows, parseRows and HttpClient",
            [("identifier", "parse_rows"), ("identifier", "parseRows"), ("identifier", "HttpClient")],
        ),
        ("client.fetchPage() with --no-cache", [("identifier", "fetchPage"), ("flag", "--no-cache")]),
        ("src/a/long_name.go-14-\tvalue", [("path", "a/long_name.go")]),
        ("nothing to see here, and/or there 12 < 15", [("path", "and/or")]),
        ("2>/dev/null", []),
        ("已修改文件app/login.py，端口8431を確認", [("path", "app/login.py"), ("number", "8431")]),
        ("Ошибка в src/app/main.py", [("path", "app/main.py")]),
    ],
)
def test_what_is_found(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(name.kind, name.key) for name in names.find(text)] == expected


def test_two_spellings_of_one_file_share_a_key() -> None:
    found = names.find("/home/ann/shop/src/app/main.py or ./src/app/main.py or app/main.py")
    assert [name.key for name in found] == ["app/main.py"] * 3


@given(st.text(max_size=400))
def test_any_text_can_be_read_and_names_stand_in_it(text: str) -> None:
    for name in names.find(text):
        assert name.text in text
        assert name.key


def test_a_long_line_is_read_to_a_bound() -> None:
    line = "some_name " * 500_000
    assert len(names.find(line)) <= names.MAX_LINE // len("some_name ") + 1

from __future__ import annotations

import pytest

from foldline.core.lab.entities import Entity, Reading, TextOffsets, entities, phrases, quoted


def found(text):
    return {(entity.kind, entity.key) for entity in entities(text)}


@pytest.mark.parametrize(
    ("text", "kind", "key"),
    [
        ("see https://example.org/a/b?c=1.", "url", "https://example.org/a/b?c=1"),
        ("in src/app/routes.py now", "path", "app/routes.py"),
        ("in ~/code/app/routes.py now", "path", "app/routes.py"),
        ("./routes.py", "path", "routes.py"),
        ("open settings.toml, please", "path", "settings.toml"),
        ("id 0d7a5f7e-7b1c-4e8a-9a52-3c3f6f1d2b11", "id", "0d7a5f7e-7b1c-4e8a-9a52-3c3f6f1d2b11"),
        ("commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "id", "9fceb02"),
        ("fixes SHELF-123", "id", "SHELF-123"),
        ("in #4711", "id", "#4711"),
        ("booking K9XZ4Q", "id", "K9XZ4Q"),
        ("row user_group_00042", "id", "user_group_00042"),
        ("port 48213", "number", "48213"),
        ("call rate_limit_key here", "identifier", "rate_limit_key"),
        ("call rateLimitKey here", "identifier", "rateLimitKey"),
        ("a RateLimiter", "identifier", "RateLimiter"),
        ("run it --dry-run", "flag", "--dry-run"),
    ],
)
def test_what_a_text_names(text, kind, key):
    assert (kind, key) in found(text)


@pytest.mark.parametrize(
    "text", ["in 2026", "of 2000", "1024 bytes", "plain words alone", "", "a/b", "--ab", "and/or"]
)
def test_what_names_nothing(text):
    assert {key for kind, key in found(text) if kind in ("number", "flag", "identifier")} == set()


def test_the_stem_of_a_file_is_no_second_thing():
    assert found("src/rate_limit.py") == {("path", "src/rate_limit.py")}


def test_a_hash_is_known_by_the_digits_that_git_shows():
    assert found("9fceb02d0ae") == found("9fceb02") == {("id", "9fceb02")}
    assert found("abcdefab") == set()  # a word


def test_phrases_have_several_words():
    assert set(phrases("grep \"rate limit\" and 'single'")) == {Entity("quote", "rate limit")}
    assert quoted("say 'single' \"rate limit\"") == {Entity("quote", "single"), Entity("quote", "rate limit")}


def names(text, kind, key, common=frozenset()):
    return Reading(text, common).names(Entity(kind, key))


def test_a_name_stands_as_a_word_of_its_own():
    assert names("the rate_limit_key.", "identifier", "rate_limit_key")
    assert not names("the rate_limit_keys", "identifier", "rate_limit_key")
    assert not names("my_rate_limit_key", "identifier", "rate_limit_key")
    assert names("my_rate_limit_key, rate_limit_key", "identifier", "rate_limit_key")
    assert names("-rate_limit_key-", "identifier", "rate_limit_key")
    assert names("9fceb02d0ae", "id", "9fceb02")
    assert not names("port 482137", "number", "48213")


def test_a_distinctive_file_name_will_do_without_its_folder():
    assert names("in limiter.py:12", "path", "app/limiter.py")
    assert not names("in other/limits.py", "path", "app/limiter.py")
    assert not names("in a.py", "path", "app/a.py")  # too short to identify
    assert not names("in README.md", "path", "app/README.md", common=frozenset(("README.md",)))
    assert names("in app/README.md", "path", "app/README.md", common=frozenset(("README.md",)))


def test_where_a_path_is_spelt():
    reading = Reading("limiter.py and app/limiter.py", frozenset())
    entity = Entity("path", "app/limiter.py")
    assert list(reading.mentions(entity)) == [0, 19]
    assert list(reading.spelt(entity)) == [15]
    assert list(Reading("limiter.py", frozenset()).spelt(entity)) == [0]


def test_places_find_their_text():
    places = TextOffsets(["abc", "", "de"])
    assert [places.index(at) for at in (0, 2, 4, 5, 6)] == [0, 0, 1, 2, 2]

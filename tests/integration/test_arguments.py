"""What callers give is refused by its name, before anything is read or written."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import foldline
from foldline.core.measure.window import Window
from foldline.errors import DialectError, InputError, PolicyError
from foldline.stores import MemoryStore, register

MESSAGES = [{"role": "user", "content": "Hello."}]
SHARED = [
    ({"summarizer": object()}, "summarizer = <object"),
    ({"summarizer": foldline.summarizers.OfflineSummarizer}, "summarizer = <class"),
    ({"counter": len}, "counter = <built-in function len>: give an object with a `name`"),
    ({"counter": None}, "counter = None"),
    ({"tools": "x"}, "tools = 'x': give a list of the definitions"),
    ({"tools": ["read"]}, "tools = ['read']"),
    ({"tools": [None]}, "tools = [None]: give a list of the definitions"),
    ({"window": Window(0)}, "window = Window(context=0, "),
    ({"window": Window(9_000, input=-1)}, "window = Window("),
    ({"window": Window(9_000, output=0)}, "window = Window("),
    ({"window": Window("many")}, "window = Window("),
    ({"system": 4}, "system = 4"),
    ({"model": 4}, "model = 4: give a name such as"),
    ({"model": ""}, "model = ''"),
    ({"window": "8k"}, "window = '8k': give a whole number"),
    ({"policy": 4}, "policy = 4: give a Policy"),
    ({"dialect": 4}, "dialect = 4"),
]


@pytest.mark.parametrize(("given", "message"), SHARED)
def test_wrong_types_are_refused_by_name(given, message):
    for call in (
        lambda: foldline.compact(MESSAGES, **given),
        lambda: foldline.open("memory://", "s", **given),
        lambda: foldline.open_sync("memory://", "s", **given),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            call()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "8000"}, "target = '8000'"),
        ({"instructions": 4}, "instructions = 4"),
        ({"model": "nope"}, "model = 'nope' cannot write summaries: unknown provider 'nope'"),
    ],
)
async def test_compact_refuses_what_only_it_takes(given, message):
    with pytest.raises(InputError, match=re.escape(message)):
        foldline.compact(MESSAGES, **given)
    with pytest.raises(InputError, match=re.escape(message)):
        await foldline.acompact(MESSAGES, **given)


ONE_CALL = [
    foldline.compact,
    lambda messages: asyncio.run(foldline.acompact(messages)),
    lambda messages: foldline.convert(messages, to="openai-chat"),
]


@pytest.mark.parametrize("call", ONE_CALL)
@pytest.mark.parametrize("messages", [[], MESSAGES, [{"role": "system", "content": "You help."}]])
def test_a_list_that_is_short_or_empty_comes_back(call, messages):
    done = call(messages)
    assert (done.messages, done.dialect, done.warnings) == (messages, "openai-chat", ())


@pytest.mark.parametrize("call", ONE_CALL)
@pytest.mark.parametrize("messages", [None, "Hello.", MESSAGES[0]])
def test_what_is_no_list_of_messages_is_refused(call, messages):
    with pytest.raises(DialectError, match="expected a list of messages, each an object with a role"):
        call(messages)


def test_a_name_that_is_none_is_refused_with_the_known_ones():
    with pytest.raises(DialectError, match="unknown dialect None; known are anthropic, "):
        foldline.convert(MESSAGES, to=None)
    with pytest.raises(PolicyError, match="no policy None; there are foldline, "):
        foldline.preset(None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "8000"}, "target = '8000'"),
        ({"target": 0}, "target = 0"),
        ({"instructions": 4}, "instructions = 4"),
    ],
)
async def test_a_session_refuses_what_it_cannot_fold_by(given, message):
    async with foldline.open("memory://", "s") as session:
        await session.append(*MESSAGES)
        for fold in (session.compact, session.preview):
            with pytest.raises(InputError, match=message):
                await fold(**given)


def test_a_known_model_without_a_provider_gives_its_window():
    done = foldline.compact(MESSAGES, model="claude-sonnet-4-5")
    assert (done.messages, done.warnings) == (MESSAGES, ())


@pytest.mark.parametrize("session", [4, None, ""])
def test_a_session_is_named_by_a_text(session):
    with pytest.raises(InputError, match=f"session = {session!r}: give the session's id"):
        foldline.open("memory://", session)


def test_a_store_is_a_url_or_an_object_with_its_methods():
    for wrong, message in (
        (object(), "store = <object"),
        (MemoryStore, "store = <class"),
        (4, "store = 4: give a store's URL"),
        (
            "mongodb://here",
            "unknown store URL 'mongodb://here': it must begin with one of sqlite://, memory://",
        ),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            foldline.open(wrong, "s")


async def test_a_store_that_is_given_is_used_and_stays_open():
    store = MemoryStore()
    async with foldline.open(store=store, session="s") as session:
        await session.append(*MESSAGES)
    async with foldline.open(store, "s") as session:
        assert await session.history() == MESSAGES
    assert await store.leaf("s") is not None


async def test_a_scheme_that_is_registered_is_opened_by_its_function(monkeypatch):
    from foldline.stores import urls

    monkeypatch.setattr(urls, "_SCHEMES", dict(urls._SCHEMES))
    opened = []

    def opener(url):
        opened.append(url)
        return MemoryStore()

    register("shelf", opener)
    async with foldline.open("shelf://a/b", "s") as session:
        await session.append(*MESSAGES)
    assert opened == ["shelf://a/b"]
    with pytest.raises(InputError, match=r"one of sqlite://, memory://.*, shelf://"):
        foldline.open("mongodb://here", "s")
    for scheme, function in ((4, opener), ("no scheme://", opener), ("fine", "x")):
        with pytest.raises(InputError):
            register(scheme, function)


def test_every_public_name_is_there_and_documented():
    page = (Path(__file__).parents[2] / "docs" / "library.md").read_text(encoding="utf-8")
    for name in (*foldline.__all__, *foldline._MODULES):
        assert getattr(foldline, name) is not None
        assert f"`{name}`" in page, name

"""Messages as a line of a list shows them, and as they are sent; what sessions are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

import msgspec

from foldline.core.ledger.text.origin import prompts
from foldline.core.log.codec import encode_utf8, pretty
from foldline.core.log.entries import Said
from foldline.service.api.history import ShownMessage, ShownPart
from foldline.service.tenants import Tenant
from foldline.session.recall import HIDDEN
from foldline.stores import search
from foldline.stores.base import SessionInfo, Store

LINE: Final = 160  # characters of a line
FIRST: Final = 20  # entries in which the user's first words are looked for
SHOWN: Final = 80  # characters of them
KNOWN: Final = 10_000  # sessions whose beginning is remembered
_BREAK: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\n")  # an escaped line break in JSON
_FOLDERS: Final = re.compile(
    r"(?<![\w.])/?(?:[\w.@+~-]+/){2,}(?=[\w.@+~-]+/[\w.@+~-])"
)  # all but a path's end
_WORD: Final = re.compile(r"([^\W_]+)")
_INNER: Final = ("text", "content", "parts", "output", "tool_calls", "function")


class SentMessage(msgspec.Struct, frozen=True):
    """A message of the view: who says it, how it begins, and its JSON, broken where its texts break."""

    role: str
    start: str
    json: str


def who(message: ShownMessage) -> str:
    """Return who speaks: user, program, assistant, tool, system."""
    if message.parts and all(part.kind == "result" for part in message.parts):
        return "tool"
    if message.role == "developer":
        return "system"
    return "program" if message.injected else message.role


def start(message: ShownMessage) -> str:
    """Return how a message begins: its words, else the calls that it makes, else what came back."""
    kinds = ("text", "call", "result", "thinking", "media", "other")
    part = min(message.parts, key=lambda one: kinds.index(one.kind), default=None)
    if part is None:
        return "(empty)"
    return called(part) if part.kind == "call" else line(part.text or part.name)


def called(call: ShownPart) -> str:
    """Return a call as a line: the tool, and what it is given, long paths by their ends."""
    try:
        given = msgspec.json.decode(call.text, type=dict[str, Any])
    except msgspec.DecodeError:
        given = {"": call.text}
    values: list[Any] = list(given.values())
    words = " ".join(one if isinstance(one, str) else encode_utf8(one).decode() for one in values)
    return line(f"{call.name} {_FOLDERS.sub('…/', words[: 8 * LINE])}")


def sent(message: dict[str, Any]) -> SentMessage:
    """Return a message of any dialect as it is sent."""
    text = pretty(message).decode()
    role = str(message.get("role") or message.get("type") or "")
    words = " ".join(_words(message)) or "(thinking alone)"
    told = f"{role}, results" if _answers(message) else role
    return SentMessage(told, line(words), _BREAK.sub(r"\1\\n\n", text))


def _answers(message: dict[str, Any]) -> bool:
    """Whether a message that is sent as the user's holds what tools answered, as Anthropic's API wants it."""
    content = message.get("content")
    blocks = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
    return bool(blocks) and all(one.get("type") == "tool_result" for one in blocks)


def _words(value: Any) -> Iterator[str]:
    """Yield the words in a message, a block or a list of blocks, and the calls with what they are given."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _words(one)
    elif isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        given = found.get("input", found.get("arguments"))
        if given is not None and "name" in found:
            words = given if isinstance(given, str) else encode_utf8(given).decode()
            yield f"{found['name']} {words}"
        for name in _INNER:
            yield from _words(found.get(name))


def largest(messages: Iterable[ShownMessage], most: int) -> list[tuple[ShownMessage, str]]:
    """Return the largest of the messages that are sent, and a line of each: of a result, what was called."""
    found: list[tuple[ShownMessage, str]] = []
    newest = ""
    for one in messages:
        calls = [called(part) for part in one.parts if part.kind == "call"]
        newest = "; ".join(calls) or newest
        if one.how not in HIDDEN:
            found.append((one, line(newest) if who(one) == "tool" and newest else start(one)))
    return sorted(found, key=lambda pair: -pair[0].tokens)[:most]


def line(text: str, most: int = LINE) -> str:
    """Return a text as one line of so many characters."""
    whole = " ".join(text[: 8 * most].split())
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def marked(text: str, query: str) -> list[tuple[str, bool]]:
    """Return a text in pieces: those that a word of the query begins are marked."""
    asked = [term for word in search.words(query) for term in search.terms(word)]
    pieces = _WORD.split(text)
    return [
        (
            piece,
            number % 2 == 1 and any(term.startswith(one) for term in search.terms(piece) for one in asked),
        )
        for number, piece in enumerate(pieces)
        if piece
    ]


# ---- what a session without a title is called: by the words with which its user began it


class Beginnings:
    """How sessions began: what was found is remembered, also where the session begins anew."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, float], str] = {}

    async def names(self, tenant: Tenant, sessions: Iterable[SessionInfo]) -> dict[str, str]:
        """Return what each session is called, by its id: its title, else how it began, else its id."""
        return {info.id: info.title or await self._found(tenant, info) or info.id for info in sessions}

    async def _found(self, tenant: Tenant, info: SessionInfo) -> str:
        key = (tenant.name, info.id, info.created)
        found = self._known.get(key, "")
        if not found and info.messages:
            found = await beginning(tenant.store, info.id)
        if found:
            self._known[key] = found
            if len(self._known) > KNOWN:
                self._known.pop(next(iter(self._known)))
        return found


async def beginning(store: Store, session: str) -> str:
    """Return the first words of the user's in a session; "" where it begins with none."""
    first: list[Said] = []
    async for entry in store.path(session):
        if isinstance(entry, Said):
            first.append(entry)
        if len(first) == FIRST:
            break
    return next((line(span, SHOWN) for _, spans in prompts(first) for span in spans), "")

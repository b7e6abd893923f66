"""The log: an append-only tree of entries, chained by their ids.

Two keys. `id` chains every entry: a hash over the parent's id and the entry's payload, times, durations and
derived figures left out; it proves that a log is intact. `said_key` chains only the messages, over a normal
form without the differences that clients introduce (cache marks, nulls, thinking, usage); it recognises a
history that is sent again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from foldline.core.log.codec import decode, encode
from foldline.core.log.entries import Boundary, Compacted, Entry, Lifted, Pruned, Said
from foldline.core.log.messages import Media, Message, Opaque

E = TypeVar("E", bound=Entry)


def digest(data: bytes) -> str:
    """Return the 128-bit BLAKE2b hash as 32 hex characters (RFC 7693)."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def entry_id(entry: Entry) -> str:
    """Return the id that the entry must have: a hash over its parent and payload, without times."""
    if isinstance(entry, Said):
        hashed: Entry = msgspec.structs.replace(entry, id="", at=None, tokens=0, said_key="")
    elif isinstance(entry, Compacted | Pruned):
        receipt = msgspec.structs.replace(entry.receipt, created_at="", duration_ms=0.0)
        hashed = msgspec.structs.replace(entry, id="", at=None, receipt=receipt)
    else:
        hashed = msgspec.structs.replace(entry, id="", at=None)
    return digest(encode(hashed))


def chained(entry: E, parent: str | None) -> E:
    """Return the entry with this parent and its id."""
    placed = msgspec.structs.replace(entry, parent=parent, id="")
    return msgspec.structs.replace(placed, id=entry_id(placed))


def said(
    message: Message, *, parent: str | None, said_key: str = "", tokens: int = 0, at: float | None = None
) -> Said:
    """Make the entry of a message under `parent`; `said_key` is the key of the newest message before it."""
    entry = Said(id="", parent=None, message=message, said_key="", tokens=tokens, at=at)
    placed = chained(entry, parent)
    return msgspec.structs.replace(placed, said_key=next_said_key(said_key, message))


def next_said_key(before: str, message: Message) -> str:
    """Return the key of a message said after the one whose key is `before` ("" for the first)."""
    return digest(encode([before, normal_form(message)]))


def normal_form(message: Message) -> list[Any]:
    """Return what must match for messages to be equal: role, text, calls with arguments, results, media."""
    results = [[result.call_id, result.text] for result in message.results]
    text = message.text.strip()
    role = "tool" if results and not text and message.role == "user" else message.role
    calls = [[call.id, call.name, _sorted(call.arguments)] for call in message.calls]
    media = [_sorted(msgspec.to_builtins(part)) for part in message.parts if isinstance(part, Media)]
    opaque = [
        _sorted(part.data) for part in message.parts if isinstance(part, Opaque) and "cache" not in part.kind
    ]
    return [role, text, calls, results, media, opaque]


def resent_key(message: Message) -> str:
    """Return a key that recognises a message when a client sends it again, in any form.

    It covers the ids and names of a reply's calls, or the words of a reply without calls; never thinking,
    usage, cache marks or spaces. For other messages it covers what `said_key` does.
    """
    if message.role != "assistant":
        return digest(encode(normal_form(message)))
    if message.calls:
        return digest(encode(["calls", *([call.id, call.name] for call in message.calls)]))
    return digest(encode(["reply", " ".join(message.text.split())]))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        items: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {key: _sorted(items[key]) for key in sorted(items) if key != "cache_control"}
    if isinstance(value, list):
        return [_sorted(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def verify(entries: Iterable[Entry]) -> list[str]:
    """Return a line for each entry with a wrong id, a missing parent or a wrong said-key.

    Entries come in the order of appending: parents before children.
    """
    problems: list[str] = []
    keys: dict[str | None, str] = {None: ""}  # entry id -> the said-key of the newest message up to it
    for entry in entries:
        if entry_id(entry) != entry.id:
            problems.append(f"{entry.id}: the content does not match the id")
        if entry.parent not in keys:
            problems.append(f"{entry.id}: its parent {entry.parent} is missing or comes later")
        before = keys.get(entry.parent, "")
        keys[entry.id] = before
        if isinstance(entry, Said):
            keys[entry.id] = entry.said_key
            if entry.said_key != next_said_key(before, entry.message):
                problems.append(f"{entry.id}: its said-key does not follow the one before")
        if isinstance(entry, Said) and entry.message.native is not None:
            try:
                decode(entry.message.native.raw)
            except ValueError:
                problems.append(f"{entry.id}: its native payload is not JSON")
    return problems


# ---- the boundaries of a path


class Boundaries(msgspec.Struct, frozen=True):
    """What the boundaries of a path mean for its view; `fold`, `newest` and `changes` are indices of entries.

    `ids` are those of all boundaries, including undone ones and liftings. `fold` is the newest fold in effect
    (None: everything is kept), `prunes` those in effect after it, `newest` the newest boundary in effect that
    is no exclusion. At `changes` the view changed last. `undone` are the ids of what is lifted: boundaries
    and replies with a server's compaction.
    """

    ids: tuple[str, ...]
    fold: int | None
    prunes: tuple[Pruned, ...]
    newest: int | None
    changes: frozenset[int]
    undone: frozenset[str] = frozenset()


def read_boundaries(path: Sequence[Entry]) -> Boundaries:
    """Read the boundaries of a path."""
    lifted = undone(path)
    in_effect = [
        (place, entry)
        for place, entry in enumerate(path)
        if isinstance(entry, Compacted | Pruned) and entry.id not in lifted
    ]
    fold = next((place for place, entry in reversed(in_effect) if isinstance(entry, Compacted)), None)
    newest = (
        place for place, entry in reversed(in_effect) if not (isinstance(entry, Pruned) and entry.excludes)
    )
    newest_at = in_effect[-1][0] if in_effect else None
    newest_lifting = next((i for i in range(len(path) - 1, -1, -1) if isinstance(path[i], Lifted)), None)
    return Boundaries(
        ids=tuple(entry.id for entry in path if isinstance(entry, Boundary)),
        fold=fold,
        prunes=tuple(
            entry
            for place, entry in in_effect
            if isinstance(entry, Pruned) and (fold is None or place > fold)
        ),
        newest=next(newest, None),
        changes=frozenset(place for place in (newest_at, newest_lifting) if place is not None),
        undone=frozenset(lifted),
    )


def undone(path: Iterable[Entry]) -> set[str]:
    """Return the ids of what is lifted on a path: undone and not redone."""
    state = {entry.target: entry.lifted for entry in path if isinstance(entry, Lifted)}
    return {target for target, lifted in state.items() if lifted}

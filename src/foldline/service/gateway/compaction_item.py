"""The compaction item that the gateway answers with, and what it stands for when a client sends it again.

Codex compacts on the server's side: it has the server answer with one `compaction` item, whose content only
the server can read, and sends that in place of the history from then on. Ours names the session and the entry
up to which it stands, and holds the view itself, so that it can be read where that session is not stored.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from foldline.core.log.codec import encode_utf8

MARK: Final = "foldline-1."  # how the content of an item of ours begins; the number is that of its form
TRIGGER: Final = "compaction_trigger"  # the item by which a client asks for one
_elements = msgspec.json.Decoder(list[msgspec.Raw])


class Sealed(msgspec.Struct, frozen=True):
    """What an item of ours stands for: an entry of a session, and the view there in native messages."""

    session: str
    at: str
    view: list[msgspec.Raw]


class Resumed(msgspec.Struct, frozen=True):
    """A history that goes on from an item of ours: the elements of the request before it, and behind it."""

    session: str
    at: str
    before: list[bytes]
    behind: list[bytes]


def sealed(session: str, at: str, view: Sequence[Any]) -> dict[str, Any]:
    """Return the item that stands for a view."""
    content = encode_utf8({"session": session, "at": at, "view": list(view)})
    name = f"cmp_{at[:24] or 'view'}"
    return {"type": "compaction", "id": name, "encrypted_content": MARK + base64.b64encode(content).decode()}


def unsealed(element: bytes | msgspec.Raw) -> Sealed | None:
    """Return what an item of ours stands for; None for any other element."""
    if MARK.encode() not in bytes(element):
        return None
    try:
        item = msgspec.json.decode(element)
        given = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        content = given.get("encrypted_content") if given.get("type") != "message" else None
        if not isinstance(content, str) or not content.startswith(MARK):
            return None
        return msgspec.json.decode(base64.b64decode(content.removeprefix(MARK), validate=True), type=Sealed)
    except (ValueError, binascii.Error, RecursionError):
        return None


def is_trigger(element: bytes) -> bool:
    """Return whether an element asks for a compaction item."""
    if TRIGGER.encode() not in element:
        return False
    item = msgspec.json.decode(element)
    return isinstance(item, dict) and cast("dict[str, Any]", item).get("type") == TRIGGER


def unfolded(elements: Sequence[bytes]) -> tuple[list[bytes], Resumed | None]:
    """Return the elements with the views that items of ours stand for, and how the history goes on from one.

    The newest counts: it stands for those before it as well.
    """
    found = [(place, one) for place, raw in enumerate(elements) if (one := unsealed(raw)) is not None]
    if not found:
        return list(elements), None
    ours, (newest, item) = {place for place, _ in found}, found[-1]
    before = [raw for place, raw in enumerate(elements[:newest]) if place not in ours]
    behind = list(elements[newest + 1 :])
    view = [bytes(one) for one in item.view]
    return [*before, *view, *behind], Resumed(item.session, item.at, before, behind)


def readable(raw: bytes) -> bytes:
    """Return a request's body with the views in place of items of ours: no upstream can read those."""
    if MARK.encode() not in raw:
        return raw
    try:
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        elements, resumed = unfolded([bytes(one) for one in _elements.decode(fields.get("input", b"[]"))])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return raw
    if resumed is None:
        return raw
    return encode_utf8({**fields, "input": [msgspec.Raw(one) for one in elements]})

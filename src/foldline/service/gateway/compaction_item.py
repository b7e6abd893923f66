"""The compaction item that the gateway returns, and the view it is replaced with when a client sends it.

Codex compacts on the server: the server returns one `compaction` item that only it can read, and Codex sends
that instead of the history from then on. Ours has the session, the entry that it goes up to, and the view
itself, so that it works even where the session is not stored.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from foldline.core.log.codec import encode_utf8

MARK: Final = "foldline-1."  # prefix of our items' content; the number is the format's version
TRIGGER: Final = "compaction_trigger"  # the item with which a client requests one
_elements = msgspec.json.Decoder(list[msgspec.Raw])


class ItemContent(msgspec.Struct, frozen=True):
    """The content of our item: a session, an entry in it, and the view there as native messages."""

    session: str
    at: str
    view: list[msgspec.Raw]


class ResumedHistory(msgspec.Struct, frozen=True):
    """A history that continues from our item: the request's elements before and after it."""

    session: str
    at: str
    before: list[bytes]
    after: list[bytes]


def make_item(session: str, at: str, view: Sequence[Any]) -> dict[str, Any]:
    """Return the compaction item for a view."""
    content = encode_utf8({"session": session, "at": at, "view": list(view)})
    name = f"cmp_{at[:24] or 'view'}"
    return {"type": "compaction", "id": name, "encrypted_content": MARK + base64.b64encode(content).decode()}


def read_item(element: bytes | msgspec.Raw) -> ItemContent | None:
    """Return the content of our item; None for any other element."""
    if MARK.encode() not in bytes(element):
        return None
    try:
        item = msgspec.json.decode(element)
        fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        content = fields.get("encrypted_content") if fields.get("type") != "message" else None
        if not isinstance(content, str) or not content.startswith(MARK):
            return None
        raw = base64.b64decode(content.removeprefix(MARK), validate=True)
        return msgspec.json.decode(raw, type=ItemContent)
    except (ValueError, binascii.Error, RecursionError):
        return None


def is_trigger(element: bytes) -> bool:
    """Return whether an element requests a compaction item."""
    if TRIGGER.encode() not in element:
        return False
    item = msgspec.json.decode(element)
    return isinstance(item, dict) and cast("dict[str, Any]", item).get("type") == TRIGGER


def expand_items(elements: Sequence[bytes]) -> tuple[list[bytes], ResumedHistory | None]:
    """Replace our items with the view of the newest one, which includes the earlier ones.

    The second value is how the history continues from it; None without such an item.
    """
    items = {place: item for place, raw in enumerate(elements) if (item := read_item(raw)) is not None}
    if not items:
        return list(elements), None
    newest, content = items.popitem()
    before = [raw for place, raw in enumerate(elements[:newest]) if place not in items]
    after = list(elements[newest + 1 :])
    view = [bytes(message) for message in content.view]
    return [*before, *view, *after], ResumedHistory(content.session, content.at, before, after)


def expand_body(raw: bytes) -> bytes:
    """Return a request's body with our items replaced by their view: no upstream can read them."""
    if MARK.encode() not in raw:
        return raw
    try:
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        elements, history = expand_items([bytes(one) for one in _elements.decode(fields.get("input", b"[]"))])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return raw
    if history is None:
        return raw
    return encode_utf8({**fields, "input": [msgspec.Raw(one) for one in elements]})

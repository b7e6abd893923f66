"""A request that is sent again because the worker that had it died: whether it was done before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foldline.core.log.entries import Said
from foldline.core.log.messages import Message
from foldline.session.session import Session

BEHIND: Final = 256  # entries behind a leaf among which the messages are looked for


async def stored_before(session: Session, leaf: str | None, messages: Sequence[Any]) -> list[str] | None:
    """Return the entries of messages that stand behind a leaf already; None where they do not."""
    path = await session.store.tail(session.id, len(messages) + BEHIND)
    place = next((n for n, entry in enumerate(path) if entry.id == leaf), -1)
    said = [entry for entry in path[place + 1 :] if isinstance(entry, Said)]
    for first in range(len(said) - len(messages) + 1):
        here = said[first : first + len(messages)]
        if all(_same(entry.message, message) for entry, message in zip(here, messages, strict=True)):
            return [entry.id for entry in here]
    return None


def _same(stored: Message, given: Any) -> bool:
    if isinstance(given, Message):
        return (stored.role, stored.parts) == (given.role, given.parts)
    return stored.native is not None and msgspec.json.decode(stored.native.raw) == given

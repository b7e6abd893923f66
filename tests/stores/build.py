"""Small logs for the tests of the stores."""

from __future__ import annotations

import random
import string

from foldline.core.log.codec import encode
from foldline.core.log.entries import Checkpoint, Compacted, Entry, Lifted, Noted, Receipt, Said
from foldline.core.log.log import chained, said
from foldline.core.log.messages import Message, Native, Text
from foldline.stores import Store


def incompressible_text(size: int) -> str:
    """So many characters that no compression makes much shorter."""
    return "".join(random.Random(size).choices(string.digits + string.ascii_letters + "+/;:!?-_", k=size))


def message(text: str, role: str = "user") -> Message:
    native = Native("openai-chat", encode({"role": role, "content": text}))
    return Message(role, (Text(text),), native=native)


def say(
    before: Entry | None, text: str, *, role: str = "user", at: float | None = None, key: str = ""
) -> Said:
    """A message after `before`; `key` is the newest said-key where `before` is no message."""
    key = before.said_key if isinstance(before, Said) else key
    return said(
        message(text, role), parent=before.id if before else None, said_key=key, tokens=len(text), at=at
    )


async def path_of(store: Store, session: str = "s") -> list[Entry]:
    return [entry async for entry in store.path(session)]


def talk(before: Entry | None, *texts: str) -> list[Said]:
    """Messages, one after the other."""
    found: list[Said] = []
    for text in texts:
        before = say(before, text)
        found.append(before)
    return found


def compact(
    before: Entry, first_kept: str | None, *, leading: tuple[str, ...] = (), quoted: tuple[str, ...] = ()
) -> Compacted:
    checkpoint = Checkpoint(text="what was done", summary="done")
    entry = Compacted(
        id="",
        parent=None,
        checkpoint=checkpoint,
        receipt=Receipt("manual"),
        first_kept=first_kept,
        leading=leading,
        quoted=quoted,
    )
    return chained(entry, before.id)


def imported(before: Entry, summary: str) -> Compacted:
    """The boundary of another agent, which keeps nothing before it."""
    checkpoint = Checkpoint(text=f"Before: {summary}", summary=summary)
    return chained(
        Compacted(id="", parent=None, checkpoint=checkpoint, receipt=Receipt("imported")), before.id
    )


def lift(before: Entry, target: str, *, lifted: bool = True) -> Lifted:
    return chained(Lifted(id="", parent=None, target=target, lifted=lifted), before.id)


def title(before: Entry, text: str) -> Noted:
    return chained(Noted(id="", parent=None, kind="title", data={"title": text}), before.id)

"""What a caller appends, of any dialect and in any form, read into messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from foldline.core.log.messages import Message
from foldline.dialects import decode_all, get
from foldline.dialects.dialect_of import dialect_of, in_dialect, reply_dialect


def read(
    messages: Sequence[Any], *, dialect: str | None, usual: Callable[[], str], seed: str
) -> list[Message]:
    """Decode messages; one that any dialect could have written is read as those around it are.

    `dialect` is the one that the session was opened with, `usual` names that of its view, and `seed` makes ids for
    what has none.
    """
    own = [None if isinstance(message, Message) else dialect_of(message) for message in messages]
    common = dialect or next((name for name in reversed(own) if name), None) or usual()
    read: list[Message] = []
    run: list[Any] = []  # messages of one dialect, not read yet
    whose = ""
    for message, known in zip(messages, own, strict=True):
        reply = None if isinstance(message, Message) else reply_dialect(message)
        name = "" if isinstance(message, Message) or reply else known or common
        if run and name != whose:
            read += decode_all(run, whose)
            run = []
        whose = name
        if isinstance(message, Message):
            read.append(message)
        elif reply is not None:
            read.append(get(reply).decode_reply(message))
        else:
            run.append(in_dialect(message, name, f"{seed} {len(read) + len(run)}"))
    return [*read, *(decode_all(run, whose) if run else ())]

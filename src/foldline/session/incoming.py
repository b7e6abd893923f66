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
    """Decode messages; one that fits several dialects is read as those around it are.

    `dialect` is the one that the session was opened with, `usual` names that of its view, and `seed` makes
    ids for what has none.
    """
    known = [None if isinstance(message, Message) else dialect_of(message) for message in messages]
    common = dialect or next((name for name in reversed(known) if name), None) or usual()
    decoded: list[Message] = []
    run: list[Any] = []  # messages of one dialect, which are decoded together
    run_dialect = ""
    for message, own in zip(messages, known, strict=True):
        reply = None if isinstance(message, Message) else reply_dialect(message)
        name = "" if isinstance(message, Message) or reply else own or common
        if run and name != run_dialect:
            decoded += decode_all(run, run_dialect)
            run = []
        run_dialect = name
        if isinstance(message, Message):
            decoded.append(message)
        elif reply is not None:
            decoded.append(get(reply).decode_reply(message))
        else:
            run.append(in_dialect(message, name, f"{seed} {len(decoded) + len(run)}"))
    return [*decoded, *(decode_all(run, run_dialect) if run else ())]

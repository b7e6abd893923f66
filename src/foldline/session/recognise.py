"""When a message that is sent again is the stored one: clients write the same thing differently."""

from __future__ import annotations

from foldline.core.log.codec import encode
from foldline.core.log.log import digest, normal_form
from foldline.core.log.messages import Message


def likeness(message: Message) -> str:
    """Return the key of a message by itself: equal for the forms in which clients send it again.

    Of a reply with calls their ids and names count, of one without its words; thinking, usage, cache marks
    and spaces never do. Of all others what `said_key` counts.
    """
    if message.role != "assistant":
        return digest(encode(normal_form(message)))
    if message.calls:
        return digest(encode(["calls", *([call.id, call.name] for call in message.calls)]))
    return digest(encode(["reply", " ".join(message.text.split())]))

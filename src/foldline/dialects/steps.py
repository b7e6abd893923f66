"""Split a message that holds the results of its own calls into the messages other dialects write for it."""

from __future__ import annotations

import msgspec

from foldline.core.log.messages import Message, Part
from foldline.core.log.steps import own_results, steps


def split_steps(message: Message) -> list[Message]:
    """Split an assistant message with results into its steps, each followed by its results.

    Any other message comes back alone. The new messages keep the native form of the one they came from.
    """
    own = own_results(message)
    if not own:
        return [message]
    found: list[Message] = []
    for start, stop in steps(message):
        said: list[Part] = [message.parts[index] for index in range(start, stop) if index not in own]
        told: list[Part] = [message.parts[index] for index in range(start, stop) if index in own]
        if said:
            found.append(msgspec.structs.replace(message, parts=tuple(said)))
        if told:
            found.append(msgspec.structs.replace(message, role="tool", parts=tuple(told)))
    return found

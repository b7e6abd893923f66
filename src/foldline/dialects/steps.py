"""A message that holds the results of its own calls, as the messages that other dialects write for it."""

from __future__ import annotations

import msgspec

from foldline.core.log.messages import Message, Part
from foldline.core.log.steps import own_results, steps


def apart(message: Message) -> list[Message]:
    """Split an assistant message with results into what was said step by step, each step's results behind it.

    Any other message comes back alone. The messages that come of one keep its native form beside them.
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

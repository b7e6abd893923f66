"""Lists of native messages, as callers give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.core.log.messages import Message
from foldline.core.measure.tokens import Counter
from foldline.dialects import decode_placed, detect
from foldline.dialects.anthropic.write import OPENING
from foldline.loading.chain import Source, chain
from foldline.loading.loaded import Loaded
from foldline.loading.own_checkpoint import with_checkpoint


def from_messages(messages: Sequence[Any], counter: Counter, *, dialect: str | None = None) -> Loaded:
    """Read a list of native messages; a checkpoint of ours at its head becomes a boundary again.

    Raises DialectError naming the message that is not of the dialect.
    """
    name = dialect or detect(messages)
    placed = decode_placed(messages, name)
    decoded = [message for _, message in placed]
    source = Source(decoded, name)
    loaded = chain(with_checkpoint(source, counter) or Source(decoded, name, _order(decoded)), counter)
    loaded.number_by([place for place, _ in placed])
    loaded.given = messages
    return loaded


def _order(messages: Sequence[Message]) -> Sequence[int]:
    """Leave out the user message that we put before an assistant's where Anthropic wants one."""
    opened = bool(messages) and messages[0].role == "user" and messages[0].text == OPENING
    return range(int(opened), len(messages))

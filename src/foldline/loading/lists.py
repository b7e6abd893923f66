"""Lists of native messages, as callers give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.core.log.messages import Message
from foldline.core.measure.tokens import Counter
from foldline.dialects.anthropic.write import OPENING
from foldline.loading.chain import Source, chain
from foldline.loading.loaded import Loaded
from foldline.loading.own_checkpoint import with_checkpoint
from foldline.transcripts.forms.lists import decode_list


def from_messages(messages: Sequence[Any], counter: Counter, *, dialect: str | None = None) -> Loaded:
    """Read a list of messages; a checkpoint of ours at its head becomes a boundary again.

    Those of another library's form become Chat Completions, and a warning says so.
    Raises DialectError naming the message that is not of the dialect.
    """
    found = decode_list(messages, dialect)
    decoded = [message for _, message in found.placed]
    source = Source(decoded, found.dialect)
    loaded = chain(
        with_checkpoint(source, counter) or Source(decoded, found.dialect, _order(decoded)), counter
    )
    loaded.number_by([place for place, _ in found.placed])
    loaded.given = None if found.translated else messages
    loaded.warnings = found.warnings
    return loaded


def _order(messages: Sequence[Message]) -> Sequence[int]:
    """Leave out the user message that we put before an assistant's where Anthropic wants one."""
    opened = bool(messages) and messages[0].role == "user" and messages[0].text == OPENING
    return range(int(opened), len(messages))

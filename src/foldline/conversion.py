"""A list of messages in another dialect: `foldline.convert`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from foldline.arguments import check
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState, native_items
from foldline.dialects import get
from foldline.folding import repairs
from foldline.loading import from_messages


class Converted(msgspec.Struct, frozen=True):
    """Messages of another dialect, ready to send.

    `system` is the system prompt, where that dialect takes it separately.
    `warnings` name what the dialect could not carry, and what was left out, moved or added so that the list
    is valid.
    """

    messages: list[Any]
    dialect: str
    system: Any = None
    warnings: tuple[str, ...] = ()


def convert(messages: Sequence[Any], to: str, *, dialect: str | None = None, system: Any = None) -> Converted:
    """Write a list of native messages in the dialect `to`; nothing is shortened.

    `messages` are dicts or SDK objects, of `dialect` (default: found out); `system` is the system prompt that
    stands beside them. Messages that already are of that dialect come back as they are. Raises DialectError
    for what is no message, InputError for a dialect there is none of.
    """
    check(to=to, dialect=dialect, system=system)
    target = get(to)
    loaded = from_messages(messages, OFFLINE, dialect=dialect)
    view = ViewState(loaded.entries, counter=OFFLINE)
    leading = [] if system is None else [(get(loaded.dialect).decode_system(system), ())]
    rendered = target.render([*leading, *native_items(view.view())], whole=True)
    warnings = (*loaded.warnings, *repairs(loaded, view), *rendered.warnings)
    return Converted(rendered.messages, to, rendered.system, warnings)

"""Convert a list of messages to another dialect: `foldline.convert`."""

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

    `system` is the system prompt if that dialect takes it separately. `warnings` list what the dialect could
    not represent, and what was left out, moved or added to make the list valid.
    """

    messages: list[Any]
    dialect: str
    system: Any = None
    warnings: tuple[str, ...] = ()


def convert(messages: Sequence[Any], to: str, *, dialect: str | None = None, system: Any = None) -> Converted:
    """Write a list of native messages in the dialect `to`; nothing is shortened.

    `messages` are dicts or SDK objects in `dialect` (default: detected); `system` is their separate system
    prompt. Messages that are already in that dialect are returned unchanged. Raises DialectError for a value
    that is not a message, InputError for an unknown dialect.
    """
    check(to=to, dialect=dialect, system=system)
    target = get(to)
    loaded = from_messages(messages, OFFLINE, dialect=dialect)
    view = ViewState(loaded.entries, counter=OFFLINE)
    leading = [] if system is None else [(get(loaded.dialect).decode_system(system), ())]
    rendered = target.render([*leading, *native_items(view.view())], whole=True)
    warnings = (*loaded.warnings, *repairs(loaded, view), *rendered.warnings)
    return Converted(rendered.messages, to, rendered.system, warnings)

"""Render a growing view incrementally: only new messages are rendered, and all are copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from foldline.core.view_items import Item, MessageItem, native_items
from foldline.dialects.cache_marks import written_marks
from foldline.dialects.dialect import get, native_dialect


class NativeView:
    """The native messages of a session's view.

    Callers get deep copies, so changing them affects neither other lists nor the log.
    """

    def __init__(self) -> None:
        self.marked = False  # a message may contain a cache mark
        self._dialect: str = ""
        self._items: Sequence[Item] = ()
        self._rendered = 0
        self._messages: list[dict[str, Any]] = []
        self._nested: list[int] = []  # messages with values other than text: a shallow copy would share them
        self._extends = False

    def messages(self, dialect: str, items: Sequence[Item], *, shared: bool = False) -> list[Any]:
        """Return the view as native messages; an item list from an earlier call may only have grown.

        `shared`: return the messages without copying; they must not be changed. Raises DialectError.
        """
        renderer = get(dialect)
        new = items[self._rendered :]
        same = items is self._items and dialect == self._dialect
        independent = all(_is_native(item, dialect) for item in new) and not any(map(_is_open, new))
        if same and self._extends and self._messages and independent:
            last = self._messages.pop()  # the next message may be merged into it
            rendered = renderer.more([last, *renderer.render(native_items(new)).messages])
        else:
            rendered = renderer.render(native_items(items), whole=True).messages
            self._messages, self._nested, self.marked = [], [], False
            self._items, self._dialect = items, dialect
            self._extends = _can_extend(items, dialect)
        self._append(rendered)
        self._rendered = len(items)
        return list(self._messages) if shared else self._copies()

    def _append(self, messages: Sequence[dict[str, Any]]) -> None:
        for place, message in enumerate(messages, len(self._messages)):
            flat = all(isinstance(value, str) for value in message.values())
            if not flat and place not in self._nested[-1:]:
                self._nested.append(place)
        self._messages += messages
        self.marked = self.marked or written_marks(messages) > 0

    def _copies(self) -> list[Any]:
        copies: list[Any] = [message.copy() for message in self._messages]
        for place in self._nested:
            copies[place] = deep_copy(self._messages[place])
        return copies


def _is_native(item: Item, dialect: str) -> bool:
    """Return whether an item is rendered as received, independent of its neighbours."""
    if not isinstance(item, MessageItem):
        return False
    message = item.entry.message
    native = message.native
    return native is not None and native.dialect == dialect and message.role not in {"system", "developer"}


def _is_open(item: Item) -> bool:
    """Return whether the rendered form of an item depends on later ones."""
    if not isinstance(item, MessageItem):
        return False
    dialect = native_dialect(item.entry.message)
    return dialect is not None and dialect.is_open(item.entry.message)


def _can_extend(items: Sequence[Item], dialect: str) -> bool:
    """Return whether native messages can be appended without changing the rendered ones.

    The last item must be final, and no call may have an id generated for this dialect: a later native call
    could have the same id.
    """
    if not items or not _is_native(items[-1], dialect) or _is_open(items[-1]):
        return False
    encoded = (item for item in items if not _is_native(item, dialect))
    return not any(item.message.calls for item in encoded)


def deep_copy(value: Any) -> Any:
    """Copy a JSON value deeply."""
    return msgspec.to_builtins(value, builtin_types=(bytes,))  # in C, faster than copy.deepcopy

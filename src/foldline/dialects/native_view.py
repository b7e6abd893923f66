"""Render a growing view turn by turn: a turn costs what it adds, plus one copy of the messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from foldline.core.view import Item, MessageItem, native_items
from foldline.dialects.cache_marks import written_marks
from foldline.dialects.dialect import get, native_dialect


class NativeView:
    """The native messages of one session's view.

    Callers get deep copies: they may change their messages at any time without changing another list or
    the log.
    """

    def __init__(self) -> None:
        self.marked = False  # a message of the view may hold a mark for a provider's cache
        self._dialect: str = ""
        self._items: Sequence[Item] = ()
        self._known = 0
        self._messages: list[dict[str, Any]] = []
        self._nested: list[int] = []  # messages with values other than text; a shallow copy would share those
        self._extends = False

    def messages(self, dialect: str, items: Sequence[Item], *, shared: bool = False) -> list[Any]:
        """Return the view as native messages; a list of items seen before may only have grown.

        With `shared` they are not copied: nobody may change them. Raises DialectError as `render` does.
        """
        spoken = get(dialect)
        new = items[self._known :]
        same = items is self._items and dialect == self._dialect
        alone = all(_is_native(item, dialect) for item in new) and not any(map(_is_open, new))
        if same and self._extends and self._messages and alone:
            last = self._messages.pop()  # what follows may join it
            rendered = spoken.more([last, *spoken.render(native_items(new)).messages])
        else:
            rendered = spoken.render(native_items(items), whole=True).messages
            self._messages, self._nested, self.marked = [], [], False
            self._items, self._dialect = items, dialect
            self._extends = _may_extend(items, dialect)
        self._take(rendered)
        self._known = len(items)
        return list(self._messages) if shared else self._copies()

    def _take(self, messages: Sequence[dict[str, Any]]) -> None:
        for at, message in enumerate(messages, len(self._messages)):
            if not all(isinstance(value, str) for value in message.values()) and at not in self._nested[-1:]:
                self._nested.append(at)
        self._messages += messages
        self.marked = self.marked or written_marks(messages) > 0

    def _copies(self) -> list[Any]:
        made: list[Any] = [message.copy() for message in self._messages]
        for at in self._nested:
            made[at] = deep_copy(self._messages[at])
        return made


def _is_native(item: Item, dialect: str) -> bool:
    """Return whether an item is rendered as received, whatever is around it."""
    if not isinstance(item, MessageItem):
        return False
    message = item.entry.message
    native = message.native
    return native is not None and native.dialect == dialect and message.role not in {"system", "developer"}


def _is_open(item: Item) -> bool:
    """Return whether what is sent of an item depends on what follows."""
    dialect = native_dialect(item.entry.message) if isinstance(item, MessageItem) else None
    return dialect is not None and isinstance(item, MessageItem) and dialect.is_open(item.entry.message)


def _may_extend(items: Sequence[Item], dialect: str) -> bool:
    """Return whether native messages may follow without changing what is there.

    The next message must not be able to join the last one, and no call may have an id made for this
    dialect: a later native call could need that id.
    """
    if not items or not _is_native(items[-1], dialect) or _is_open(items[-1]):
        return False
    encoded = (item for item in items if not _is_native(item, dialect))
    return not any((i.entry.message if isinstance(i, MessageItem) else i.message).calls for i in encoded)


def deep_copy(value: Any) -> Any:
    """Copy a JSON value so that nothing mutable is shared."""
    return msgspec.to_builtins(value, builtin_types=(bytes,))  # new lists and dicts all the way down, in C

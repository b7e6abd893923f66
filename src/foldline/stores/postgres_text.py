"""Any Python text in a PostgreSQL `text`, which holds no NUL and no half surrogate: both are escaped.

A backslash is doubled, so that nothing else changes and any text comes back as it was.
"""

from __future__ import annotations

import re
from typing import Final

from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.rows import TupleRow
from psycopg.types.string import StrDumperUnknown, TextLoader

_SPECIAL: Final = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPED: Final = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


def escaped(text: str) -> str:
    """Return a text as it is stored."""
    return _SPECIAL.sub(lambda found: r"\\" if found[0] == "\\" else f"\\u{ord(found[0]):04x}", text)


def unescaped(stored: str) -> str:
    """Return the text that `escaped` stored."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", stored)


class _EscapedDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escaped(obj) if _SPECIAL.search(obj) else obj)


class _EscapedLoader(TextLoader):
    def load(self, data: Buffer) -> bytes | str:
        text = super().load(data)
        return unescaped(text) if isinstance(text, str) and "\\" in text else text


def escape_text(connection: Connection[TupleRow]) -> None:
    """Have every text that goes through a connection escaped, both ways."""
    connection.adapters.register_dumper(str, _EscapedDumper)
    connection.adapters.register_loader("text", _EscapedLoader)

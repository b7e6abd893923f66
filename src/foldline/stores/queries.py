"""The SQL of the stores: numbered migrations and named queries, in one folder of `sql/` for each database."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final, Literal

Dialect = Literal["sqlite", "postgres"]
_SQL: Final = Path(__file__).parent / "sql"
_NAME: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT: Final = re.compile(r"--[^\n]*")


@cache
def named_queries(dialect: Dialect) -> dict[str, str]:
    """Return the queries of a database by name; each takes its values as `:name`."""
    text = (_SQL / dialect / "queries.sql").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    return {
        name: " ".join(_COMMENT.sub("", query).split())
        for name, query in zip(parts[::2], parts[1::2], strict=True)
    }


@cache
def migrations(dialect: Dialect) -> list[str]:
    """Return the migration scripts in order; a database of version n has had the first n."""
    return [script.read_text(encoding="utf-8") for script in sorted((_SQL / dialect).glob("[0-9]*.sql"))]

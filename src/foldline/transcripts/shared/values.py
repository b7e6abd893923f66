"""Read single values from foreign records without trusting their types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def moment(value: Any) -> float | None:
    """Return Unix time in seconds from ISO 8601 text, seconds or milliseconds (above 1e11); else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value / 1000 if value > 1e11 else float(value)
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def text_or(value: Any, default: str = "") -> str:
    """Return the value if it is a string, else the default."""
    return value if isinstance(value, str) else default


def count_or_none(value: Any) -> int | None:
    """Return the value if it is a whole number of at least 0, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def items(value: Any) -> list[Any]:
    """Return the value if it is a JSON list, else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]

"""Settings written back: the user's own file, its comments and its order kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from foldline.config import FILE, Settings
from foldline.errors import InputError
from foldline.files import PRIVATE, content, written
from foldline.policies import MOST


def save(home: Path, table: str, values: Mapping[str, Any]) -> Path:
    """Set keys of a table in the user's settings, None takes one away; return the file.

    Raises InputError where the file cannot be read or written, or a value is none that the key may have.
    """
    try:
        import tomlkit  # noqa: PLC0415  an optional extra
    except ModuleNotFoundError as error:
        raise InputError("settings are written with tomlkit: pip install 'foldline[chat]'") from error
    file = home / FILE
    try:
        document = tomlkit.parse(content(file, MOST).decode() if file.exists() else "")
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: {error}") from error
    own: Any = document.setdefault(table, tomlkit.table())
    for key, value in values.items():
        if value is None:
            own.pop(key, None)
        else:
            own[key] = value
    try:
        msgspec.convert(document.unwrap(), Settings, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{table}: {error}; nothing was saved") from error
    _write(file, tomlkit.dumps(document))  # pyright: ignore[reportUnknownMemberType]
    return file


def _write(file: Path, text: str) -> None:
    """Write a file, all of it or nothing; private to its owner. One that is a link stays one."""
    try:
        with written(file.resolve(), mode=PRIVATE) as half:
            half.write(text.encode())
    except (OSError, InputError) as error:
        raise InputError(f"{file} cannot be written: {error}") from error

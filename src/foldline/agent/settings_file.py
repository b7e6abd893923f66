"""Write to the user's settings file, and keep its comments and order."""

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
    """Set keys of a table in the user's settings (None removes a key); return the file.

    Raises InputError for an invalid value, or a file that cannot be read or written.
    """
    try:
        import tomlkit  # noqa: PLC0415  an optional extra
    except ModuleNotFoundError as error:
        raise InputError("writing settings needs tomlkit: pip install 'foldline[chat]'") from error
    file = home / FILE
    try:
        document = tomlkit.parse(content(file, MOST).decode() if file.exists() else "")
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: {error}") from error
    fields: Any = document.setdefault(table, tomlkit.table())
    for key, value in values.items():
        if value is None:
            fields.pop(key, None)
        else:
            fields[key] = value
    try:
        msgspec.convert(document.unwrap(), Settings, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{table}: {error}; nothing was saved") from error
    text: str = tomlkit.dumps(document)  # pyright: ignore[reportUnknownMemberType]
    try:
        with written(file.resolve(), mode=PRIVATE) as stream:  # a link stays one
            stream.write(text.encode())
    except (OSError, InputError) as error:
        raise InputError(f"{file} cannot be written: {error}") from error
    return file

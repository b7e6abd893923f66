"""Settings files of other tools, edited by path: TOML with its comments, JSON with its order and indent.

What comes out is read again and must be what was meant, or the file is refused and left as it is: JSON with
comments, with a key twice, or with something in the way.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import MutableMapping, Sequence
from copy import deepcopy
from typing import Any, Final, cast

from foldline.errors import InputError

Place = tuple[str, ...]  # the keys that lead to a value
Table = MutableMapping[str, Any]
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


class _Absent:
    """What stands nowhere."""


ABSENT: Final = _Absent()


def edited(name: str, text: str, changes: Sequence[tuple[Place, Any]]) -> str:
    """Return a file's text with values set at paths, in order; ABSENT takes one out.

    Tables above a value that was taken out stay. Raises InputError, naming the file, where it cannot be
    edited safely.
    """
    meant = values(name, text)
    for path, value in changes:
        _set(name, meant, path, value)
    if meant == values(name, text):
        return text
    made = _toml(name, text, changes) if name.endswith(".toml") else _json(text, meant)
    if values(name, made) != meant:
        raise InputError(f"{name} cannot be edited safely: it is left as it is")
    return made


def values(name: str, text: str) -> dict[str, Any]:
    """Return what a file holds; an empty one holds nothing. Raises InputError where it cannot be read."""
    try:
        if name.endswith(".toml"):
            return tomllib.loads(text)
        found: Any = json.loads(text or "{}", object_pairs_hook=_once, parse_constant=_refuse)
    except ValueError as error:
        more = ", or has comments, which would be lost" if not name.endswith(".toml") else ""
        raise InputError(
            f"{name} cannot be edited: it is not understood ({error}){more}; it is left as it is"
        ) from error
    if not isinstance(found, dict):  # an object
        raise InputError(f"{name} cannot be edited: it holds no table of settings; it is left as it is")
    return cast("dict[str, Any]", found)


def value_at(table: Any, path: Place) -> Any:
    """Return the value at a path; ABSENT where there is none."""
    for key in path:
        if not isinstance(table, MutableMapping) or key not in table:
            return ABSENT
        table = cast("Table", table)[key]
    return table


def _set(name: str, table: Table, path: Place, value: Any) -> None:
    """Set a value, or take it out; tables on the way are made."""
    *above, last = path
    for key in above:
        if key not in table and value is ABSENT:
            return
        inner = table.setdefault(key, {})
        if not isinstance(inner, MutableMapping):
            raise InputError(f"{name} cannot be edited: {key!r} is no table there; it is left as it is")
        table = cast("Table", inner)
    if value is ABSENT:
        table.pop(last, None)
    else:
        table[last] = deepcopy(value)


def _json(text: str, meant: dict[str, Any]) -> str:
    indent = _INDENT.search(text)
    made = json.dumps(meant, indent=indent[1] if indent else 2, ensure_ascii=False)
    made = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", made)  # half an emoji has no UTF-8
    return made + ("\n" if text.endswith("\n") or not text else "")


def _toml(name: str, text: str, changes: Sequence[tuple[Place, Any]]) -> str:
    try:
        import tomlkit  # noqa: PLC0415  an optional extra
    except ModuleNotFoundError as error:
        raise InputError(f"{name} is edited with tomlkit: pip install 'foldline[mcp]'") from error
    document = tomlkit.parse(text)
    for path, value in changes:
        *above, last = path
        table: Any = document
        for depth, key in enumerate(above, 1):
            if key not in table:
                table[key] = tomlkit.table(is_super_table=depth < len(above))
            table = table[key]
        if value is ABSENT:
            table.pop(last, None)
        else:
            table[last] = value
    return tomlkit.dumps(document)  # pyright: ignore[reportUnknownMemberType]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")

"""Edit settings files of other tools by path: TOML, YAML and `.env` keep their comments, JSON its order.

The result is parsed again and compared with the intended values. A file that cannot be edited safely is
refused: JSON with comments or duplicate keys, or a value where a table is needed.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tomllib
from collections.abc import Callable, MutableMapping, Sequence
from copy import deepcopy
from operator import setitem
from typing import Any, Final, cast

from foldline.errors import InputError

YAML: Final = (".yaml", ".yml")
Place = tuple[str, ...]  # the keys of a value, from the outermost table on
Table = MutableMapping[str, Any]
Changes = Sequence[tuple[Place, Any]]
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_VARIABLE: Final = re.compile(
    r"^(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(.*?)[ \t\r]*(?:\n|\Z)", re.MULTILINE
)


class _Absent:
    """The value at a path where there is none."""


ABSENT: Final = _Absent()


def edited(name: str, text: str, changes: Changes) -> str:
    """Return a file's text with values set at paths, in order; ABSENT removes one that is there.

    The tables around a removed value stay. Raises InputError, naming the file, if it cannot be edited safely.
    """
    intended = values(name, text)
    _change(name, intended, changes)
    if intended == values(name, text):
        return text
    try:
        if name.endswith(".toml"):
            result = _toml(name, text, changes)
        elif name.endswith(YAML):
            result = _yaml(name, text, changes)
        else:
            result = _env(text, changes) if name.endswith(".env") else _json(text, intended)
    except ValueError as error:  # the library cannot write that value there
        raise InputError(f"{name} cannot be edited safely ({error}): it was not changed") from error
    if values(name, result) != intended:
        raise InputError(f"{name} cannot be edited safely: it was not changed")
    return result


def values(name: str, text: str) -> dict[str, Any]:
    """Parse a file; an empty one is an empty table. Raises InputError if it cannot be parsed."""
    try:
        if name.endswith(".toml"):
            return tomllib.loads(text)
        if name.endswith(".env"):
            return dict(_VARIABLE.findall(text))
        if name.endswith(YAML):
            table: Any = _load_yaml(name, text)
        else:
            table = json.loads(text or "{}", object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except ValueError as error:
        hint = "" if name.endswith((".toml", *YAML)) else ", or comments, which would be lost"
        raise InputError(
            f"{name} cannot be edited: it has an error ({error}){hint}; it was not changed"
        ) from error
    if not isinstance(table, dict):
        raise InputError(f"{name} cannot be edited: it is not a table of settings; it was not changed")
    return cast("dict[str, Any]", table)


def value_at(table: Any, path: Place) -> Any:
    """Return the value at a path, or ABSENT."""
    for key in path:
        if not isinstance(table, MutableMapping) or key not in table:
            return ABSENT
        table = cast("Table", table)[key]
    return table


def _change(
    name: str,
    document: Table,
    changes: Changes,
    put: Callable[[Table, str, Any], None] = setitem,
    new_table: Callable[[], Any] = dict[str, Any],
) -> None:
    """Set or remove values of a document; missing tables are created."""
    for path, value in changes:
        table = document
        for key in path[:-1]:
            if key not in table:
                put(table, key, new_table())
            inner = table[key]
            if not isinstance(inner, MutableMapping):
                raise InputError(f"{name} cannot be edited: {key!r} is not a table; it was not changed")
            table = cast("Table", inner)
        if value is ABSENT:
            table.pop(path[-1], None)
        else:
            put(table, path[-1], deepcopy(value))


def _json(text: str, intended: dict[str, Any]) -> str:
    indent = _INDENT.search(text)
    result = json.dumps(intended, indent=indent[1] if indent else 2, ensure_ascii=False)
    result = _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", result)  # has no UTF-8 form
    return result + ("\n" if text.endswith("\n") or not text else "")


def _toml(name: str, text: str, changes: Changes) -> str:
    try:
        import tomlkit  # noqa: PLC0415  an optional extra
    except ModuleNotFoundError as error:
        raise InputError(f"{name} is edited with tomlkit: pip install 'foldline[mcp]'") from error
    document = tomlkit.parse(text)
    _change(name, document, changes, new_table=tomlkit.table)
    return tomlkit.dumps(document)  # pyright: ignore[reportUnknownMemberType]


def _yaml(name: str, text: str, changes: Changes) -> str:
    yaml = _ruamel(name, "rt")
    from ruamel.yaml import util  # noqa: PLC0415  an optional extra

    document, step, dash = cast("Any", util).load_yaml_guess_indent(text, yaml=yaml)
    yaml.indent(mapping=2 if dash is not None else step, sequence=step, offset=dash)
    comments = text if document is None else ""
    document = cast("Any", {}) if document is None else document

    def put(table: Any, key: str, value: Any) -> None:
        """Set a value; a new one goes first: the comment after the last one belongs to the next table."""
        if key in table or table is document or not hasattr(table, "insert"):
            table[key] = value
        else:
            table.insert(0, key, value)

    _change(name, document, changes, put)
    result = io.StringIO()
    yaml.dump(document, result)
    return comments + result.getvalue()


def _load_yaml(name: str, text: str) -> Any:
    yaml = _ruamel(name, "safe")
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415  an optional extra

    try:
        table = yaml.load(text)
    except YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    return {} if table is None else table


def _ruamel(name: str, kind: str) -> Any:
    try:
        from ruamel.yaml import YAML as RUAMEL  # noqa: PLC0415  an optional extra
    except ModuleNotFoundError as error:
        raise InputError(f"{name} is read with ruamel.yaml: pip install 'foldline[mcp]'") from error
    yaml: Any = RUAMEL(typ=kind, pure=True)
    yaml.preserve_quotes, yaml.width = True, sys.maxsize
    return yaml


def _env(text: str, changes: Changes) -> str:
    for (key,), value in changes:
        line = "" if value is ABSENT else f"{key}={value}\n"
        matches = [match for match in _VARIABLE.finditer(text) if match[1] == key]
        for match in reversed(matches):
            text = text[: match.start()] + line + text[match.end() :]
        if not matches:
            text += line if text.endswith("\n") or not text else f"\n{line}"
    return text


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key occurs twice")
    return table


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")

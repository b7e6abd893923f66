"""Settings files of other tools, edited by path: TOML, YAML, `.env` with their comments, JSON with its order.

What comes out is read again and must be what was meant, or the file is refused and left as it is: JSON with
comments, with a key twice, or with something in the way.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tomllib
from collections.abc import MutableMapping, Sequence
from copy import deepcopy
from typing import Any, Final, cast

from foldline.errors import InputError

YAML: Final = (".yaml", ".yml")
Place = tuple[str, ...]  # the keys that lead to a value
Table = MutableMapping[str, Any]
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_VARIABLE: Final = re.compile(
    r"^(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(.*?)[ \t\r]*(?:\n|\Z)", re.MULTILINE
)


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
    try:
        if name.endswith(".toml"):
            made = _toml(name, text, changes)
        elif name.endswith(YAML):
            made = _yaml(name, text, changes)
        else:
            made = _env(text, changes) if name.endswith(".env") else _json(text, meant)
    except ValueError as error:  # what its library cannot write there
        raise InputError(f"{name} cannot be edited safely ({error}): it is left as it is") from error
    if values(name, made) != meant:
        raise InputError(f"{name} cannot be edited safely: it is left as it is")
    return made


def values(name: str, text: str) -> dict[str, Any]:
    """Return what a file holds; an empty one holds nothing. Raises InputError where it cannot be read."""
    try:
        if name.endswith(".toml"):
            return tomllib.loads(text)
        if name.endswith(".env"):
            return dict(_VARIABLE.findall(text))
        if name.endswith(YAML):
            found: Any = _loaded(name, text)
        else:
            found = json.loads(text or "{}", object_pairs_hook=_once, parse_constant=_refuse)
    except ValueError as error:
        more = "" if name.endswith((".toml", *YAML)) else ", or comments, which would be lost"
        raise InputError(
            f"{name} cannot be edited: it has an error ({error}){more}; it is left as it is"
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


def _yaml(name: str, text: str, changes: Sequence[tuple[Place, Any]]) -> str:
    yaml = _yaml_of(name, "rt")
    from ruamel.yaml import util  # noqa: PLC0415  an optional extra

    document, step, dash = cast("Any", util).load_yaml_guess_indent(text, yaml=yaml)
    yaml.indent(mapping=2 if dash is not None else step, sequence=step, offset=dash)
    comments = text if document is None else ""
    document = cast("Any", {}) if document is None else document
    for path, value in changes:
        table = document
        for key in path[:-1]:
            if key not in table:
                _put(table, key, {}, first=table is not document)
            table = table[key]
        if value is ABSENT:
            table.pop(path[-1], None)
        else:
            _put(table, path[-1], value, first=table is not document)
    made = io.StringIO()
    yaml.dump(document, made)
    return comments + made.getvalue()


def _put(table: Any, key: str, value: Any, *, first: bool) -> None:
    """Set a value: a new one before the others, since the comment behind the last one is the next table's."""
    if key in table or not first or not hasattr(table, "insert"):
        table[key] = value
    else:
        table.insert(0, key, value)


def _loaded(name: str, text: str) -> Any:
    yaml = _yaml_of(name, "safe")
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415  an optional extra

    try:
        found = yaml.load(text)
    except YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    return {} if found is None else found


def _yaml_of(name: str, kind: str) -> Any:
    try:
        from ruamel.yaml import YAML as RUAMEL  # noqa: PLC0415  an optional extra
    except ModuleNotFoundError as error:
        raise InputError(f"{name} is read with ruamel.yaml: pip install 'foldline[mcp]'") from error
    yaml: Any = RUAMEL(typ=kind, pure=True)
    yaml.preserve_quotes, yaml.width = True, sys.maxsize
    return yaml


def _env(text: str, changes: Sequence[tuple[Place, Any]]) -> str:
    for (key,), value in changes:
        line = "" if value is ABSENT else f"{key}={value}\n"
        found = [one for one in _VARIABLE.finditer(text) if one[1] == key]
        for one in reversed(found):
            text = text[: one.start()] + line + text[one.end() :]
        if not found:
            text += line if text.endswith("\n") or not text else f"\n{line}"
    return text


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")

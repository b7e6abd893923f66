"""Secrets out of structs of facts, and the strings that stand in them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from foldline.core.secrets.redact import redact

Facts = TypeVar("Facts", bound=msgspec.Struct)


def redact_facts(facts: Facts) -> Facts:
    """Redact every string in a struct of facts (a `Ledger`), nested ones included; citations stay.

    Where one look at all of them together finds nothing to redact, the same object comes back.
    """
    whole = "\n".join(strings_in(facts))
    return facts if redact(whole) == whole else _redact_struct(facts)


_CITATIONS = frozenset(("entry", "entries"))


def strings_in(value: Any) -> Iterable[str]:
    """Return the distinct strings in structs, tuples and dicts, without the entry ids that facts cite."""
    found: dict[str, None] = {}
    _gather(value, found)
    return found


def _gather(value: Any, found: dict[str, None]) -> None:
    if isinstance(value, str):
        found[value] = None
    elif isinstance(value, msgspec.Struct):
        for name in _telling(type(value)):
            _gather(getattr(value, name), found)
    elif isinstance(value, dict):
        found.update(dict.fromkeys(cast("dict[str, Any]", value)))
    elif isinstance(value, tuple):
        for item in cast("tuple[Any, ...]", value):
            _gather(item, found)


@cache
def _telling(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields of a kind of fact that are not citations."""
    return tuple(name for name in kind.__struct_fields__ if name not in _CITATIONS)


def _redact_struct(facts: Facts) -> Facts:
    changed: dict[str, Any] = {}
    for name in facts.__struct_fields__:
        before = getattr(facts, name)
        after = before if name in _CITATIONS else _redact_value(before)
        if after is not before:
            changed[name] = after
    return msgspec.structs.replace(facts, **changed) if changed else facts


def _redact_value(value: Any) -> Any:
    """The value with its strings redacted; the same object where nothing changed."""
    if isinstance(value, str):
        cleaned = redact(value)
        return value if cleaned == value else cleaned
    if isinstance(value, msgspec.Struct):
        return _redact_struct(value)
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        redacted = tuple(_redact_value(item) for item in items)
        return items if all(a is b for a, b in zip(items, redacted, strict=True)) else redacted
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        clean = {redact(key): inner for key, inner in named.items()}
        return named if clean.keys() == named.keys() else clean
    return value

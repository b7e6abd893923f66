"""Secrets out of what is made from entries: facts, summaries, checkpoints.

The rules find a secret where it was said. What was made of it may say it again without what gave it away: a
model's summary that quotes a password alone, or half of a key. So the secrets that stood in a range are also
taken out of all that was made from it (`Sweep`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from foldline.core.secrets.plain import MARK, is_mixed, is_name, is_odd
from foldline.core.secrets.redact import redact

T = TypeVar("T")
Facts = TypeVar("Facts", bound=msgspec.Struct)

WINDOW = 12  # characters of a secret that give it away
_LEAST = 8  # characters of a whole secret below which it may be a common word
# kinds that a form does not prove
_BY_NAME = frozenset(("password", "secret", "token", "key", "credential", "credentials"))
_KEPT = frozenset(
    ("id", "parent", "entry", "entries", "first_kept", "leading", "quoted", "call_id", "native")
)


def redact_facts(facts: Facts, clean: Collection[str] = ()) -> Facts:
    """Redact every string in a struct of facts (a `Ledger`), nested ones included; citations stay.

    `clean` are strings that are known to hold no secret. Where one look at all others together finds nothing
    to redact, the same object comes back.
    """
    whole = "\n".join(text for text in strings_in(facts) if text not in clean)
    return facts if redact(whole) == whole else cast("Facts", _walked(facts, redact))


def strings_in(value: Any) -> Iterable[str]:
    """Return the distinct strings in structs, tuples and dicts, without the entry ids that facts cite."""
    found: dict[str, None] = {}

    def gather(text: str) -> str:
        found[text] = None
        return text

    _walked(value, gather)
    return found


@cache
def _telling(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields of a kind of fact that are not citations."""
    return tuple(name for name in kind.__struct_fields__ if name not in _KEPT)


class Sweep:
    """Takes known secrets, and any piece of them of `WINDOW` characters, out of texts and structs."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._pieces: dict[str, str] = {}
        self._whole: dict[str, str] = {}
        for secret, kind in secrets.items():
            for line in _lines(secret):
                self._learn(line, kind)

    def _learn(self, secret: str, kind: str) -> None:
        if len(secret) < _LEAST:
            return
        if kind in _BY_NAME and is_name(secret):
            if len(secret) >= WINDOW:  # a piece of it is a common word
                self._whole[secret] = kind
        elif len(secret) >= WINDOW:
            for at in range(len(secret) - WINDOW + 1):
                self._pieces.setdefault(secret[at : at + WINDOW], kind)
        elif is_mixed(secret) or is_odd(secret):
            self._whole[secret] = kind

    def __bool__(self) -> bool:
        return bool(self._pieces or self._whole)

    def text(self, text: str) -> str:
        """Return a text without the secrets."""
        if len(text) < _LEAST or not self:
            return text
        return self._without_whole(self._without_pieces(text))

    def _without_pieces(self, text: str) -> str:
        out: list[str] = []
        done, at, last = 0, 0, len(text) - WINDOW
        while at <= last:
            kind = self._pieces.get(text[at : at + WINDOW])
            if kind is None:
                at += 1
                continue
            end = at + WINDOW
            while end < len(text) and text[end - WINDOW + 1 : end + 1] in self._pieces:
                end += 1
            out += [text[done:at], f"{MARK}{kind}]"]
            done = at = end
        return "".join([*out, text[done:]]) if out else text

    def _without_whole(self, text: str) -> str:
        for secret, kind in self._whole.items():
            if secret in text:
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", f"{MARK}{kind}]", text)
        return text

    def struct(self, value: T) -> T:
        """Return a value with the secrets out of every string and key in it; ids stay."""
        return cast("T", _walked(value, self.text)) if self else value


def _lines(secret: str) -> Iterable[str]:
    """Return the lines of a secret; those of a key without its header and footer."""
    return [line.strip() for line in re.split(r"\\n|\n", secret) if "-----" not in line]


def _walked(value: Any, clean: Callable[[str], str]) -> Any:
    """Return a value with its strings and keys cleaned; the same object where nothing changed."""
    if isinstance(value, str):
        new = clean(value)
        return value if new == value else new
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in _telling(type(value))}
        changed = {name: one for name, old in fields.items() if (one := _walked(old, clean)) is not old}
        return msgspec.structs.replace(value, **changed) if changed else value
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        made = {clean(key): one if key in _KEPT else _walked(one, clean) for key, one in named.items()}
        same = made.keys() == named.keys() and all(made[key] is one for key, one in named.items())
        return named if same else made
    if isinstance(value, tuple | list):
        items = cast("tuple[Any, ...] | list[Any]", value)
        made = [_walked(one, clean) for one in items]
        same = all(new is old for new, old in zip(made, items, strict=True))
        return items if same else type(items)(made)
    return value

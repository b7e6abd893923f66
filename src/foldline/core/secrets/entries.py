"""Entries without secrets: what facts, excerpts, requests to summarisers and notes are made from.

Each part is redacted once, whole, before anything is cut out of it: half a key has no shape. What a
provider ran is read as calls and results (see `opened`), so that it is redacted like any other.
The log keeps every entry as it was said.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec

from foldline.core.log.codec import text_in_utf8
from foldline.core.log.entries import Entry, Said
from foldline.core.log.messages import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.opaque import opened
from foldline.core.secrets.named import is_secret_field
from foldline.core.secrets.plain import MARK
from foldline.core.secrets.redact import find, redact, without
from foldline.core.secrets.span import SecretSpan, joined

_DEPTH = 40  # levels of a call's arguments that are looked into; what lies deeper is redacted as one text
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"')


class CleanEntries:
    """Redacts each entry of a path once, and remembers the secrets that it took out."""

    def __init__(self) -> None:
        self._clean: dict[str, tuple[Said, Said]] = {}
        self._found: dict[str, str] = {}

    def __call__(self, entries: Iterable[Said]) -> list[Said]:
        """Return the entries without secrets; one that holds none is the same object."""
        return [self._entry(entry) for entry in entries]

    def of(self, entries: Iterable[Entry]) -> CleanEntries:
        """Return what is known of these entries alone, and all secrets that were found."""
        kept = CleanEntries()
        kept._clean = {entry.id: self._clean[entry.id] for entry in entries if entry.id in self._clean}
        kept._found = dict(self._found)
        return kept

    @property
    def secrets(self) -> dict[str, str]:
        """Every secret of the entries that were looked at, with its kind."""
        return dict(self._found)

    def _entry(self, entry: Said) -> Said:
        known = self._clean.get(entry.id)
        if known is not None and (known[0] is entry or known[1] is entry):
            return known[1]
        message = clean_message(entry.message, self._found)
        clean = entry if message is entry.message else msgspec.structs.replace(entry, message=message)
        self._clean[entry.id] = (entry, clean)
        return clean


def clean_message(message: Message, found: dict[str, str]) -> Message:
    """Return a message without secrets, the same object where it holds none; `found` learns them."""
    message = opened(message)
    parts = tuple(clean_part(part, found) for part in message.parts)
    name = message.name and _text(message.name, found)
    if name is message.name and all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return msgspec.structs.replace(message, parts=parts, name=name, native=None)


def clean_part(part: Part, found: dict[str, str]) -> Part:
    """Return a part without secrets, the same object where it holds none; `found` learns them."""
    changed: dict[str, Any] = {}
    if isinstance(part, Text | Thinking):
        changed = {"text": _text(part.text, found)}
    elif isinstance(part, ToolCall):
        changed = {"name": _text(part.name, found), "arguments": _arguments(part.arguments, found)}
    elif isinstance(part, ToolResult):
        inner = tuple(clean_part(one, found) for one in part.content)
        if any(new is not old for new, old in zip(inner, part.content, strict=True)):
            changed = {"content": inner}
    elif isinstance(part, Media):
        changed = {"url": part.url and _text(part.url, found), "name": part.name and _text(part.name, found)}
    changed = {name: new for name, new in changed.items() if new is not getattr(part, name)}
    return msgspec.structs.replace(part, **changed) if changed and not isinstance(part, Opaque) else part


def _text(text: str, found: dict[str, str]) -> str:
    """Return a text without secrets, as UTF-8 can carry it; the same object where it holds none."""
    text = text_in_utf8(text)
    spans = find(text)
    if not spans:
        return text
    for span in spans:
        for secret in (text[span.start : span.end], *span.said):
            if secret and MARK not in secret:
                found[secret] = span.kind
    return redact(without(text, spans))


def _arguments(value: Any, found: dict[str, str]) -> Any:
    """Return a call's arguments without secrets: neither of one string nor of all of them as JSON."""
    clean: Any = _value(value, found)
    if isinstance(clean, str):
        return clean
    try:
        text = json.dumps(clean, ensure_ascii=False)
        spans = list(_in_strings(text, find(text)))
        learned = [(json.loads(f'"{text[span.start : span.end]}"'), span) for span in spans]
        made = json.loads(without(text, spans)) if spans else clean
    except (TypeError, ValueError, RecursionError):  # no JSON, or nested too deeply
        made, learned = clean, []
    for secret, span in learned:
        found.update((one, span.kind) for one in (secret, *span.said) if MARK not in one)
    return made if made != clean else clean  # any value may have been replaced by a mark


def _in_strings(text: str, spans: Sequence[SecretSpan]) -> Iterator[SecretSpan]:
    """Yield the parts of spans inside the strings of a JSON text: a span may begin before one."""
    strings = [match.span(1) for match in _STRING.finditer(text)] if spans else []
    ends = [end for _, end in strings]
    for span in spans:
        at = bisect_right(ends, span.start)
        while at < len(ends) and strings[at][0] < span.end:
            start, end = max(strings[at][0], span.start), min(ends[at], span.end)
            if start < end:
                yield SecretSpan(start, end, span.kind, span.said)
            at += 1


def _value(value: Any, found: dict[str, str], depth: int = 0) -> Any:
    """Return a call's arguments without secrets; the same object where they hold none."""
    if isinstance(value, str):
        return _text(value, found)
    if depth > _DEPTH:
        return _text(_written(cast("object", value)), found) if isinstance(value, dict | list) else value
    if isinstance(value, dict):
        return _fields(cast("dict[str, Any]", value), found, depth)
    if isinstance(value, list):
        return _items(cast("list[Any]", value), found, depth)
    return value


def _written(value: object) -> str:
    try:
        return str(value)
    except RecursionError:
        return "(nested too deeply)"


def _fields(fields: dict[str, Any], found: dict[str, str], depth: int) -> dict[str, Any]:
    clean: dict[str, Any] = {}
    for name, value in fields.items():
        new = _value(value, found, depth + 1)
        if isinstance(value, str) and new is value and is_secret_field(name, value):
            found[value] = "secret"
            new = f"{MARK}secret]"
        clean[_text(name, found)] = new
    same = clean.keys() == fields.keys() and all(clean[name] is value for name, value in fields.items())
    return fields if same else clean


def _items(items: list[Any], found: dict[str, str], depth: int) -> list[Any]:
    """Return a list without secrets; words of a command are also read as the line that they make."""
    clean = [_value(item, found, depth + 1) for item in items]
    if len(items) > 1 and all(isinstance(item, str) for item in clean):
        clean = _as_line(cast("list[str]", clean), found)
    return items if all(new is old for new, old in zip(clean, items, strict=True)) else clean


def _as_line(words: Sequence[str], found: dict[str, str]) -> list[str]:
    spans = joined(find(" ".join(words)))
    clean: list[str] = []
    at = 0
    for word in words:
        hit = next((span for span in spans if span.start < at + len(word) and span.end > at), None)
        if hit is None:
            clean.append(word)
        else:
            start, end = max(hit.start - at, 0), hit.end - at
            found[word[start:end]] = hit.kind
            clean.append(f"{word[:start]}{MARK}{hit.kind}]{word[end:]}")
        at += len(word) + 1
    return clean

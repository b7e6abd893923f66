"""Foldline's own interchange form: a header line, then every entry of the log, one JSON object a line.

Lossless: ids, said-keys, times and native payloads (base64) come back as they were, lone surrogates included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from foldline.core.log.codec import encode
from foldline.core.log.entries import Compacted, Entry, Lifted, Noted, Pinned, Said
from foldline.core.log.log import entry_id, next_said_key
from foldline.errors import FormatError
from foldline.transcripts.base import About, Folded, Heard, Record, Warned
from foldline.transcripts.lines import Line, Unreadable, lines, parse
from foldline.transcripts.tree import Node, Tree, lines_of
from foldline.transcripts.values import mapping, text_or

VERSION = 1
_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


class _Numbered(NamedTuple):
    line: int
    entry: Entry


def dump(entries: Iterable[Entry], stream: BinaryIO, **header: Any) -> int:
    """Write the header (with `header`'s fields, such as `session` and `leaf`) and each entry; return their number.

    Entries come in the order of appending, all branches; the stream is neither flushed to disk nor closed.
    """
    stream.write(encode({"format": "foldline", "version": VERSION, **header}) + b"\n")
    count = 0
    for entry in entries:
        stream.write(encode(entry) + b"\n")
        count += 1
    return count


def load(
    stream: BinaryIO,
    *,
    name: str = "",
    warn: Callable[[Warned], None] | None = None,
    about: Callable[[dict[str, Any]], None] | None = None,
) -> Iterator[Entry]:
    """Yield the entries that `dump` wrote, each proved against its id, its parent and its said-key.

    The header goes to `about`. What is wrong goes to `warn` and is left out, with all that follows from it; without `warn` it raises
    FormatError with its line. A newer version raises FormatError always.
    """
    for item in _proved(stream, name):
        if isinstance(item, _Numbered):
            yield item.entry
        elif isinstance(item, Warned):
            if warn is None:
                raise FormatError(item.text, where=name, line=item.line)
            warn(item)
        elif about is not None:
            about(item)


def read_own(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read the path to the leaf that the header names (else: the newest entry) as records."""
    start = stream.tell()
    tree, lifted, leaf = Tree(), _Lifts(), ""
    for item in _proved(stream, name):
        if isinstance(item, dict):
            leaf = text_or(item.get("leaf"))
        elif isinstance(item, _Numbered):
            tree.add(Node(item.entry.id, item.entry.parent, item.line, said=isinstance(item.entry, Said)))
            lifted.note(item.entry)
    place = tree.place(leaf) if leaf in tree else len(tree.nodes) - 1
    on = tree.path(-1 if place is None else place)
    wanted, undone = (
        lines_of(tree, on),
        lifted.on_path({n.key for n, o in zip(tree.nodes, on, strict=True) if o}),
    )
    stream.seek(start)
    for item in _proved(stream, name):
        if isinstance(item, Warned):
            yield item
        elif isinstance(item, dict):
            yield About("format", {"format": "foldline", "version": VERSION, "dialect": ""})
            yield About("session", item, 1)
        elif item.line in wanted and item.entry.id not in undone:
            yield from _records(item)
    beside = tree.branches(on)
    if beside["branches"]:
        yield About("branches", beside)


class _Lifts:
    """Which boundaries are undone: the last word on each counts."""

    def __init__(self) -> None:
        self._lifts: list[Lifted] = []

    def note(self, entry: Entry) -> None:
        if isinstance(entry, Lifted):
            self._lifts.append(entry)

    def on_path(self, path: set[str]) -> set[str]:
        state = {lift.target: lift.lifted for lift in self._lifts if lift.id in path}
        return {target for target, undone in state.items() if undone}


def _records(item: _Numbered) -> Iterator[Record]:
    """An entry as records; a boundary that only edits says nothing that a reader of messages needs."""
    line, entry = item
    if isinstance(entry, Said):
        yield Heard(entry.message, at=entry.at, key=entry.id, parent=entry.parent, line=line)
    elif isinstance(entry, Compacted):
        tokens = entry.receipt.tokens_before
        yield Folded(entry.checkpoint.summary, entry.first_kept, tokens, at=entry.at, line=line)
    elif isinstance(entry, Noted):
        yield About(entry.kind, entry.data, line)
    elif isinstance(entry, Pinned):
        yield About("pinned", {"entry": entry.target, "on": entry.on, "text": entry.text}, line)


def _proved(stream: BinaryIO, name: str) -> Iterator[dict[str, Any] | _Numbered | Warned]:
    """Yield the header, then each entry that is what its id says, or a warning in its place."""
    keys: dict[str | None, str] = {None: ""}  # entry id -> the said-key of the newest message up to it
    header = False
    for line in lines(stream):
        if isinstance(line, Warned):
            yield line
        elif not header:
            yield _header(line, name)
            header = True
        else:
            yield _prove(line, keys)


def _header(line: Line, name: str) -> dict[str, Any]:
    """Read the header; raises FormatError for another format or a newer version."""
    try:
        header = mapping(parse(line.raw)[0])
    except Unreadable as error:
        raise FormatError(f"its header is {error}", where=name, line=line.number) from None
    if header.get("format") != "foldline":
        raise FormatError("does not start with Foldline's header", where=name, line=line.number)
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise FormatError(
            f"was written by a newer Foldline (version {version}); this one reads up to {VERSION}",
            where=name,
            line=line.number,
        )
    return header


def _prove(line: Line, keys: dict[str | None, str]) -> _Numbered | Warned:
    """Decode an entry and hold it against its id, its parent and its said-key."""
    try:
        entry = _decode(line.raw)
    except Unreadable as error:
        return Warned(
            line.number, f"{error} ({'left out' if line.ended else 'the file ends inside this line'})"
        )
    if entry.id in keys:
        return Warned(line.number, f"entry {entry.id} stands in the file twice; the first one counts")
    if entry.parent not in keys:
        return Warned(
            line.number, f"entry {entry.id} follows {entry.parent}, which does not come before it (left out)"
        )
    if entry_id(entry) != entry.id:
        return Warned(line.number, f"the content of entry {entry.id} does not match its id (left out)")
    key = keys[entry.parent]
    if isinstance(entry, Said):
        key = next_said_key(key, entry.message)
        if key != entry.said_key:
            return Warned(
                line.number, f"the said-key of entry {entry.id} does not follow the one before (left out)"
            )
    keys[entry.id] = key
    return _Numbered(line.number, entry)


def _decode(raw: bytes) -> Entry:
    """Parse an entry; raises Unreadable."""
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise Unreadable(f"no entry of a log: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value, note = parse(raw)
    if note:
        raise Unreadable(note)
    try:
        return msgspec.convert(value, Entry)
    except msgspec.ValidationError as error:
        raise Unreadable(f"no entry of a log: {error}") from None

"""Foldline's own interchange format: a header line, then every entry of the log, one JSON object per line.

Lossless: ids, said-keys, times and native payloads (base64) are preserved, lone surrogates included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from foldline.core.log.codec import encode
from foldline.core.log.entries import Compacted, Entry, Lifted, Noted, Pinned, Said
from foldline.errors import FormatError
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord
from foldline.transcripts.shared.chain import Chain, Unplaced
from foldline.transcripts.shared.lines import Line, Unreadable, lines, parse
from foldline.transcripts.shared.tree import Node, Tree, lines_of
from foldline.transcripts.shared.values import mapping, text_or

VERSION = 1
_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


class _Numbered(NamedTuple):
    line: int
    entry: Entry


def dump(entries: Iterable[Entry], stream: BinaryIO, **header: Any) -> int:
    """Write the header (with fields such as `session` and `leaf`) and each entry; return their number.

    Entries come in append order, all branches; the stream is neither flushed to disk nor closed.
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
    warn: Callable[[WarningRecord], None] | None = None,
    about: Callable[[dict[str, Any]], None] | None = None,
) -> Iterator[Entry]:
    """Yield the entries that `dump` wrote, each checked against its id, its parent and its said-key.

    The header goes to `about`. A bad entry goes to `warn` and is left out; what follows it goes on from the
    entry before, under new ids. Without `warn` it raises FormatError with its line, as a newer version does.
    """
    for item in _checked_entries(stream, name):
        if isinstance(item, _Numbered):
            yield item.entry
        elif isinstance(item, WarningRecord):
            if warn is None:
                raise FormatError(item.text, where=name, line=item.line)
            warn(item)
        elif about is not None:
            about(item)


def read_own(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read the path to the leaf that the header names (otherwise to the newest entry) as records."""
    start = stream.tell()
    tree, lifted, leaf = Tree(), _Lifts(), ""
    for item in _checked_entries(stream, name):
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
    begun = False
    for item in _checked_entries(stream, name):
        if isinstance(item, WarningRecord):
            yield item
        elif isinstance(item, dict):
            if not begun:
                yield FactRecord("format", {"format": "foldline", "version": VERSION, "dialect": ""})
                yield FactRecord("session", item, 1)
            begun = True
        elif item.line in wanted and item.entry.id not in undone:
            yield from _records(item)
    beside = tree.branches(on)
    if beside["branches"]:
        yield FactRecord("branches", beside)


class _Lifts:
    """Which boundaries are undone: the last undo or redo of each counts."""

    def __init__(self) -> None:
        self._lifts: list[Lifted] = []

    def note(self, entry: Entry) -> None:
        if isinstance(entry, Lifted):
            self._lifts.append(entry)

    def on_path(self, path: set[str]) -> set[str]:
        state = {lift.target: lift.lifted for lift in self._lifts if lift.id in path}
        return {target for target, undone in state.items() if undone}


def _records(item: _Numbered) -> Iterator[Record]:
    """Yield an entry's records; a boundary that only edits has none."""
    line, entry = item
    if isinstance(entry, Said):
        yield MessageRecord(entry.message, at=entry.at, key=entry.id, parent=entry.parent, line=line)
    elif isinstance(entry, Compacted):
        tokens = entry.receipt.tokens_before
        yield CompactionRecord(entry.checkpoint.summary, entry.first_kept, tokens, at=entry.at, line=line)
    elif isinstance(entry, Noted):
        yield FactRecord(entry.kind, entry.data, line)
    elif isinstance(entry, Pinned):
        yield FactRecord("pinned", {"entry": entry.target, "on": entry.on, "text": entry.text}, line)


def _checked_entries(stream: BinaryIO, name: str) -> Iterator[dict[str, Any] | _Numbered | WarningRecord]:
    """Yield the header, then each entry that matches its id, or a warning in its place.

    What stands behind a damaged line is chained anew. Where that gave the leaf another id, the header comes
    again at the end with that.
    """
    chain = Chain()
    header: dict[str, Any] | None = None
    for line in lines(stream):
        if isinstance(line, WarningRecord):
            chain.lost()
            yield line
        elif header is None:
            header = _header(line, name)
            yield header
        else:
            yield from _check(line, chain)
    leaf = text_or(header.get("leaf")) if header else ""
    if header and leaf in chain.renamed:
        yield {**header, "leaf": chain.renamed[leaf]}


def _header(line: Line, name: str) -> dict[str, Any]:
    """Read the header; raises FormatError for another format or a newer version."""
    try:
        header = mapping(parse(line.raw)[0])
    except Unreadable as error:
        raise FormatError(f"bad header: {error}", where=name, line=line.number) from None
    if header.get("format") != "foldline":
        raise FormatError("does not start with Foldline's header", where=name, line=line.number)
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise FormatError(
            f"written by a newer Foldline (version {version}); this one reads up to {VERSION}",
            where=name,
            line=line.number,
        )
    return header


def _check(line: Line, chain: Chain) -> Iterator[_Numbered | WarningRecord]:
    """Decode an entry and check it against its id, its parent and its said-key."""
    try:
        entry = _decode(line.raw)
    except Unreadable as error:
        chain.lost()
        left = "left out" if line.ended else "the file ends inside this line"
        yield WarningRecord(line.number, f"{error} ({left})")
        return
    try:
        placed, note = chain.take(entry)
    except Unplaced as error:
        yield WarningRecord(line.number, str(error))
        return
    if note:
        yield WarningRecord(line.number, note)
    yield _Numbered(line.number, placed)


def _decode(raw: bytes) -> Entry:
    """Parse an entry; raises Unreadable."""
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise Unreadable(f"not an entry of a log: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value, note = parse(raw)
    if note:
        raise Unreadable(note)
    try:
        return msgspec.convert(value, Entry)
    except msgspec.ValidationError as error:
        raise Unreadable(f"not an entry of a log: {error}") from None

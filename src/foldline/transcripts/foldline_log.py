"""Foldline's own interchange format: a header line, then every entry of the log, one JSON object per line.

Lossless: ids, said-keys, times and native payloads (base64) are preserved, lone surrogates included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from foldline.core.log.codec import encode
from foldline.core.log.entries import Compacted, Entry, Lifted, Noted, Pinned, Said, dated
from foldline.core.log.log import entry_id, undone
from foldline.dialects.payload import fields_of
from foldline.errors import FormatError
from foldline.transcripts.chain import Chain, LostHead, Unplaceable, head_of, head_of_entry
from foldline.transcripts.lines import Line, Unreadable, count_fact, lines, parse, text_or
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord
from foldline.transcripts.tree import Node, Tree

VERSION = 1
_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


class _Numbered(NamedTuple):
    line: int
    entry: Entry


def dump(entries: Iterable[Entry], stream: BinaryIO, **header: Any) -> int:
    """Write the header (with fields such as `session` and `leaf`) and each entry; return their number.

    Entries are in append order, with all branches; the stream is neither flushed to disk nor closed.
    """
    stream.write(header_line(**header))
    count = 0
    for entry in entries:
        stream.write(encode(entry) + b"\n")
        count += 1
    return count


def header_line(**header: Any) -> bytes:
    """Return the first line of a file, with fields such as `session` and `leaf`."""
    return encode({"format": "foldline", "version": VERSION, **header}) + b"\n"


def load(
    stream: BinaryIO,
    *,
    name: str = "",
    warn: Callable[[WarningRecord], None] | None = None,
    about: Callable[[dict[str, Any]], None] | None = None,
) -> Iterator[Entry]:
    """Yield the entries that `dump` wrote, each checked against its id, its parent and its said-key.

    The header is passed to `about`. A bad entry is passed to `warn` and left out; entries after it get new
    ids, and `about` the new `leaf`. Without `warn` a bad entry raises FormatError with its line. A newer
    version always raises FormatError.
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
    """Read the path to the header's leaf (or else to the newest entry) as records."""
    tree, leaf = Tree(), ""
    items: list[_Numbered | WarningRecord] = []
    for item in _checked_entries(stream, name):
        if isinstance(item, dict):
            leaf = text_or(item.get("leaf"))
            if "format" in item:
                yield FactRecord("format", {"format": "foldline", "version": VERSION, "dialect": ""})
                yield FactRecord("session", item, 1)
        else:
            items.append(item)
            if isinstance(item, _Numbered):
                entry = item.entry
                tree.add(Node(entry.id, entry.parent, item.line, said=isinstance(entry, Said)))
    on = tree.path(tree.places.get(leaf, len(tree.nodes) - 1))
    lines_on_path = {node.line for node in tree.marked(on)}
    path = [item for item in items if isinstance(item, WarningRecord) or item.line in lines_on_path]
    undone_ids = undone(item.entry for item in path if isinstance(item, _Numbered))
    for item in path:
        if isinstance(item, WarningRecord):
            yield item
        elif item.entry.id not in undone_ids:
            yield from _records(item)
    yield from count_fact("branches", tree.branches(on))


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

    After a damaged entry ids differ from the file's; if the leaf's id does, the new `leaf` is yielded last.
    """
    chain = Chain()
    header: dict[str, Any] | None = None
    for line in lines(stream):
        if isinstance(line, WarningRecord):
            chain.lose(LostHead())
            yield line
        elif header is None:
            header = _header(line, name)
            yield header
        else:
            yield from _check(line, chain, name)
    leaf = text_or((header or {}).get("leaf"))
    if (new_leaf := chain.new_id(leaf)) not in (None, leaf):
        yield {"leaf": str(new_leaf)}


def _header(line: Line, name: str) -> dict[str, Any]:
    """Read the header; raises FormatError for another format or a newer version."""
    try:
        header = fields_of(parse(line.raw)[0])
    except Unreadable as error:
        raise FormatError(f"bad header: {error}", where=name, line=line.number) from None
    if header.get("format") != "foldline":
        raise FormatError("does not start with Foldline's header", where=name, line=line.number)
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise FormatError(
            f"written by a newer Foldline (version {version}; this one reads up to {VERSION}): upgrade",
            where=name,
            line=line.number,
        )
    return header


def _check(line: Line, chain: Chain, name: str) -> Iterator[_Numbered | WarningRecord]:
    """Yield an entry that matches its id, rechained if needed, or a warning."""
    try:
        entry = _decode(line.raw)
    except Unreadable as error:
        yield _lost(line, head_of(line.raw), str(error), chain, name)
        return
    if entry.id in chain:
        yield WarningRecord(line.number, f"entry {entry.id} is in the file twice; the first one counts")
        return
    if entry_id(entry) != entry.id:
        why = f"the content of entry {entry.id} does not match its id"
        yield _lost(line, head_of_entry(entry), why, chain, name)
        return
    if entry.parent is not None and not chain.knows(entry.parent) and not chain.lose_parent(entry.parent):
        text = f"the parent {entry.parent} of entry {entry.id} does not come before it"
        yield WarningRecord(line.number, f"{text}; read as following the previous entry")
    yield from _placed(line, entry, chain, name)


def _placed(line: Line, entry: Entry, chain: Chain, name: str) -> Iterator[_Numbered | WarningRecord]:
    """Yield an intact entry in its place, and a warning if its said-key is wrong or its place is lost."""
    try:
        placed = chain.place(entry)
    except Unplaceable as error:
        if isinstance(entry, Lifted):  # the lost boundary already has a warning
            chain.lose(head_of_entry(entry))
            return
        yield _lost(line, head_of_entry(entry), str(error), chain, name)
        return
    if placed.id == entry.id and isinstance(entry, Said) and placed != entry:
        text = f"the said-key of entry {entry.id} does not match the previous one (computed again)"
        yield WarningRecord(line.number, text)
    yield _Numbered(line.number, placed)


def _lost(line: Line, head: LostHead, why: str, chain: Chain, name: str) -> WarningRecord:
    """Note a lost entry; return a warning with the consequence and the remedy."""
    leaf = chain.lose(head)
    if not line.ended:
        return WarningRecord(line.number, f"{why} (the file ends inside this line)")
    if head.kind != "compacted":
        return WarningRecord(line.number, f"{why} (left out; the entries after it are read)")
    before = chain.newest_compaction(leaf)
    which = f"compaction {head.entry or 'here'} of {name or 'this session'} is left out"
    state = f"continues from the compaction before it, {before}" if before else "is not folded"
    remedy = "Use an undamaged copy of the file, or compact the session again"
    return WarningRecord(line.number, f"{why}: {which}, and the session {state}. {remedy}")


def _decode(raw: bytes) -> Entry:
    """Parse an entry; an invalid time is dropped. Raises Unreadable."""
    entry = _parsed(raw)
    return entry if dated(entry.at) == entry.at else msgspec.structs.replace(entry, at=None)


def _parsed(raw: bytes) -> Entry:
    try:
        try:
            return _decoder.decode(raw)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value, note = parse(raw)
            if note:
                raise Unreadable(note) from None
            return msgspec.convert(value, Entry)
    except msgspec.ValidationError as error:
        raise Unreadable(f"not an entry of a log: {error}") from None

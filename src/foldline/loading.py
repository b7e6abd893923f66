"""Lists of native messages, and what other agents wrote, into entries that can be folded or stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, BinaryIO

import msgspec

from foldline.core.checkpoint.checkpoint import Frame, Recognised, make_checkpoint, recognise
from foldline.core.checkpoint.origin_check import unmarked
from foldline.core.cut.repair import Repaired, repair
from foldline.core.decide.presets import preset
from foldline.core.ledger.collect import collect
from foldline.core.ledger.page.page import parse
from foldline.core.log.entries import Checkpoint, Compacted, Entry, Noted, Receipt, Said
from foldline.core.log.log import chained, said
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import Counter, message_tokens
from foldline.dialects import decode_placed, detect, elements
from foldline.dialects.anthropic.write import OPENING
from foldline.transcripts import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord, load


class Loaded(msgspec.Struct):
    """Entries in path order, and where each message came from; `given` is the list that they were read from.

    `index` maps an entry id to its place in the input (0-based among the messages); `orphans` are results
    left out because nothing called for them: (index, call id). `repaired` says that the order changed.
    Of our own form, `log` has every branch in the order of appending, and `session` is the id it had.
    `about` is what a transcript says of itself, by kind.
    """

    entries: list[Entry]
    index: dict[str, int]
    dialect: str
    orphans: list[tuple[int, str]] = []
    repaired: bool = False
    system: Any = None
    tools: Any = None
    model: str | None = None
    title: str | None = None
    format: str = ""
    warnings: list[str] = []
    log: list[Entry] = []
    session: str | None = None
    about: dict[str, dict[str, Any]] = {}
    given: Sequence[Any] | None = None


class _Boundary(msgspec.Struct):
    """A compaction to place before message `at`; `first_kept` is a message's index (None: nothing is kept)."""

    at: int
    checkpoint: Checkpoint
    first_kept: int | None = None
    quoted: tuple[int, ...] = ()
    ledger: dict[str, Any] | None = None  # None: taken from the messages that it folded
    receipt: Receipt = Receipt(reason="imported")
    when: float | None = None


def from_messages(messages: Sequence[Any], counter: Counter, *, dialect: str | None = None) -> Loaded:
    """Read a list of native messages; a checkpoint of ours at its head becomes a boundary again.

    Raises DialectError naming the message that is not of the dialect.
    """
    name = dialect or detect(messages)
    placed = decode_placed(messages, name)
    decoded = [message for _, message in placed]
    found = recognise(decoded)
    if found is None:
        first = int(bool(decoded) and decoded[0].role == "user" and decoded[0].text == OPENING)
        loaded = _load(decoded, list(range(first, len(decoded))), [], counter, name)
    else:
        loaded = _recognised(decoded, found, counter, name)
    _place(loaded, [place for place, _ in placed])
    loaded.given = messages
    return loaded


def _place(loaded: Loaded, places: Sequence[int]) -> None:
    """Name the places in the input instead of the messages' own numbers."""
    loaded.index = {entry: places[index] for entry, index in loaded.index.items()}
    loaded.orphans = [(places[index], call) for index, call in loaded.orphans]


def _recognised(
    messages: Sequence[Message],
    found: Recognised,
    counter: Counter,
    dialect: str,
    *,
    times: Sequence[float | None] = (),
) -> Loaded:
    """Load a list with a checkpoint of ours at its head."""
    messages = list(messages)
    whole = messages[found.index]
    if found.more:
        messages[found.index] = msgspec.structs.replace(whole, parts=whole.parts[1:], native=None)
    own: set[int] = set() if found.more else {found.index}
    taken = {*own, *([found.index + 1] if found.ack else []), *found.quoted}
    order = [index for index in range(len(messages)) if index not in taken]
    lead = [index for index in order if index < found.index]
    rest = [index for index in order if index >= found.index]
    boundary = _own(messages, whole, found, counter)
    return _load(messages, [*lead, *found.quoted, *rest], [boundary], counter, dialect, times=times)


def _own(decoded: Sequence[Message], whole: Message, found: Recognised, counter: Counter) -> _Boundary:
    message = msgspec.structs.replace(whole, parts=whole.parts[:1])
    follows = decoded[found.index + 1] if found.ack and found.index + 1 < len(decoded) else None
    point = Checkpoint(
        text=found.text,
        summary=found.summary,
        role=message.role,
        ack=follows.text if follows is not None else None,
        position=found.position,
        pins=found.pins,
        live=found.live,
        tokens=message_tokens(message, counter),
    )
    at = max(found.index + int(found.ack), *found.quoted, found.index) + (0 if found.more else 1)
    ledger: dict[str, Any] = msgspec.to_builtins(parse(unmarked(found.summary)))
    return _Boundary(at, point, quoted=found.quoted, ledger=ledger)


def from_records(records: Iterable[Record], counter: Counter, *, from_start: bool = False) -> Loaded:
    """Read the records of a transcript; its own compactions become boundaries unless `from_start` is set."""
    messages: list[Message] = []
    times: list[float | None] = []
    keys: dict[str, int] = {}
    boundaries: list[_Boundary] = []
    about: dict[str, dict[str, Any]] = {}
    warnings: list[str] = []
    for record in records:
        if isinstance(record, MessageRecord):
            if record.key is not None:
                keys.setdefault(record.key, len(messages))
            messages.append(record.message)
            times.append(record.at)
        elif isinstance(record, CompactionRecord):
            if not from_start:
                boundaries.append(_theirs(record, len(messages), keys, counter))
        elif isinstance(record, FactRecord):
            about[record.kind] = {**about.get(record.kind, {}), **record.data}
        else:
            warnings.append(_warning(record))
    dialect = about.get("format", {}).get("dialect") or next(
        (m.native.dialect for m in messages if m.native), "openai-chat"
    )
    found = recognise(messages) if not boundaries else None
    if found is not None:
        loaded = _recognised(messages, found, counter, dialect, times=times)
    else:
        loaded = _load(messages, list(range(len(messages))), boundaries, counter, dialect, times=times)
    sizes = (elements(message) for message in messages)
    _place(loaded, list(accumulate(sizes, initial=0)))
    loaded.warnings = warnings
    loaded.about = about
    loaded.format = about.get("format", {}).get("format", "")
    loaded.system = about.get("system", {}).get("system")
    loaded.tools = about.get("tools", {}).get("tools")
    loaded.model = about.get("model", {}).get("model")
    loaded.title = about.get("title", {}).get("title")
    return loaded


def _warning(record: WarningRecord) -> str:
    return f"line {record.line}: {record.text}" if record.line else record.text


def _theirs(record: CompactionRecord, at: int, keys: dict[str, int], counter: Counter) -> _Boundary:
    first = keys.get(record.first_kept) if record.first_kept is not None else None
    quoted = tuple(keys[key] for key in record.quoted if key in keys)
    ours = _through_another_tool(record.summary, counter)
    frame = Frame(preset("foldline"), quoted=len(quoted), number=record.number or 1)
    return _Boundary(
        at=at,
        checkpoint=ours or make_checkpoint(record.summary, frame, counter),
        ledger=msgspec.to_builtins(parse(unmarked(ours.summary))) if ours is not None else None,
        first_kept=first,
        quoted=quoted,
        receipt=Receipt(reason="imported", tokens_before=record.tokens_before or 0, origin=record.data),
        when=record.at,
    )


def _through_another_tool(summary: str, counter: Counter) -> Checkpoint | None:
    """Return the checkpoint of ours that another tool was given as its own summary; None for any other text."""
    message = Message("user", (Text(summary),))
    ours = recognise([message])
    if ours is None:
        return None
    tokens = message_tokens(message, counter)
    return Checkpoint(ours.text, ours.summary, pins=ours.pins, live=ours.live, tokens=tokens)


def _load(
    messages: Sequence[Message],
    order: Sequence[int],
    boundaries: Sequence[_Boundary],
    counter: Counter,
    dialect: str,
    *,
    times: Sequence[float | None] = (),
) -> Loaded:
    """Repair, chain, and place the boundaries. `order` lists the messages to read, by index."""
    repaired: Repaired = repair([messages[index] for index in order])
    loaded = Loaded([], {}, dialect, [(order[i], call) for i, call in repaired.orphans], repaired.changed)
    chain = _Chain(loaded, counter)
    waiting = sorted(boundaries, key=lambda boundary: boundary.at)
    left = _left(boundaries, [order[position] for position, _ in repaired.messages])
    for position, message in repaired.messages:
        while waiting and left[id(waiting[0])] == 0:
            chain.fold(waiting.pop(0))
        index = order[position]
        chain.say(message, index, times[index] if times else None)
        for boundary in waiting:
            left[id(boundary)] -= _stands_before(boundary, index)
    for boundary in waiting:
        chain.fold(boundary)
    return loaded


def _left(boundaries: Sequence[_Boundary], indices: Sequence[int]) -> dict[int, int]:
    """Count the messages that stand before each boundary, however a repair ordered them."""
    return {id(one): sum(_stands_before(one, index) for index in indices) for one in boundaries}


def _stands_before(boundary: _Boundary, index: int) -> bool:
    return index < boundary.at or index in boundary.quoted


class _Chain:
    """Entries, as they are chained one after the other."""

    def __init__(self, loaded: Loaded, counter: Counter) -> None:
        self._loaded = loaded
        self._counter = counter
        self._key = ""
        self._ids: dict[int, str] = {}
        self._said: list[Said] = []

    def _parent(self) -> str | None:
        return self._loaded.entries[-1].id if self._loaded.entries else None

    def say(self, message: Message, index: int, at: float | None) -> None:
        """Append a message."""
        tokens = message_tokens(message, self._counter)
        entry = said(message, parent=self._parent(), said_key=self._key, tokens=tokens, at=at)
        self._key = entry.said_key
        self._loaded.entries.append(entry)
        self._loaded.index[entry.id] = index
        self._ids.setdefault(index, entry.id)
        self._said.append(entry)

    def _told(self, summary: str) -> Said:
        """Return another system's summary as something a model said: nothing in it is the user's own word."""
        message = Message("assistant", (Text(summary),))
        return Said("", None, message, "", message_tokens(message, self._counter))

    def fold(self, boundary: _Boundary) -> None:
        """Append a boundary; its ledger is taken from what it folded where it brings none."""
        first = self._ids.get(boundary.first_kept) if boundary.first_kept is not None else None
        stop = next((i for i, entry in enumerate(self._said) if entry.id == first), len(self._said))
        folded = [*self._said[:stop], self._told(boundary.checkpoint.summary)]
        ledger: dict[str, Any] = boundary.ledger or msgspec.to_builtins(collect(folded))
        leading: list[str] = []
        for entry in self._said[:stop]:
            if entry.message.role not in ("system", "developer"):
                break
            leading.append(entry.id)
        quoted = tuple(self._ids[index] for index in boundary.quoted if index in self._ids)
        compacted = Compacted(
            id="",
            parent=None,
            checkpoint=boundary.checkpoint,
            receipt=boundary.receipt,
            first_kept=first,
            leading=tuple(leading),
            quoted=quoted,
            ledger=ledger,
            at=boundary.when,
        )
        self._loaded.entries.append(chained(compacted, self._parent()))


def as_recorded(records: Iterable[Record], counter: Counter) -> list[Said]:
    """Return the messages of a transcript in the order of the file, nothing repaired."""
    entries: list[Said] = []
    for record in records:
        if isinstance(record, MessageRecord):
            tokens = message_tokens(record.message, counter)
            before = entries[-1] if entries else None
            entries.append(
                said(
                    record.message,
                    parent=before.id if before else None,
                    said_key=before.said_key if before else "",
                    tokens=tokens,
                    at=record.at,
                )
            )
    return entries


def from_own(stream: BinaryIO, name: str) -> Loaded:
    """Read our own interchange form: the entries as they were written, each proved against its id.

    `entries` are the path to the leaf that the header names; to the newest entry where that one is missing.
    """
    warnings: list[str] = []
    header: dict[str, Any] = {}
    log = list(
        load(stream, name=name, warn=lambda warned: warnings.append(_warning(warned)), about=header.update)
    )
    loaded = from_entries(_path(log, header.get("leaf")))
    session = header.get("session")
    loaded.warnings, loaded.log = warnings, log
    loaded.session = session if isinstance(session, str) and session else None
    return loaded


def from_entries(entries: Sequence[Entry]) -> Loaded:
    """Take the entries of a path as they are stored; their notes say the model and the title."""
    spoken = [entry for entry in entries if isinstance(entry, Said)]
    native = next((e.message.native for e in reversed(spoken) if e.message.native is not None), None)
    notes = {entry.kind: entry.data for entry in entries if isinstance(entry, Noted)}
    return Loaded(
        entries=list(entries),
        index={entry.id: index for index, entry in enumerate(spoken)},
        dialect=native.dialect if native is not None else "openai-chat",
        model=notes.get("model", {}).get("model"),
        title=notes.get("title", {}).get("title"),
        format="foldline",
    )


def _path(log: Sequence[Entry], leaf: Any) -> list[Entry]:
    """Return the entries from the root to the leaf."""
    known = {entry.id: entry for entry in log}
    at = known.get(leaf) if isinstance(leaf, str) else None
    at = at or (log[-1] if log else None)
    path: list[Entry] = []
    while at is not None:
        path.append(at)
        at = known.get(at.parent) if at.parent is not None else None
    return path[::-1]


def with_notes(loaded: Loaded) -> list[Entry]:
    """Return the entries to store: those loaded, and behind them what the file says of its session.

    Our own form has its notes among its entries, and is stored with all its branches as it is.
    """
    if loaded.log:
        return list(loaded.log)
    known = {"title": loaded.title, "model": loaded.model}
    entries = list(loaded.entries)
    noted = {(e.kind, str(e.data)) for e in entries if isinstance(e, Noted)}
    for kind, value in known.items():
        data = {kind: value}
        if value and (kind, str(data)) not in noted:
            entries.append(chained(Noted("", None, kind, data), entries[-1].id if entries else None))
    return entries

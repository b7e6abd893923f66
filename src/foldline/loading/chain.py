"""Chain messages and the compactions between them into entries.

Files of other agents state facts next to a summary, in separate lists. GenCode: `keyDecisions`,
`filesModified`, `toolsUsed`. klaude-code: `details` with `read_files` and `modified_files`. pi: `details`
with `readFiles` and `modifiedFiles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, islice, takewhile
from typing import Any

import msgspec

from foldline.core.checkpoint.checkpoint import leads
from foldline.core.cut.repair import repair
from foldline.core.ledger.facts.kinds import FileFact, Item, Ledger, ToolFact
from foldline.core.ledger.table import bounded, extended, merge
from foldline.core.log.entries import Checkpoint, Compacted, Entry, Receipt, Said
from foldline.core.log.log import chained, said
from foldline.core.log.messages import Message
from foldline.core.measure.tokens import Counter, message_tokens
from foldline.core.secrets.derived import redact_facts
from foldline.core.secrets.entries import CleanEntries
from foldline.dialects.payload import items_of
from foldline.transcripts.lines import Row, text_or

_READ, _MODIFIED = ("read_files", "readFiles"), ("modified_files", "modifiedFiles")
_FORMATS_OF_NO_AGENT = ("json", "jsonl", "plain", "markdown", "foldline")
_NOTABLE = 3  # uses of a tool that a ledger keeps


class Loaded(msgspec.Struct):
    """Entries in path order, and where each message came from; `given` is the list that was read, if any.

    `index` maps an entry id to its place in the input (0-based among the messages); `orphans` are results
    left out because they answer no call: (index, call id). `repaired`: the order changed. For our own form,
    `log` has every branch in append order, and `session` is the id it had. `about` holds the facts that a
    transcript states about itself, by kind. `system` and `tools` are separate from the messages, in
    `system_dialect` ("": that of the messages).
    """

    entries: list[Entry]
    index: dict[str, int]
    dialect: str
    orphans: list[tuple[int, str]] = []
    repaired: bool = False
    system: Any = None
    system_dialect: str = ""
    tools: Any = None
    model: str | None = None
    title: str | None = None
    format: str = ""
    warnings: list[str] = []
    log: list[Entry] = []
    session: str | None = None
    about: dict[str, dict[str, Any]] = {}
    given: Sequence[Any] | None = None

    @property
    def agent(self) -> str:
        """The agent that wrote the file; "" for message lists, Markdown and our own form, which name none."""
        return "" if self.format in _FORMATS_OF_NO_AGENT else self.format

    def number_by(self, places: Sequence[int]) -> None:
        """Number messages by input item: a message may consist of several."""
        self.index = {entry: places[index] for entry, index in self.index.items()}
        self.orphans = [(places[index], call) for index, call in self.orphans]


class PlacedBoundary(msgspec.Struct):
    """A compaction to place before message `at`; `first_kept` is a message's index (None: nothing is kept).

    `ledger` None: it is collected from the folded messages.
    """

    at: int
    checkpoint: Checkpoint
    first_kept: int | None = None
    quoted: tuple[int, ...] = ()
    ledger: dict[str, Any] | None = None
    receipt: Receipt = Receipt(reason="imported")
    when: float | None = None


class Source(msgspec.Struct):
    """Messages to chain, the order to read them in (None: as given), and boundaries.

    `times` are the Unix times of the messages, if known.
    """

    messages: Sequence[Message]
    dialect: str
    order: Sequence[int] | None = None
    boundaries: Sequence[PlacedBoundary] = ()
    times: Sequence[float | None] = ()


def chain(source: Source, counter: Counter, *, ledgers: bool = True) -> Loaded:
    """Repair the messages, chain them, and place the boundaries between them.

    Without `ledgers`, boundaries get empty ledgers unless they have one: enough for measuring.
    """
    order = range(len(source.messages)) if source.order is None else source.order
    repaired = repair([source.messages[index] for index in order])
    orphans = [(order[position], call) for position, call in repaired.orphans]
    loaded = Loaded([], {}, source.dialect, orphans, repaired.changed)
    entries = _EntryChain(loaded, counter, ledgers=ledgers)
    indices = [order[position] for position, _ in repaired.messages]
    waiting = sorted(source.boundaries, key=lambda boundary: boundary.at)[::-1]
    last = _last_before(waiting, indices)
    for number, (_, message) in enumerate(repaired.messages):
        while waiting and number > last[-1]:
            last.pop()
            entries.fold(waiting.pop())
        index = indices[number]
        entries.say(message, index, source.times[index] if source.times else None)
    for boundary in reversed(waiting):
        entries.fold(boundary)
    return loaded


def _last_before(boundaries: Sequence[PlacedBoundary], indices: Sequence[int]) -> list[int]:
    """Return for each boundary the last place in `indices` of a message that comes before it, or -1."""
    newest = [-1] * (max((*indices, *(boundary.at for boundary in boundaries)), default=0) + 2)
    place_of = {index: place for place, index in enumerate(indices)}
    for index, place in place_of.items():
        newest[index + 1] = place
    below = list(accumulate(newest, max))  # element i: the last place of an index below i
    return [
        max(below[boundary.at], *(place_of.get(index, -1) for index in (-1, *boundary.quoted)))
        for boundary in boundaries
    ]


class _EntryChain:
    """Entries, each chained to the one before."""

    def __init__(self, loaded: Loaded, counter: Counter, *, ledgers: bool) -> None:
        self._loaded = loaded
        self._with_ledgers = ledgers
        self._counter = counter
        self._key = ""
        self._ids: dict[int, str] = {}
        self._said: list[Said] = []
        self._place_of: dict[str, int] = {}  # an entry's id -> its place in `_said`
        self._folded = 0  # the messages whose facts are in `_facts`
        self._facts = Ledger()
        self._clean = CleanEntries()

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
        self._place_of.setdefault(entry.id, len(self._said))
        self._said.append(entry)

    def fold(self, boundary: PlacedBoundary) -> None:
        """Append a boundary; without a ledger it gets one from the messages that it folded."""
        first = self._ids.get(boundary.first_kept) if boundary.first_kept is not None else None
        stop = self._place_of.get(first, len(self._said)) if first is not None else len(self._said)
        compacted = Compacted(
            id="",
            parent=None,
            checkpoint=boundary.checkpoint,
            receipt=boundary.receipt,
            first_kept=first,
            leading=_leading(self._said, stop),
            quoted=tuple(self._ids[index] for index in boundary.quoted if index in self._ids),
            ledger=boundary.ledger or self._ledger(stop, boundary),
            at=boundary.when,
        )
        self._loaded.entries.append(chained(compacted, self._parent()))

    def _ledger(self, stop: int, boundary: PlacedBoundary) -> dict[str, Any]:
        """Extend the facts to the first `stop` messages; only those since the last boundary are new.

        Another agent's summary adds none: the next fold carries it over as text.
        """
        if not self._with_ledgers:
            return {}
        if stop > self._folded:
            self._facts = extended(bounded(self._facts), self._clean(self._said[self._folded : stop]))
            self._folded = stop
        self._facts = _with_stated(self._facts, boundary.receipt.origin)
        return msgspec.to_builtins(self._facts)


def _leading(messages: Sequence[Said], stop: int) -> tuple[str, ...]:
    """Return the ids of the leading messages, which stay at the head, among the first `stop`."""
    leading = takewhile(lambda entry: leads(entry.message), islice(messages, stop))
    return tuple(entry.id for entry in leading)


# ---- facts that a file states


def _with_stated(ledger: Ledger, origin: dict[str, Any]) -> Ledger:
    """Add the facts that a file states and its messages do not show; they cite no entry."""
    facts = Row(origin)
    known_files = {fact.path for fact in ledger.files}
    known_tools = {fact.name for fact in ledger.tools}
    stored_items = {item.text for item in ledger.items}
    decisions = [Item("summary", f"Decided: {text}") for text in _texts(facts, "keyDecisions")]
    stated = Ledger(
        files=tuple(fact for fact in _files(facts) if fact.path not in known_files),
        tools=tuple(fact for fact in _tools(facts) if fact.name not in known_tools),
        items=tuple(item for item in decisions if item.text not in stored_items),
    )
    return ledger if stated == Ledger() else merge(redact_facts(stated), ledger)


def _files(facts: Row) -> list[FileFact]:
    details = facts.inner("details")
    statuses = dict.fromkeys(_texts(details, *_READ), "read")
    statuses |= dict.fromkeys([*_texts(details, *_MODIFIED), *_texts(facts, "filesModified")], "modified")
    return [FileFact(path, status) for path, status in statuses.items()]


def _tools(facts: Row) -> list[ToolFact]:
    return [
        ToolFact(use["tool"], use.count("count") or 1, tuple(_texts(use, "notableUses")[:_NOTABLE]))
        for use in facts.rows("toolsUsed")
        if use.text("tool")
    ]


def _texts(facts: Row, *keys: str) -> list[str]:
    texts = [text_or(value).strip() for key in keys for value in items_of(facts.get(key))]
    return list(dict.fromkeys(text for text in texts if text))


def absent_messages(origin: dict[str, Any]) -> int:
    """Return how many folded messages the file lacks, as the reader counted them."""
    return Row(origin).count("messages_absent") or 0

"""The fork of a client's history: all of it is shown, a summary and what follows it is sent.

It is folded by its policy, by hand, and where it would not fit its model's window.

Source of the shape: Moldable's proposal, `CompactionState` (camelCase; snake_case is taken too).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Annotated, Any, Final, Literal, cast

import msgspec

from foldline.core.decide.policy import usable_of
from foldline.core.decide.presets import preset
from foldline.core.log.codec import encode, whole_escapes
from foldline.core.log.entries import Compacted, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.dialects import UI_MESSAGE, get
from foldline.errors import CompactionFailed, DialectError, FloorExceeded, InputError
from foldline.exports.base import iso
from foldline.loading import from_records, with_notes
from foldline.session.events import WarningGiven
from foldline.session.session import Session
from foldline.stores import MemoryStore
from foldline.transcripts import read

SESSION: Final = "fork"
PART: Final = "data-compaction"  # the part of a UI message that carries a state
_SNAKE: Final = re.compile(r"_([a-z])")


class Asking(msgspec.Struct, frozen=True, rename="camel"):
    """What a client asks with: its whole history, and the state that it was given last.

    Without `compactionState` the newest that its messages carry counts, as `useChat` keeps it in them; null
    is none. `apiMessages` is what it believes to be sent; where that disagrees, messages and state win.
    `compact` folds now, whatever the policy says, `instructions` say what the summary looks at. `chunks` says
    how a turn tells of a fold: as a data part, or by the chunk of Moldable's proposal.
    """

    messages: list[Any]
    api_messages: list[Any] | None = None
    compaction_state: Any = msgspec.UNSET
    model: str | None = None
    window: Annotated[int, msgspec.Meta(ge=1)] | None = None
    policy: str | None = None
    system: str | None = None
    tools: list[Any] | None = None
    compact: bool = False
    instructions: str | None = None
    chunks: Literal["ai-sdk", "moldable"] = "ai-sdk"

    @property
    def state(self) -> Any:
        """The state that counts, as the client gave it."""
        if self.compaction_state is not msgspec.UNSET:
            return self.compaction_state
        return next((part.get("data") for part in _parts(self.messages) if part.get("type") == PART), None)


class Fork(msgspec.Struct, frozen=True):
    """A client's history as a session in memory, but for its newest message, which begins the turn.

    `lead` system messages stand before it; `places` are the indices of the messages by their entries' ids.
    """

    store: MemoryStore
    messages: list[Any]
    lead: int
    places: dict[str, int]
    state: dict[str, Any] | None
    warnings: tuple[str, ...]

    @property
    def newest(self) -> list[Any]:
        """The message that begins the turn, if there is one."""
        return [_bare(one) for one in self.messages[max(self.lead, len(self.messages) - 1) :]]

    def system_with(self, given: str | None) -> str | None:
        """Return the system prompt: the one given apart, and the system messages at the head."""
        said = [get(UI_MESSAGE).decode(one).text for one in self.messages[: self.lead]]
        return "\n\n".join(text for text in (given, *said) if text) or None

    @property
    def api_messages(self) -> list[Any]:
        """What the client sends by its messages and its state: `buildApiMessages` of the proposal."""
        if self.state is None:
            return self.messages
        return [self.state["summaryMessage"], *self.messages[self.state["apiStartIndex"] :]]


async def forked(asking: Asking) -> Fork:
    """Read a history and its state into a store in memory; raises DialectError with the message's index."""
    for index, payload in enumerate(asking.messages):
        get(UI_MESSAGE).decode(payload, index=index)
    lead = _leading(asking.messages)
    state, warnings = _state(asking.state, asking.messages)
    rest = [_bare(one) for one in asking.messages[lead:-1]]
    told = None if state is None else {**state, "apiStartIndex": max(0, state["apiStartIndex"] - lead)}
    document = encode({"id": SESSION, "messages": rest, "compaction": told})
    loaded = from_records(read(BytesIO(document), name="messages"), OFFLINE)
    store = MemoryStore()
    if entries := with_notes(loaded):
        await store.append(SESSION, entries, seen=None)
    places = {entry: lead + place for entry, place in loaded.index.items()}
    fork = Fork(store, asking.messages, lead, places, state, (*warnings, *loaded.warnings))
    if asking.api_messages is not None and asking.api_messages != fork.api_messages:
        warning = "apiMessages are not what messages and compactionState make: those two count"
        fork = msgspec.structs.replace(fork, warnings=(*fork.warnings, warning))
    return fork


async def new_state(fork: Fork, newest: Sequence[str]) -> dict[str, Any] | None:
    """Return the state that the newest boundary makes; `newest` are the entries of the newest message."""
    said: list[str] = []
    found: tuple[Compacted, int] | None = None  # with the number of messages before it
    async for entry in fork.store.path(SESSION):
        if isinstance(entry, Said):
            said.append(entry.id)
        elif isinstance(entry, Compacted):
            found = entry, len(said)
    if found is None:
        return None
    boundary, before = found
    kept = said[said.index(boundary.first_kept) :] if boundary.first_kept in said else said[before:]
    places = fork.places | dict.fromkeys(newest, len(fork.messages) - 1)
    start = next((places[one] for one in kept if one in places), len(fork.messages))
    version = boundary.checkpoint.number
    summary = [{"type": "text", "text": boundary.checkpoint.text}]
    return {
        "version": version,
        "compactedAt": iso(boundary.at or 0.0),
        "summaryMessage": {"id": f"compaction-summary-v{version}", "role": "user", "parts": summary},
        "apiStartIndex": start,
        "summarizedRange": {"fromIndex": 0, "toIndex": start - 1, "messageCount": start},
    }


class Folding:
    """A history as a session in memory, what became of it, and what there is to warn of."""

    def __init__(self, fork: Fork, asking: Asking, session: Session) -> None:
        self.fork = fork
        self.asking = asking
        self.session = session
        self.state = fork.state
        self.changed = False
        self.warnings = list(fork.warnings)
        self._newest: list[str] = []  # entries of the newest message
        self._summaries: int = 0  # that `state` tells of
        session.on("warning", self._warned)

    def _warned(self, event: WarningGiven) -> None:
        self.warnings.append(event.text)

    async def begin(self) -> None:
        """Append the newest message, and fold where that is asked for."""
        self._summaries = (await self.session.stats()).summaries
        self._newest = await self.session.append(*self.fork.newest)
        if self.asking.compact:
            await self.session.compact(self.asking.instructions)

    async def fitted(self) -> list[Any]:
        """Return the messages to send, folded where the policy says so, and where they would not fit.

        A policy may count less than is sent: Moldable's counts text alone, and folds no history under ten
        messages. What exceeds the window by our own count is folded all the same, to what `foldline` leaves
        of a window; where that cannot be, it is warned of.
        """
        session, window = self.session, self.session.setup.window
        messages = await session.context()
        if (size := session.view_tokens) <= window.input_limit:
            return messages
        try:
            await session.compact(target=usable_of(preset("foldline"), window))
        except (CompactionFailed, FloorExceeded) as error:
            fits = f"{window.input_limit:,} tokens fit, and {size:,} are sent"
            self.warnings.append(f"it may not fit the model ({fits} by our count): {error}")
        return await session.context()

    async def folded(self) -> bool:
        """Whether it was folded since the last time that this was asked: then `state` is the new one."""
        summaries = (await self.session.stats()).summaries
        if summaries == self._summaries:
            return False
        self._summaries, self.changed = summaries, True
        self.state = await new_state(self.fork, self._newest)
        return True


def to_send(fork: Fork, state: dict[str, Any] | None, view: list[Any]) -> list[Any]:
    """Return the UI messages to send: a view, its checkpoint under the name that the state gives it."""
    messages = list(view)
    if state is not None:
        place = next((place for place, one in enumerate(messages) if _is_checkpoint(one)), None)
        if place is not None:
            messages[place] = {**state["summaryMessage"], "role": messages[place]["role"]}
    return [*fork.messages[: fork.lead], *messages]


def _bare(message: Any) -> Any:
    """Return a message without the parts that carry a state: they are no words of anybody's."""
    fields = cast("dict[str, Any]", message)
    if not any(part.get("type") == PART for part in _parts([message])):
        return fields
    parts: list[Any] = fields["parts"]
    return {**fields, "parts": [part for part in parts if part.get("type") != PART]}


def _is_checkpoint(message: Any) -> bool:
    parts = [*_parts([message])]
    return bool(parts) and str(parts[0].get("text", "")).startswith("<foldline-checkpoint ")


def _parts(messages: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the parts of UI messages, the newest first."""
    for message in reversed(messages):
        parts: Any = cast("dict[str, Any]", message).get("parts") if isinstance(message, dict) else None
        for part in reversed(cast("list[Any]", parts) if isinstance(parts, list) else []):
            if isinstance(part, dict):
                yield cast("dict[str, Any]", part)


def camel(value: Any) -> Any:
    """Return a JSON value with the keys of its objects in camelCase; messages stay as they are."""
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    named = {_SNAKE.sub(lambda found: found[1].upper(), key): item for key, item in fields.items()}
    kept = ("messages", "apiMessages", "tools", "summaryMessage")
    return {key: item if key in kept else camel(item) for key, item in named.items()}


def asking_of(raw: bytes) -> Asking:
    """Read a request; raises InputError that says what is wrong and where."""
    try:
        return msgspec.convert(camel(msgspec.json.decode(whole_escapes(raw))), Asking)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"the body cannot be read: {error}") from error


def _leading(messages: list[Any]) -> int:
    roles = [cast("dict[str, Any]", one).get("role") if isinstance(one, dict) else None for one in messages]
    return next((place for place, role in enumerate(roles) if role != "system"), len(roles))


def _state(given: Any, messages: list[Any]) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return a client's state as it can be used; one that cannot be read is a warning, and all is sent."""
    if given is None:
        return None, ()
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    start, summary = fields.get("apiStartIndex"), fields.get("summaryMessage")
    if not isinstance(start, int) or isinstance(start, bool) or start < 0 or not isinstance(summary, dict):
        return None, (
            "compactionState cannot be read, and is left out: it needs apiStartIndex and summaryMessage",
        )
    try:
        get(UI_MESSAGE).decode(summary)
    except DialectError as error:
        return None, (f"compactionState cannot be read, and is left out: its summaryMessage: {error}",)
    if start <= len(messages):
        return fields, ()
    users = [place for place, one in enumerate(messages) if cast("dict[str, Any]", one).get("role") == "user"]
    begin = users[-1] if users else len(messages)
    span = {"fromIndex": 0, "toIndex": begin - 1, "messageCount": begin}
    warning = (
        f"there are {len(messages)} messages, fewer than when they were folded: apiStartIndex is {begin} now"
    )
    return {**fields, "apiStartIndex": begin, "summarizedRange": span}, (warning,)

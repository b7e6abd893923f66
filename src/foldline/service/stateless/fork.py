"""The fork of a client's history: the client shows all of it, and sends a summary and what follows.

It is folded by its policy, on request, and when it would not fit the model's window.

Source of the shape: Moldable's proposal, `CompactionState` (camelCase; snake_case is taken too).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
PART: Final = "data-compaction"  # the part of a UI message that has a state
_SNAKE: Final = re.compile(r"_([a-z])")


class Asking(msgspec.Struct, frozen=True, rename="camel"):
    """A client's request: its whole history, and the last state that it received.

    Without `compactionState` the newest one in the messages is used, where `useChat` keeps it; null is none.
    `apiMessages` is what the client expects to be sent; messages and state take precedence. `compact` folds
    now, regardless of the policy, with `instructions` for the summary. `chunks`: how a turn reports a fold,
    as a data part or as the chunk of Moldable's proposal.
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
        """The current state, as the client sent it."""
        if self.compaction_state is not msgspec.UNSET:
            return self.compaction_state
        return next((part.get("data") for part in _parts(self.messages) if part.get("type") == PART), None)


class Fork:
    """A client's history as a session in memory, its state after folds, and warnings.

    The session begins without the newest message, which `begin` appends. `lead` is the number of system
    messages before it, `places` the message indices by entry id.
    """

    def __init__(
        self,
        asking: Asking,
        session: Session,
        *,
        lead: int,
        places: dict[str, int],
        state: dict[str, Any] | None,
        warnings: list[str],
    ) -> None:
        self.asking = asking
        self.session = session
        self.state = state
        self.warnings = warnings
        self.changed = False
        self._lead = lead
        self._places = places
        self._newest: list[str] = []  # entries of the newest message
        self._summaries: int = 0  # included in `state`
        session.on("warning", self._on_warning)

    def _on_warning(self, event: WarningGiven) -> None:
        self.warnings.append(event.text)

    async def begin(self) -> None:
        """Append the newest message, and fold if requested."""
        messages = self.asking.messages
        self._summaries = (await self.session.stats()).summaries
        newest = messages[max(self._lead, len(messages) - 1) :]
        self._newest = await self.session.append(*map(_without_state, newest))
        if self.asking.compact:
            await self.session.compact(self.asking.instructions)

    async def fitted(self) -> list[Any]:
        """Return the messages to send, folded by the policy, or because they would not fit.

        A policy may count less than is sent: Moldable's counts only text, and folds no history under ten
        messages. A history over the window by our count is folded to the target of the policy `foldline`; if
        that fails, a warning is added.
        """
        session, window = self.session, self.session.setup.window
        messages = await session.context()
        if (size := session.view_tokens) <= window.input_limit:
            return messages
        try:
            await session.compact(target=usable_of(preset("foldline"), window))
        except (CompactionFailed, FloorExceeded) as error:
            sizes = f"{size:,} tokens of {window.input_limit:,}"
            self.warnings.append(f"the request may not fit the model ({sizes} by our count): {error}")
        return await session.context()

    async def folded(self) -> bool:
        """Return whether a fold was made since the last call, and update `state`."""
        summaries = (await self.session.stats()).summaries
        if summaries == self._summaries:
            return False
        self._summaries, self.changed = summaries, True
        self.state = await self._newest_state()
        return True

    async def _newest_state(self) -> dict[str, Any] | None:
        """Return the state after the newest fold."""
        messages: list[str] = []
        newest_fold: tuple[Compacted, int] | None = None  # with the number of messages before it
        async for entry in self.session.store.path(SESSION):
            if isinstance(entry, Said):
                messages.append(entry.id)
            elif isinstance(entry, Compacted):
                newest_fold = entry, len(messages)
        if newest_fold is None:
            return None
        boundary, before = newest_fold
        if boundary.first_kept in messages:
            before = messages.index(boundary.first_kept)
        count = len(self.asking.messages)
        places = self._places | dict.fromkeys(self._newest, count - 1)
        start = next((places[entry] for entry in messages[before:] if entry in places), count)
        version = boundary.checkpoint.number
        summary = [{"type": "text", "text": boundary.checkpoint.text}]
        return {
            "version": version,
            "compactedAt": iso(boundary.at or 0.0),
            "summaryMessage": {"id": f"compaction-summary-v{version}", "role": "user", "parts": summary},
            "apiStartIndex": start,
            "summarizedRange": {"fromIndex": 0, "toIndex": start - 1, "messageCount": start},
        }

    def to_send(self, view: list[Any]) -> list[Any]:
        """Return the UI messages to send: a view, its checkpoint with the id that the state gives it."""
        messages = list(view)
        if self.state is not None:
            place = next((place for place, message in enumerate(messages) if _is_checkpoint(message)), None)
            if place is not None:
                messages[place] = {**self.state["summaryMessage"], "role": messages[place]["role"]}
        return [*self.asking.messages[: self._lead], *messages]


async def forked(asking: Asking, opener: Callable[[MemoryStore, str | None], Session]) -> Fork:
    """Read a history and its state into a store in memory, and open it with its system prompt.

    Raises DialectError with the message's index.
    """
    said = [get(UI_MESSAGE).decode(payload, index=index) for index, payload in enumerate(asking.messages)]
    lead = _count_leading(asking.messages)
    system = "\n\n".join(text for text in (asking.system, *(one.text for one in said[:lead])) if text)
    state, warnings = _readable_state(asking.state, asking.messages)
    rest = [_without_state(one) for one in asking.messages[lead:-1]]
    shifted = None if state is None else {**state, "apiStartIndex": max(0, state["apiStartIndex"] - lead)}
    document = encode({"id": SESSION, "messages": rest, "compaction": shifted})
    loaded = from_records(read(BytesIO(document), name="messages"), OFFLINE)
    store = MemoryStore()
    if entries := with_notes(loaded):
        await store.append(SESSION, entries, seen=None)
    warnings += loaded.warnings
    if asking.api_messages is not None and asking.api_messages != _api_messages(asking.messages, state):
        warnings.append("apiMessages differ from messages and compactionState and were ignored")
    places = {entry: lead + place for entry, place in loaded.index.items()}
    session = opener(store, system or None)
    return Fork(asking, session, lead=lead, places=places, state=state, warnings=warnings)


def _api_messages(messages: list[Any], state: dict[str, Any] | None) -> list[Any]:
    """Return what messages and state make the client send: `buildApiMessages` of the proposal."""
    return messages if state is None else [state["summaryMessage"], *messages[state["apiStartIndex"] :]]


def _without_state(message: Any) -> Any:
    """Return a message without parts that have a state: they are not part of the conversation."""
    fields = cast("dict[str, Any]", message)
    if not any(part.get("type") == PART for part in _parts([message])):
        return fields
    parts: list[Any] = fields["parts"]
    return {**fields, "parts": [part for part in parts if part.get("type") != PART]}


def _is_checkpoint(message: Any) -> bool:
    parts = [*_parts([message])]
    return bool(parts) and str(parts[0].get("text", "")).startswith("<foldline-checkpoint ")


def _parts(messages: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the parts of UI messages, newest first."""
    for message in reversed(messages):
        parts: Any = cast("dict[str, Any]", message).get("parts") if isinstance(message, dict) else None
        for part in reversed(cast("list[Any]", parts) if isinstance(parts, list) else []):
            if isinstance(part, dict):
                yield cast("dict[str, Any]", part)


def camel(value: Any) -> Any:
    """Return a JSON value with camelCase keys; messages are not changed."""
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    renamed = {_SNAKE.sub(lambda found: found[1].upper(), key): item for key, item in fields.items()}
    unchanged = ("messages", "apiMessages", "tools", "summaryMessage")
    return {key: item if key in unchanged else camel(item) for key, item in renamed.items()}


def asking_of(raw: bytes) -> Asking:
    """Decode a request; raises InputError with the place of the problem."""
    try:
        return msgspec.convert(camel(msgspec.json.decode(whole_escapes(raw))), Asking)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"the body cannot be read: {error}") from error


def _count_leading(messages: list[Any]) -> int:
    places = enumerate(messages)
    return next((place for place, message in places if _role(message) != "system"), len(messages))


def _role(message: Any) -> Any:
    return cast("dict[str, Any]", message).get("role") if isinstance(message, dict) else None


def _readable_state(value: Any, messages: list[Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """Return a client's state and warnings; an invalid state is ignored, and the whole history is sent."""
    if value is None:
        return None, []
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    start, summary = fields.get("apiStartIndex"), fields.get("summaryMessage")
    if not isinstance(start, int) or isinstance(start, bool) or start < 0 or not isinstance(summary, dict):
        return None, ["compactionState is invalid and was ignored: it needs apiStartIndex and summaryMessage"]
    try:
        get(UI_MESSAGE).decode(summary)
    except DialectError as error:
        return None, [f"compactionState is invalid and was ignored: its summaryMessage: {error}"]
    if start <= len(messages):
        return fields, []
    users = [place for place, message in enumerate(messages) if _role(message) == "user"]
    newest_user = users[-1] if users else len(messages)
    span = {"fromIndex": 0, "toIndex": newest_user - 1, "messageCount": newest_user}
    warning = (
        f"there are fewer messages ({len(messages)}) than at the fold: apiStartIndex is now {newest_user}"
    )
    return {**fields, "apiStartIndex": newest_user, "summarizedRange": span}, [warning]

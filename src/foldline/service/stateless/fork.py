"""The fork of a client's history: all of it is shown, a summary and what follows it is sent.

Source of the shape: Moldable's proposal, `CompactionState` (camelCase; snake_case is taken too).
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Annotated, Any, Final, cast

import msgspec

from foldline.core.log.codec import encode
from foldline.core.measure.tokens import OFFLINE
from foldline.dialects import UI_MESSAGE, get
from foldline.errors import DialectError, InputError
from foldline.loading import from_records, with_notes
from foldline.stores import MemoryStore
from foldline.transcripts import read

SESSION: Final = "fork"
_SNAKE: Final = re.compile(r"_([a-z])")


class Asking(msgspec.Struct, frozen=True, rename="camel"):
    """What a client asks with: its whole history, and the state that it was given last.

    `apiMessages` is what it believes to be sent; where that disagrees, messages and state win. `compact`
    folds now, whatever the policy says, `instructions` say what the summary looks at.
    """

    messages: list[Any]
    api_messages: list[Any] | None = None
    compaction_state: Any = None
    model: str | None = None
    window: Annotated[int, msgspec.Meta(ge=1)] | None = None
    policy: str | None = None
    system: str | None = None
    tools: list[Any] | None = None
    compact: bool = False
    instructions: str | None = None


class Fork(msgspec.Struct, frozen=True):
    """A client's history as a session in memory, but for its newest message, which begins the turn.

    `lead` system messages stand before it.
    """

    store: MemoryStore
    messages: list[Any]
    lead: int
    state: dict[str, Any] | None
    warnings: tuple[str, ...]

    @property
    def newest(self) -> list[Any]:
        """The message that begins the turn, if there is one."""
        return self.messages[-1:] if len(self.messages) > self.lead else []

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
    state, warnings = _state(asking.compaction_state, asking.messages)
    rest = asking.messages[lead:-1] if len(asking.messages) > lead else []
    told = None if state is None else {**state, "apiStartIndex": max(0, state["apiStartIndex"] - lead)}
    document = encode({"id": SESSION, "messages": rest, "compaction": told})
    loaded = from_records(read(BytesIO(document), name="messages"), OFFLINE)
    store = MemoryStore()
    if entries := with_notes(loaded):
        await store.append(SESSION, entries, seen=None)
    fork = Fork(store, asking.messages, lead, state, (*warnings, *loaded.warnings))
    if asking.api_messages is not None and asking.api_messages != fork.api_messages:
        warning = "apiMessages are not what messages and compactionState make: those two count"
        fork = msgspec.structs.replace(fork, warnings=(*fork.warnings, warning))
    return fork


def new_state(fork: Fork, exported: bytes) -> dict[str, Any] | None:
    """Return the state after a fold, as the export to Moldable's form has it."""
    state = msgspec.json.decode(exported)["compaction"]
    if state is None:
        return None
    version = (fork.state or {}).get("version")
    start = state["apiStartIndex"] + fork.lead
    number = max(state["version"], version + 1 if isinstance(version, int) else 1)
    message = {**state["summaryMessage"], "id": f"compaction-summary-v{number}"}
    span = {"fromIndex": 0, "toIndex": start - 1, "messageCount": start}
    return {
        **state,
        "version": number,
        "summaryMessage": message,
        "apiStartIndex": start,
        "summarizedRange": span,
    }


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
        return msgspec.convert(camel(msgspec.json.decode(raw)), Asking)
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

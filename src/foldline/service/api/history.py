"""A session as it is read: its history for display, its view, its figures, its folded past."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from foldline.agent.spending import Spending, spent
from foldline.core.cut.edits import folds, summary_of
from foldline.core.decide.presets import resolve
from foldline.core.decide.price import Price
from foldline.core.decide.triggers import thresholds
from foldline.core.log.codec import encode_utf8
from foldline.core.log.entries import Compacted, Pruned, Receipt, Said
from foldline.core.log.log import undone
from foldline.core.log.messages import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Usage
from foldline.dialects import get
from foldline.service.api.operation import ApiCall, Offset, Page, operation
from foldline.service.api.sessions import AT, HitList
from foldline.session.recall import PASSAGE, EntryInfo, Passage, Standing, as_text
from foldline.session.session import Session
from foldline.session.view import Stats
from foldline.stores.base import backwards

EntryId: TypeAlias = Annotated[str, msgspec.Meta(max_length=200)]


class HistoryPage(msgspec.Struct, frozen=True):
    """Which part of a history: the newest `limit` items, or those before an entry."""

    limit: Page = 50
    before: EntryId | None = None


class ShownPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a message as text: words, thinking, a call (`name`, arguments in JSON), a result, media.

    `call` is the id by which a call and its result name each other.
    """

    kind: Literal["text", "thinking", "call", "result", "media", "other"]
    text: str
    name: str = ""
    failed: bool = False
    call: str = ""


class ShownMessage(msgspec.Struct, frozen=True, tag="message", tag_field="kind"):
    """A message of a history: where it stands, its text and parts, and itself in the session's dialect.

    `how` is kept, folded, excluded, blanked, reduced, elided, stripped or repaired; `native` is one message
    as a rule. `tokens` is its size, `at` Unix time; `injected` says that a program wrote it, not the user.
    """

    entry: str
    role: str
    how: Standing
    text: str
    native: list[Any]
    tokens: int
    at: float | None
    pinned: bool
    parts: list[ShownPart]
    injected: bool = False
    usage: Usage | None = None


Made = Literal["compaction", "prune", "exclusion"]


class ShownBoundary(msgspec.Struct, frozen=True, tag="boundary", tag_field="kind"):
    """A boundary of a history: a compaction, a prune or an exclusion, its receipt and summary.

    `undone` says that it was.
    """

    entry: str
    made: Made
    receipt: Receipt
    summary: str | None
    undone: bool
    at: float | None


class HistoryResult(msgspec.Struct, frozen=True):
    """Messages and boundaries of the path, oldest first; `before` asks for those before them (null: none)."""

    items: list[ShownMessage | ShownBoundary]
    before: str | None
    leaf: str | None


class ViewResult(msgspec.Struct, frozen=True):
    """What is sent to the model: messages in a dialect, with the system prompt and tools that stand beside.

    `tokens` is its size by Foldline's own count; `max_tokens` the most that the reply may take, where that is
    limited.
    """

    dialect: str
    messages: list[Any]
    system: Any
    tools: Any
    tokens: int
    leaf: str | None
    max_tokens: int | None = None


class StatsResult(msgspec.Struct, frozen=True):
    """The figures of a session, and what its replies and summaries took: usage and dollars.

    `system_tokens` and `tool_tokens` are given apart from the messages. Past `folds_at` tokens it is folded
    by itself (null: never). `price` is the model's, where it is known.
    """

    stats: Stats
    spent: Spending
    model: str | None
    leaf: str | None
    system_tokens: int = 0
    tool_tokens: int = 0
    folds_at: int | None = None
    price: Price | None = None


class RecallQuery(msgspec.Struct, frozen=True):
    """What to recall: words of messages, folded ones included."""

    q: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
    limit: Page = 20


class PassageQuery(msgspec.Struct, frozen=True):
    """Which part of a message: `limit` characters from `offset`."""

    offset: Offset = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = PASSAGE


class FoldedList(msgspec.Struct, frozen=True):
    """Messages that the view does not show as received, oldest first."""

    entries: list[EntryInfo]


@operation("GET", f"{AT}/history")
async def read_history(call: ApiCall, query: HistoryPage) -> HistoryResult:
    """Show what was said, folded or not, with boundaries: a page."""
    return await history_page(call, query)


async def history_page(call: ApiCall, query: HistoryPage, *, as_sent: bool = True) -> HistoryResult:
    """Return a page of a history; without `as_sent`, its messages lack `text` and `native`."""
    session = call.session
    items: list[Said | Compacted | Pruned] = []
    leaf = await session.store.leaf(session.id)  # of what is shown, whatever is said meanwhile
    async for entry in backwards(session.store, session.id, leaf=leaf, before=query.before):
        if isinstance(entry, Said | Compacted | Pruned):
            items.append(entry)
        if len(items) > query.limit:
            break
    more = len(items) > query.limit
    items = items[: query.limit][::-1]
    infos = {info.entry: info for info in await session.entries(query.limit, query.before)}
    out = undone(await session.store.marks(session.id, kinds=["lifted"]))
    shown = [
        _message(session, one, infos.get(one.id), as_sent=as_sent)
        if isinstance(one, Said)
        else shown_boundary(one, out)
        for one in items
    ]
    return HistoryResult(shown, items[0].id if items and more else None, leaf)


def _message(session: Session, entry: Said, info: EntryInfo | None, *, as_sent: bool) -> ShownMessage:
    return ShownMessage(
        entry=entry.id,
        role=entry.message.role,
        how=info.how if info is not None else "kept",
        text=as_text(entry) if as_sent else "",
        native=get(session.dialect).render([(entry.message, ())]).messages if as_sent else [],
        tokens=entry.tokens,
        at=entry.at,
        pinned=info is not None and info.pinned,
        parts=[shown_part(part) for part in entry.message.parts],
        injected=entry.message.injected,
        usage=entry.message.usage,
    )


def shown_part(part: Part) -> ShownPart:
    """Return a part as text."""
    match part:
        case Text(text):
            return ShownPart("text", text)
        case Thinking(text):
            return ShownPart("thinking", text)
        case ToolCall(key, name, given):
            words = given if isinstance(given, str) else msgspec.json.format(encode_utf8(given)).decode()
            return ShownPart("call", words, name, call=key)
        case ToolResult(key, content, is_error):
            words = "\n".join(one.text or f"[{one.name}]" for one in map(shown_part, content))
            return ShownPart("result", words, failed=is_error, call=key)
        case Media(kind, mime, _, _, name):
            return ShownPart("media", "", " ".join(one for one in (kind, mime, name) if one))
        case Opaque(_, kind):
            return ShownPart("other", "", kind)


def _made(entry: Compacted | Pruned) -> Made:
    if folds(entry):
        return "compaction"
    return "exclusion" if isinstance(entry, Pruned) and entry.excludes else "prune"


def shown_boundary(entry: Compacted | Pruned, out: Collection[str]) -> ShownBoundary:
    """Return a boundary as it is shown; `out` are the ids of those that are undone."""
    return ShownBoundary(
        entry=entry.id,
        made=_made(entry),
        receipt=entry.receipt,
        summary=summary_of(entry) if folds(entry) else None,
        undone=entry.id in out,
        at=entry.at,
    )


def view_of(session: Session, messages: list[Any] | None = None) -> ViewResult:
    """Return a session's view; `messages` where they were handed out already."""
    request = session.prefix()
    return ViewResult(
        dialect=session.dialect,
        messages=request.messages if messages is None else list(messages),
        system=request.system,
        tools=request.tools,
        tokens=session.view_tokens,
        leaf=session.leaf,
        max_tokens=session.max_tokens,
    )


@operation("GET", f"{AT}/view")
async def read_view(call: ApiCall) -> ViewResult:
    """Show what the model is sent, as it stands; nothing is folded."""
    return view_of(call.session)


@operation("POST", f"{AT}/context", changes=True, held=False)
async def take_context(call: ApiCall) -> ViewResult:
    """Return the messages to send now, folded first where the policy says so."""
    messages = await call.session.context()
    return view_of(call.session, messages)


@operation("GET", f"{AT}/stats")
async def read_stats(call: ApiCall) -> StatsResult:
    """Show the figures: messages, summaries, ratio, tokens, window, usage, price."""
    session = call.session
    setup = session.setup
    policy = resolve(setup.policy, setup.model, setup.window)
    return StatsResult(
        await session.stats(),
        await spent(session),
        setup.info.name,
        session.leaf,
        system_tokens=setup.overhead.system,
        tool_tokens=setup.overhead.tools,
        folds_at=thresholds(policy, setup.window).hard if policy.enabled else None,
        price=setup.info.price,
    )


@operation("GET", f"{AT}/recall")
async def recall(call: ApiCall, query: RecallQuery) -> HitList:
    """Search what was said in a session, folded messages included."""
    return HitList(await call.session.recall(query.q, query.limit))


@operation("GET", f"{AT}/entries/{{entry}}")
async def read_entry(call: ApiCall, query: PassageQuery) -> Passage:
    """Read a message as text, folded or not."""
    return await call.session.read(call.names["entry"], query.offset, query.limit)


@operation("GET", f"{AT}/folded")
async def list_folded(call: ApiCall, query: HistoryPage) -> FoldedList:
    """List the messages that the view does not show as received."""
    return FoldedList(await call.session.folded(query.limit, query.before))

"""Reading a session: its history for display, its view, its figures, its folded messages."""

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
    """Which part of a history: the newest `limit` items, or the `limit` items before an entry."""

    limit: Page = 50
    before: EntryId | None = None


class ShownPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a message as text: text, thinking, a call (`name`, arguments in JSON), a result, media.

    `call` is the id that a call shares with its result.
    """

    kind: Literal["text", "thinking", "call", "result", "media", "other"]
    text: str
    name: str = ""
    failed: bool = False
    call: str = ""


class ShownMessage(msgspec.Struct, frozen=True, tag="message", tag_field="kind"):
    """A message of a history: its state in the view, its text and parts, and its form in the dialect.

    `how` is kept, folded, excluded, blanked, reduced, elided, stripped or repaired; `native` is usually one
    message. `tokens` is its size, `at` Unix time; `injected` means that a program wrote it, not the user.
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


class ShownBoundary(msgspec.Struct, frozen=True, tag="boundary", tag_field="kind"):
    """A boundary of a history: a compaction, a prune or an exclusion, with its receipt and summary."""

    entry: str
    made: Literal["compaction", "prune", "exclusion"]
    receipt: Receipt
    summary: str | None
    undone: bool
    at: float | None


class HistoryResult(msgspec.Struct, frozen=True):
    """Messages and boundaries of the path, oldest first; pass `before` on for older ones (null: none)."""

    items: list[ShownMessage | ShownBoundary]
    before: str | None
    leaf: str | None


class ViewResult(msgspec.Struct, frozen=True):
    """What is sent to the model: messages, system prompt and tools in a dialect.

    `tokens` is its size by Foldline's own count; `max_tokens` the limit of the reply, if there is one.
    """

    dialect: str
    messages: list[Any]
    system: Any
    tools: Any
    tokens: int
    leaf: str | None
    max_tokens: int | None = None


class StatsResult(msgspec.Struct, frozen=True):
    """The figures of a session, and the usage and dollars of its replies and summaries.

    `system_tokens` and `tool_tokens` are the sizes of what is sent apart from the messages. The session folds
    automatically past `folds_at` tokens (null: never). `price` is the model's, if it is known.
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
    """Words to search for in the messages, folded ones included."""

    q: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
    limit: Page = 20


class PassageQuery(msgspec.Struct, frozen=True):
    """Which part of a message to read: `limit` characters from `offset`."""

    offset: Offset = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = PASSAGE


class FoldedList(msgspec.Struct, frozen=True):
    """Messages that the view leaves out or changes, oldest first."""

    entries: list[EntryInfo]


@operation("GET", f"{AT}/history")
async def read_history(call: ApiCall, query: HistoryPage) -> HistoryResult:
    """Read a page of the history: all messages, folded or not, and the boundaries."""
    return await history_page(call, query)


async def history_page(call: ApiCall, query: HistoryPage, *, as_sent: bool = True) -> HistoryResult:
    """Return a page of a history; without `as_sent`, its messages lack `text` and `native`."""
    session = call.session
    items: list[Said | Compacted | Pruned] = []
    leaf = await session.store.leaf(session.id)  # of this page, whatever is appended meanwhile
    async for entry in backwards(session.store, session.id, leaf=leaf, before=query.before):
        if isinstance(entry, Said | Compacted | Pruned):
            items.append(entry)
        if len(items) > query.limit:
            break
    has_more = len(items) > query.limit
    items = items[: query.limit][::-1]
    infos = {info.entry: info for info in await session.entries(query.limit, query.before)}
    lifted = undone(await session.store.marks(session.id, kinds=["lifted"]))
    shown = [
        _message(session, item, infos.get(item.id), as_sent=as_sent)
        if isinstance(item, Said)
        else shown_boundary(item, lifted)
        for item in items
    ]
    return HistoryResult(shown, items[0].id if items and has_more else None, leaf)


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
        case ToolCall(key, name, arguments):
            is_text = isinstance(arguments, str)
            text = arguments if is_text else msgspec.json.format(encode_utf8(arguments)).decode()
            return ShownPart("call", text, name, call=key)
        case ToolResult(key, content, is_error):
            text = "\n".join(inner.text or f"[{inner.name}]" for inner in map(shown_part, content))
            return ShownPart("result", text, failed=is_error, call=key)
        case Media(kind, mime, _, _, name):
            return ShownPart("media", "", " ".join(filter(None, (kind, mime, name))))
        case Opaque(_, kind):
            return ShownPart("other", "", kind)


def shown_boundary(entry: Compacted | Pruned, lifted: Collection[str]) -> ShownBoundary:
    """Return a boundary for display; `lifted` are the ids of the undone ones."""
    excludes = isinstance(entry, Pruned) and entry.excludes
    return ShownBoundary(
        entry=entry.id,
        made="compaction" if folds(entry) else "exclusion" if excludes else "prune",
        receipt=entry.receipt,
        summary=summary_of(entry) if folds(entry) else None,
        undone=entry.id in lifted,
        at=entry.at,
    )


def view_of(session: Session, messages: list[Any] | None = None) -> ViewResult:
    """Return a session's view; `messages` are those of `Session.context`, if it was called."""
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
    """Show what is sent to the model now, without folding."""
    return view_of(call.session)


@operation("POST", f"{AT}/context", changes=True, held=False)
async def take_context(call: ApiCall) -> ViewResult:
    """Return the messages to send now, after a fold if the policy asks for one."""
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
    """Search the messages of a session, folded ones included."""
    return HitList(await call.session.recall(query.q, query.limit))


@operation("GET", f"{AT}/entries/{{entry}}")
async def read_entry(call: ApiCall, query: PassageQuery) -> Passage:
    """Read a message as text, folded or not."""
    return await call.session.read(call.names["entry"], query.offset, query.limit)


@operation("GET", f"{AT}/folded")
async def list_folded(call: ApiCall, query: HistoryPage) -> FoldedList:
    """List the messages that the view leaves out or changes."""
    return FoldedList(await call.session.folded(query.limit, query.before))

"""Read a session: its view in the session's dialect, its history, its figures."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from itertools import chain
from typing import Any

import msgspec

from foldline.core.checkpoint.request import Prefix
from foldline.core.cut.edits import folds
from foldline.core.decide.price import Cache
from foldline.core.log.entries import Said
from foldline.core.log.log import undone
from foldline.core.log.messages import Message
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.core.view_items import MessageItem, native_items, sizes_of
from foldline.dialects import get
from foldline.dialects.base import join_system
from foldline.dialects.cache_marks import within_marks
from foldline.dialects.in_turn import in_turn
from foldline.dialects.native_view import NativeView
from foldline.errors import CallsOpen
from foldline.loading.chain import absent_messages
from foldline.providers.base import Call
from foldline.session.cursor import Cursor
from foldline.session.model import SessionModel
from foldline.tracing import COMPACTED, CONVERSATION, Value

ViewToken = tuple[str, ...]  # the ids of the boundaries in a view


class ContextMessages(list[Any]):
    """The messages to send: a list with a token of its view.

    Pass it to `overflowed` as `view`. A slice or a copy by `list(...)` is a plain list, without the token.
    """

    token: ViewToken | None = None
    traced: Mapping[str, Value] = {}  # span attributes of a request with these messages


class Stats(msgspec.Struct, frozen=True):
    """Figures of a session: messages in all and in the view, tokens in the view by category, compactions.

    `compression_ratio` is messages in the view / messages in all, those included that another agent folded
    and no longer has in its file. `view_tokens` is the view's size by Foldline's own count, `context_tokens`
    that of the next request: the newest reply's usage, its four parts summed, and estimates of what came
    since. `usable` is what the policy lets a view take of `window`, the model's limits.
    """

    total_messages: int
    active_messages: int
    summaries: int
    compression_ratio: float
    view_tokens: int
    context_tokens: int
    usable: int
    window: Window
    by_category: dict[str, int]
    open_calls: tuple[str, ...] = ()


def check_answered(state: ViewState) -> None:
    """Raise CallsOpen while tool calls wait for their results."""
    if state.open_calls:
        raise CallsOpen(tuple(state.open_calls))


class SessionView:
    """The view, history and figures of one session."""

    def __init__(self, cursor: Cursor, model: SessionModel) -> None:
        self._cursor = cursor
        self._model = model
        self._native = NativeView()
        self._newest: ViewToken | None = None  # of the view returned last

    # ---- the view

    @property
    def dialect(self) -> str:
        """The dialect of the view: the one asked for, or the newest message's."""
        if self._model.setup.dialect:
            return self._model.setup.dialect
        state = self._cursor.state
        entries = chain(reversed(state.kept), reversed(state.quoted), reversed(state.leading))
        newest = next((e.message.native for e in entries if e.message.native is not None), None)
        return newest.dialect if newest is not None else self._cursor.dialect or "openai-chat"

    @property
    def system(self) -> Any:
        """The system prompt to send beside the messages, where the dialect keeps it apart."""
        state = self._cursor.state
        leading = [MessageItem(entry, state.edits.get(entry.id, ())) for entry in state.leading]
        recorded = get(self.dialect).render(native_items(leading)).system
        return join_system(self._model.setup.system, recorded, self.dialect)

    @property
    def cache(self) -> Cache:
        """What the provider's cache holds of the next request, as the newest reply's usage tells."""
        return self._model.cache(self.dialect)

    def messages(self, *, shared: bool = False) -> list[Any]:
        """Return the messages of the current view; `shared` ones are not copied."""
        found = self._native.messages(self.dialect, self._cursor.state.items(), shared=shared)
        found = in_turn(found, self.dialect) if self._model.in_turn else found
        return within_marks(found, self.system, self._model.setup.tools) if self._native.marked else found

    def hand_out(self, *, shared: bool = False) -> ContextMessages:
        """Return the messages of the view for a request, with the view's token."""
        messages = ContextMessages(self.messages(shared=shared))
        state = self._cursor.state
        messages.token = self._newest = state.boundaries
        compacted = {COMPACTED: True} if state.boundary is not None else {}
        messages.traced = {CONVERSATION: self._cursor.session, **compacted}
        return messages

    def mark_outdated(self, messages: list[Message]) -> None:
        """Mark the usage of these messages if the view has been folded since it was handed out.

        A fold by hand, by another process or in the background may come while a request is under way.
        """
        if self._newest in (None, self._cursor.state.boundaries):
            return
        for place, message in enumerate(messages):
            if message.usage is not None:
                usage = msgspec.structs.replace(message.usage, outdated=True)
                messages[place] = msgspec.structs.replace(message, usage=usage)

    def asked_with(self, messages: list[Any] | None) -> ViewToken | None:
        """Return the token of these messages' view, or of the view returned last; None before the first."""
        known = messages.token if isinstance(messages, ContextMessages) else None
        return self._newest if known is None else known

    def call(self) -> Call:
        """Return the session's next request, with system prompt and tools, without compacting."""
        return Call(messages=self.messages(), system=self.system, tools=self._model.setup.tools)

    def prefix(self) -> Prefix:
        """Return the session's next request as the prefix of a summary request."""
        setup, call = self._model.setup, self.call()
        return Prefix(
            model=setup.model or "",
            dialect=self.dialect,
            window=setup.window,
            messages=call.messages,
            system=call.system,
            tools=call.tools,
            tokens=self._model.view_tokens,
            cache=self.cache,
        )

    # ---- the history

    async def history(self) -> list[Any]:
        """Return every message of the path, folded ones included, as received."""
        path = self._cursor.store.path(self._cursor.session)
        found: list[Message] = [entry.message async for entry in path if isinstance(entry, Said)]
        return get(self.dialect).render([(message, ()) for message in found]).messages

    async def stats(self) -> Stats:
        """Return the session's figures."""
        store, session = self._cursor.store, self._cursor.session
        marks = await store.marks(session, kinds=["compacted", "pruned", "lifted"])
        made = [entry for entry in marks if folds(entry)]
        info = await store.info(session)
        total = (info.messages if info else 0) + sum(absent_messages(one.receipt.origin) for one in made)
        lifted = undone(marks)
        state = self._cursor.state
        return Stats(
            total_messages=total,
            active_messages=state.messages,
            summaries=sum(one.id not in lifted for one in made),
            compression_ratio=round(state.messages / total, 4) if total else 1.0,
            view_tokens=self._model.view_tokens,
            context_tokens=self._model.context_tokens,
            usable=self._model.ask("manual").usable,
            window=self._model.setup.window,
            by_category=sizes_of(state.items()),
            open_calls=tuple(state.open_calls),
        )

    async def export(self, form: str, *, view: bool) -> bytes:
        """Return the session in a form of `foldline export`; with `view`, what the model is sent."""
        from foldline import exports, transcripts  # noqa: PLC0415 - few sessions are exported

        store, session = self._cursor.store, self._cursor.session
        stream = BytesIO()
        if form == exports.OWN and not view:
            entries = [entry async for entry in store.path(session)]
            transcripts.dump(entries, stream, session=session, leaf=self._cursor.leaf)
        else:
            name = self.dialect if form == exports.OWN else form
            request = exports.ExportRequest(name, view=view, model=self._model.setup.model)
            await exports.export_stored(store, session, request, stream.write)
        return stream.getvalue()

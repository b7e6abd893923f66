"""Append messages of any dialect, pins and notes to a session."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from foldline.arguments import check
from foldline.core.cut.exclude import is_excluded
from foldline.core.cut.repair import with_own_ids
from foldline.core.ledger.facts.files import FILES, files_note
from foldline.core.log.entries import Noted, Pinned, Said
from foldline.core.log.messages import Message
from foldline.dialects import decode_all
from foldline.dialects.base import decode_reply, in_dialect, message_dialect, reply_dialect
from foldline.dialects.payload import DEEPEST, is_deep
from foldline.errors import InputError
from foldline.session.events import PinChanged, ProviderCompacted, WarningGiven
from foldline.session.recall import as_text
from foldline.session.shared import Shared
from foldline.session.triggers import Triggers
from foldline.transcripts.forms.lists import check_known, decode_list, form_of
from foldline.waiting import MESSAGE_BYTES, run_off_loop

FOREIGN = "foreign"  # a message form that belongs to no dialect


class Appends:
    """Appends to one session."""

    def __init__(self, shared: Shared, triggers: Triggers) -> None:
        self._shared = shared
        self._triggers = triggers

    async def append(self, *messages: Any) -> list[str]:
        """Append messages, SDK replies or dicts in one commit; return their entry ids.

        Durable when it returns. If calls are open when the user speaks, results that say so are appended
        first. Compactions that this triggers run in the background; `settled` waits for them. Raises
        LeafMoved if another writer has appended a message since. If this is cancelled, all of them were
        stored or none: `history` says which.
        """
        shared = self._shared
        # the caller has seen the loaded view, not what others have appended since
        async with shared.locked(follow=False) as cursor:
            dialect, seed = shared.model.setup.dialect, str(cursor.leaf)
            reader = AppendReader(dialect, lambda: shared.view.dialect, seed, cursor.state.open_calls)
            decoded = await run_off_loop(MESSAGE_BYTES * len(messages), lambda: reader.read(messages))
            decoded = shared.model.without_wrong_usage(decoded)
            shared.view.mark_outdated(decoded)
            notes = shared.model.unsaved_notes() if decoded else []
            entries = await cursor.say(decoded, notes, lambda: shared.view.mark_outdated(decoded))
            shared.model.remember(notes)
            if entries:
                self._appended(entries)
            own = {id(message) for message in decoded}
            return [entry.id for entry in entries if id(entry.message) in own]

    def _appended(self, entries: Sequence[Said]) -> None:
        """Update the session's state from appended messages and emit their events."""
        shared = self._shared
        shared.model.learn_usage()
        shared.watch.said([entry.message for entry in entries])
        if any(entry.message.role == "assistant" for entry in entries):
            shared.reply.lift()
        server = shared.cursor.state.server
        if server is not None and any(entry.id == server.id for entry in entries):
            shared.watch.folded()
            shared.events.emit(ProviderCompacted(entry=server.id, size=shared.model.view_tokens))
        self._triggers.appended()
        natives = [entry.message.native for entry in entries]
        mended = dict.fromkeys(line for native in natives if native is not None for line in native.mended)
        if mended:
            text = f"a message was mended: {'; '.join(mended)}"
            shared.events.emit(WarningGiven(kind="mended", text=text, count=len(mended)))
        shared.emit_added(entries)

    async def pin(self, at: str) -> None:
        """Pin a message, or a tool call or result: every later view keeps its text verbatim.

        Raises InputError if the session has no such message, or if it was excluded from the context.
        """
        shared = self._shared
        check(at=at)
        async with shared.locked() as cursor:
            entry = await shared.store.entry(shared.id, at)
            if not isinstance(entry, Said):
                raise InputError(
                    f"no message {at!r} in session {shared.id}: take the id of one of its messages"
                )
            if is_excluded(at, cursor.state.edits):
                raise InputError(f"entry {at} was excluded from the context: undo the exclusion, then pin it")
            text = entry.message.text or as_text(entry)
            await cursor.write(Pinned("", None, at, on=True, text=text, at=time.time()))
            shared.events.emit(PinChanged(entry=at))

    async def unpin(self, at: str) -> None:
        """Remove a pin; the next boundary may fold the entry.

        Raises InputError if the session has no such entry.
        """
        check(at=at)
        async with self._shared.locked() as cursor:
            if await self._shared.store.entry(self._shared.id, at) is None:
                raise InputError(f"session {self._shared.id} has no entry {at!r}")
            await cursor.write(Pinned("", None, at, on=False, at=time.time()))
            self._shared.events.emit(PinChanged(entry=at, on=False))

    async def note(self, kind: str, **data: Any) -> None:
        """Store a note about the session, such as its title; raises InputError for deeply nested data."""
        if is_deep(data, DEEPEST):
            raise InputError(f"the note {kind!r} cannot be stored: it is nested deeper than {DEEPEST} levels")
        async with self._shared.locked() as cursor:
            await cursor.write(Noted("", None, kind, data, at=time.time()))

    async def track_files(
        self,
        *,
        read: Sequence[str] = (),
        created: Sequence[str] = (),
        modified: Sequence[str] = (),
        deleted: Sequence[str] = (),
    ) -> None:
        """Record files that the host tracked itself: the next checkpoint lists them with the others."""
        data = files_note({"read": read, "created": created, "modified": modified, "deleted": deleted})
        if data:
            await self.note(FILES, **data)


class AppendReader:
    """Decodes the messages that a host appends.

    `dialect` is the session's fixed dialect, `default` returns the dialect of its view, `seed` generates
    missing ids, and `open_calls` maps calls that wait for results to their tools.
    """

    def __init__(
        self,
        dialect: str | None,
        default: Callable[[], str],
        seed: str,
        open_calls: Mapping[str, str] | None = None,
    ) -> None:
        self._dialect = dialect
        self._default = default
        self._seed = seed
        self._before = open_calls or {}
        self._open: dict[str, str] | None = None  # copied only when needed: thousands may be open
        self._decoded: list[Message] = []
        self._applied = 0  # decoded messages that `_open` includes

    def read(self, messages: Sequence[Any]) -> list[Message]:
        """Decode messages; an ambiguous one is read in the dialect of its neighbours."""
        seen = [_form_or_dialect(message) for message in messages]
        dialects = (name for name, _ in reversed(seen) if name not in (None, FOREIGN))
        common = self._dialect or next(dialects, None) or self._default()

        def group_of(at: int) -> str | None:
            """Return the dialect or form by which to decode a run of messages; None to decode it alone."""
            name, alone = seen[at]
            return None if alone else name or common

        for name, places in groupby(range(len(messages)), group_of):
            if name is not None:
                run = [in_dialect(messages[at], name, f"{self._seed} {at}") for at in places]
                self._decoded += self._decode(run, name)
                continue
            for message, (reply, _) in ((messages[at], seen[at]) for at in places):
                if isinstance(message, Message):
                    self._decoded += with_own_ids([message], self._open_now())
                else:
                    self._decoded.append(decode_reply(message, str(reply), salt=self._salt))
        return self._decoded

    def _decode(self, run: Sequence[Any], dialect: str) -> Sequence[Message]:
        """Decode a run of messages of one dialect, or of foreign forms."""
        if dialect == FOREIGN:
            return [
                message
                for _, message in decode_list(run, salt=self._salt, open_calls=self._open_now()).placed
            ]
        return decode_all(run, dialect, salt=self._salt, open_calls=self._open_now())

    @property
    def _salt(self) -> str:
        return f"{self._seed} {len(self._decoded)}"

    def _open_now(self) -> Mapping[str, str]:
        """Return the calls that are open after what was decoded so far."""
        if not self._decoded:
            return self._before
        if self._open is None:
            self._open = dict(self._before)
        for message in self._decoded[self._applied :]:
            self._open.update({call.id: call.name for call in message.calls})
            for result in message.results:
                self._open.pop(result.call_id, None)
        self._applied = len(self._decoded)
        return self._open


def _form_or_dialect(message: Any) -> tuple[str | None, bool]:
    """Return the only dialect that fits a message, or `FOREIGN`; None if several fit.

    The flag says whether it is decoded alone: a whole reply, or an already decoded message.
    """
    if isinstance(message, Message):
        return None, True
    if form_of(message) is not None:
        return FOREIGN, False
    if (reply := reply_dialect(message)) is not None:
        return reply, True
    dialect = message_dialect(message)
    if dialect is None:
        check_known(message)
    return dialect, False

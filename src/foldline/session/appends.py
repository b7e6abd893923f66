"""What a host appends to a session: messages of any dialect, pins, notes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from foldline.arguments import check_text
from foldline.core.cut.call_ids import with_own_ids
from foldline.core.ledger.facts.files import FILES, Status, files_note
from foldline.core.log.entries import Noted, Pinned, Said
from foldline.core.log.messages import Message
from foldline.dialects import decode_all
from foldline.dialects.base import decode_reply, dialect_of, in_dialect, reply_dialect
from foldline.errors import InputError
from foldline.session.events import MessageAdded, PinChanged, WarningGiven
from foldline.session.recall import as_text
from foldline.session.shared import Shared
from foldline.session.triggers import Triggers
from foldline.transcripts.forms.lists import check_known, decode_list, form_of
from foldline.waiting import EACH, aside

FOREIGN = "foreign"  # stands for the forms that no dialect has


class Appends:
    """Appends to one session."""

    def __init__(self, shared: Shared, triggers: Triggers) -> None:
        self._shared = shared
        self._triggers = triggers

    async def say(self, messages: Sequence[Any]) -> list[str]:
        """Append messages, SDK replies or dicts in one commit; return their entry ids."""
        shared = self._shared
        # who appends has seen what was there, not what came since
        async with shared.locked(follow=False) as cursor:
            dialect, seed = shared.model.setup.dialect, str(cursor.leaf)
            reader = AppendReader(dialect, lambda: shared.view.dialect, seed, cursor.state.open_calls)
            found = shared.model.believed(await aside(EACH * len(messages), lambda: reader.read(messages)))
            notes = shared.model.to_keep() if found else []
            entries = await cursor.say(found, notes)
            shared.model.keeps(notes)
            if entries:
                self._appended(entries)
            own = {id(message) for message in found}
            return [entry.id for entry in entries if id(entry.message) in own]

    def _appended(self, entries: Sequence[Said]) -> None:
        """Learn from what was appended, and tell that it was."""
        shared = self._shared
        shared.model.heard()
        shared.watch.said([entry.message for entry in entries])
        if any(entry.message.role == "assistant" for entry in entries):
            shared.reply.lift()
        self._triggers.appended()
        natives = [entry.message.native for entry in entries]
        mended = dict.fromkeys(line for native in natives if native is not None for line in native.mended)
        if mended:
            text = f"a message was mended: {'; '.join(mended)}"
            shared.events.emit(WarningGiven(kind="mended", text=text, count=len(mended)))
        roles = tuple(entry.message.role for entry in entries)
        shared.events.emit(MessageAdded(entries=tuple(entry.id for entry in entries), roles=roles))

    async def pin(self, at: str) -> None:
        """Pin a message; raises InputError for an id that is no message of the session."""
        shared = self._shared
        check_text("at", at)
        async with shared.locked() as cursor:
            entry = await shared.store.entry(shared.id, at)
            if not isinstance(entry, Said):
                raise InputError(f"no message {at!r} in session {shared.id}: take the id from `entries()`")
            text = entry.message.text or as_text(entry)
            await cursor.write(Pinned("", None, at, on=True, text=text, at=time.time()))
            shared.events.emit(PinChanged(entry=at))

    async def unpin(self, at: str) -> None:
        """Take a pin away."""
        check_text("at", at)
        async with self._shared.locked() as cursor:
            await cursor.write(Pinned("", None, at, on=False, at=time.time()))
            self._shared.events.emit(PinChanged(entry=at, on=False))

    async def note(self, kind: str, data: dict[str, Any]) -> None:
        """Append a note of a kind."""
        async with self._shared.locked() as cursor:
            await cursor.write(Noted("", None, kind, data, at=time.time()))

    async def track_files(self, files: Mapping[Status, Sequence[str]]) -> None:
        """Note files by what was done to them: read, created, modified, deleted."""
        if found := files_note(files):
            await self.note(FILES, found)


class AppendReader:
    """Reads what a host appends.

    `dialect` is the one that the session was opened with, `usual` names that of its view, `seed` makes ids
    for what has none, and `open_calls` are the calls that still wait for their results.
    """

    def __init__(
        self, dialect: str | None, usual: Callable[[], str], seed: str, open_calls: Collection[str] = ()
    ) -> None:
        self._dialect = dialect
        self._usual = usual
        self._seed = seed
        self._open = open_calls
        self._looked_at = 0  # messages whose calls and results `_open` knows
        self._decoded: list[Message] = []

    def read(self, messages: Sequence[Any]) -> list[Message]:
        """Decode messages; one that fits several dialects is read as those around it are."""
        known = [None if isinstance(message, Message) else _form_or_dialect(message) for message in messages]
        dialects = (name for name in reversed(known) if name not in (None, FOREIGN))
        common = self._dialect or next(dialects, None) or self._usual()
        run: list[Any] = []  # messages of one dialect, which are decoded together
        run_dialect = ""
        for message, own in zip(messages, known, strict=True):
            bare = isinstance(message, Message) or own == FOREIGN
            reply = None if bare else reply_dialect(message)
            name = "" if isinstance(message, Message) or reply else own or common
            if run and name != run_dialect:
                self._decode(run, run_dialect)
                run = []
            run_dialect = name
            if isinstance(message, Message):
                self._take(with_own_ids([message], self._still_open()))
            elif reply is not None:
                self._take([decode_reply(message, reply, salt=self._salt())])
            else:
                run.append(in_dialect(message, name, f"{self._seed} {len(self._decoded) + len(run)}"))
        if run:
            self._decode(run, run_dialect)
        return self._decoded

    def _decode(self, run: Sequence[Any], dialect: str) -> None:
        """Read messages of one dialect, or of forms that no dialect has."""
        salt, still_open = self._salt(), self._still_open()
        if dialect == FOREIGN:
            placed = decode_list(run, salt=salt, open_calls=still_open).placed
            self._take([message for _, message in placed])
        else:
            self._take(decode_all(run, dialect, salt=salt, open_calls=still_open))

    def _salt(self) -> str:
        return f"{self._seed} {len(self._decoded)}"

    def _take(self, messages: Sequence[Message]) -> None:
        self._decoded += messages

    def _still_open(self) -> Collection[str]:
        """Return the calls that wait for results behind the messages decoded so far."""
        if new := self._decoded[self._looked_at :]:
            still_open = dict.fromkeys(self._open)
            for message in new:
                still_open.update(dict.fromkeys(call.id for call in message.calls))
                for result in message.results:
                    still_open.pop(result.call_id, None)
            self._open, self._looked_at = still_open.keys(), len(self._decoded)
        return self._open


def _form_or_dialect(message: Any) -> str | None:
    """Return the dialect that alone could have written a message, or `FOREIGN`; None if several could."""
    if form_of(message) is not None:
        return FOREIGN
    found = dialect_of(message)
    if found is None:
        check_known(message)
    return found

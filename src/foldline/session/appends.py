"""What a host appends to a session: messages of any dialect, pins, notes."""

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
from foldline.waiting import EACH, aside

FOREIGN = "foreign"  # stands for the forms that no dialect has


class Appends:
    """Appends to one session."""

    def __init__(self, shared: Shared, triggers: Triggers) -> None:
        self._shared = shared
        self._triggers = triggers

    async def append(self, *messages: Any) -> list[str]:
        """Append messages, SDK replies or dicts in one commit; return their entry ids.

        Durable when it returns. A reply's usage is read. Where calls are still open and the user speaks,
        results that say so are appended first. What the policy does behind a reply or an append is done in
        the background: `settled` waits for it. Raises LeafMoved where somebody else said something since.
        """
        shared = self._shared
        # who appends has seen what was there, and nothing that others have appended in the meantime
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
        """Learn from what was appended, and emit the events of it."""
        shared = self._shared
        shared.model.heard()
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
        shared.tell_of(entries)

    async def pin(self, at: str) -> None:
        """Pin a message, tool results and calls too: every later view holds its text word for word.

        Raises InputError for an id that is no message of the session, and for what was taken out of the
        context.
        """
        shared = self._shared
        check(at=at)
        async with shared.locked() as cursor:
            entry = await shared.store.entry(shared.id, at)
            if not isinstance(entry, Said):
                raise InputError(f"no message {at!r} in session {shared.id}: take the id from `entries()`")
            if is_excluded(at, cursor.state.edits):
                raise InputError(f"entry {at} was taken out of the context: undo that, then pin it")
            text = entry.message.text or as_text(entry)
            await cursor.write(Pinned("", None, at, on=True, text=text, at=time.time()))
            shared.events.emit(PinChanged(entry=at))

    async def unpin(self, at: str) -> None:
        """Take a pin away; from the next boundary on the entry is folded like any other.

        Raises InputError for an id that is no entry of the session.
        """
        check(at=at)
        async with self._shared.locked() as cursor:
            if await self._shared.store.entry(self._shared.id, at) is None:
                raise InputError(f"session {self._shared.id} has no entry {at!r}")
            await cursor.write(Pinned("", None, at, on=False, at=time.time()))
            self._shared.events.emit(PinChanged(entry=at, on=False))

    async def note(self, kind: str, **data: Any) -> None:
        """Note something about the session, such as its title; raises InputError for deeply nested data."""
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
        """Note files that your own tracker saw: the next checkpoint lists them with the others."""
        found = files_note({"read": read, "created": created, "modified": modified, "deleted": deleted})
        if found:
            await self.note(FILES, **found)


class AppendReader:
    """Reads what a host appends.

    `dialect` is the one that the session was opened with, `usual` names that of its view, `seed` makes ids
    for what has none, and `open_calls` are the calls that still wait for their results, with their tools.
    """

    def __init__(
        self,
        dialect: str | None,
        usual: Callable[[], str],
        seed: str,
        open_calls: Mapping[str, str] | None = None,
    ) -> None:
        self._dialect = dialect
        self._usual = usual
        self._seed = seed
        self._before = open_calls or {}
        self._open: dict[str, str] | None = None  # made only where it is needed: thousands may be open
        self._decoded: list[Message] = []
        self._looked = 0  # how many of them `_open` knows

    def read(self, messages: Sequence[Any]) -> list[Message]:
        """Decode messages; one that fits several dialects is read as those around it are."""
        seen = [_form_or_dialect(message) for message in messages]
        dialects = (name for name, _ in reversed(seen) if name not in (None, FOREIGN))
        common = self._dialect or next(dialects, None) or self._usual()

        def way(at: int) -> str | None:
            """Return the dialect or the form of those to decode together; None for one that stands alone."""
            name, alone = seen[at]
            return None if alone else name or common

        for name, places in groupby(range(len(messages)), way):
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
        """Read messages of one dialect, or of forms that no dialect has."""
        if dialect == FOREIGN:
            return [one for _, one in decode_list(run, salt=self._salt, open_calls=self._open_now()).placed]
        return decode_all(run, dialect, salt=self._salt, open_calls=self._open_now())

    @property
    def _salt(self) -> str:
        return f"{self._seed} {len(self._decoded)}"

    def _open_now(self) -> Mapping[str, str]:
        """Return the calls that are open behind what was decoded so far."""
        if not self._decoded:
            return self._before
        if self._open is None:
            self._open = dict(self._before)
        for message in self._decoded[self._looked :]:
            self._open.update({call.id: call.name for call in message.calls})
            for result in message.results:
                self._open.pop(result.call_id, None)
        self._looked = len(self._decoded)
        return self._open


def _form_or_dialect(message: Any) -> tuple[str | None, bool]:
    """Return the dialect that alone could have written a message, or `FOREIGN`; None if several could.

    And whether it is read alone: a whole reply, or a message that was read already.
    """
    if isinstance(message, Message):
        return None, True
    if form_of(message) is not None:
        return FOREIGN, False
    if (reply := reply_dialect(message)) is not None:
        return reply, True
    found = message_dialect(message)
    if found is None:
        check_known(message)
    return found, False

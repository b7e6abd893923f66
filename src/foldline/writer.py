"""A session's place in its log: what its view needs, the leaf that it saw, and every append."""

from __future__ import annotations

import time
from collections.abc import Sequence

from foldline.core.log.entries import Compacted, Entry, Noted, Pruned, Said
from foldline.core.log.log import chained, said
from foldline.core.log.messages import Message, Text, ToolResult
from foldline.core.measure.tokens import Counter, message_tokens
from foldline.core.view import UNANSWERED, Fold
from foldline.errors import LeafMoved
from foldline.stores.base import Store

RETRIES = 8  # times that an append is chained anew because only boundaries, pins or notes came between


class Writer:
    """The entries that a session's view needs, kept in step with its store."""

    def __init__(self, store: Store, session: str, counter: Counter) -> None:
        self.store = store
        self.session = session
        self.counter = counter
        self.fold = Fold(counter=counter)
        self.leaf: str | None = None
        self._key = ""
        self._loaded = False

    async def ready(self) -> None:
        """Load the session at its first use."""
        if not self._loaded:
            await self.reload()

    async def reload(self) -> None:
        """Read again what the view needs."""
        leaf = await self.store.leaf(self.session)
        entries = await self.store.active(self.session, leaf) if leaf is not None else []
        self.fold = Fold(entries, counter=self.counter)
        self.leaf = leaf
        self._key = next((e.said_key for e in reversed(entries) if isinstance(e, Said)), "")
        if not self._key and leaf is not None:
            self._key = await self._key_before(leaf)
        self._loaded = True

    async def _key_before(self, leaf: str) -> str:
        """Return the newest said-key where everything said is folded."""
        at: str | None = leaf
        while at is not None:
            entry = await self.store.entry(self.session, at)
            if entry is None or isinstance(entry, Said):
                return entry.said_key if isinstance(entry, Said) else ""
            at = entry.parent
        return ""

    async def say(self, messages: Sequence[Message]) -> list[Said]:
        """Append messages in one commit; return their entries, synthetic results for open calls included.

        Tries again where only boundaries, pins or notes came between, else raises LeafMoved.
        """
        for _ in range(RETRIES):
            entries = self._chain(messages)
            try:
                await self.store.append(self.session, entries, seen=self.leaf)
            except LeafMoved:
                await self._catch_up()
                continue
            for entry in entries:
                self._take(entry)
            return entries
        raise self._too_fast()

    def _chain(self, messages: Sequence[Message]) -> list[Said]:
        """Chain messages behind the leaf; calls that the user cuts short are answered first."""
        entries: list[Said] = []
        parent, key = self.leaf, self._key
        still_open = self.fold.open_calls
        for message in messages:
            answered = {result.call_id for result in message.results}
            left = tuple(call for call in still_open if call not in answered)
            cut_short = bool(left) and message.is_prompt
            for one in (*([interrupted(left)] if cut_short else []), message):
                tokens = message_tokens(one, self.counter)
                entry = said(one, parent=parent, said_key=key, tokens=tokens, at=time.time())
                entries.append(entry)
                parent, key = entry.id, entry.said_key
            calls = tuple(call.id for call in message.calls)
            still_open = calls if message.role == "assistant" else () if cut_short else left
        return entries

    def _take(self, entry: Said) -> None:
        self.fold.push(entry)
        self.leaf = entry.id
        self._key = entry.said_key

    async def _catch_up(self) -> None:
        """Take what others appended; raises LeafMoved where they said something or moved the leaf away."""
        before = self.leaf
        at = await self.store.leaf(self.session)
        while at is not None and at != before:
            entry = await self.store.entry(self.session, at)
            if entry is None or isinstance(entry, Said):
                await self.reload()
                raise LeafMoved(
                    f"somebody else wrote to session {self.session}: read its context again", leaf=self.leaf
                )
            at = entry.parent
        await self.reload()
        if at != before:
            raise LeafMoved(
                f"the leaf of session {self.session} was moved: read its context again", leaf=self.leaf
            )

    async def write(self, entry: Entry) -> None:
        """Append an entry that nobody said behind whatever is there now."""
        for _ in range(RETRIES):
            try:
                await self.store.append(self.session, [chained(entry, self.leaf)], seen=self.leaf)
            except LeafMoved:
                await self.reload()
                continue
            await self.reload()
            return
        raise self._too_fast()

    async def commit(self, boundary: Compacted | Pruned, seen: str | None) -> bool:
        """Append a boundary behind the leaf; what was said meanwhile stays in order before it.

        False, and nothing is written, where a boundary or a pin was added since the leaf `seen`.
        """
        for _ in range(RETRIES):
            try:
                await self.store.append(self.session, [chained(boundary, self.leaf)], seen=self.leaf)
            except LeafMoved:
                await self.reload()
                path = self.fold.entries()
                at = next((i for i, entry in enumerate(path) if entry.id == seen), None)
                if at is None or any(not isinstance(e, Said | Noted) for e in path[at + 1 :]):
                    return False
                continue
            await self.reload()
            return True
        raise self._too_fast()

    def _too_fast(self) -> LeafMoved:
        return LeafMoved(
            f"session {self.session} is written to faster than it can be followed", leaf=self.leaf
        )


def interrupted(call_ids: Sequence[str]) -> Message:
    """Return results that say that these calls were cut short."""
    return Message("tool", tuple(ToolResult(call, (Text(UNANSWERED),), is_error=True) for call in call_ids))

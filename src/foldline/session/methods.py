"""The methods of a session that go back in its tree, lead to other sessions, and look into its folded past.

`Session` inherits them; what they do is in tree.py, handoff.py, recall.py, state.py and tools.py.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Self

import msgspec

from foldline.core.compact.handoff import handoff, opening, start_of
from foldline.core.cut.recalled import MARK, TOOLS
from foldline.core.decide.ask import Nothing
from foldline.core.decide.continuation import Continuation
from foldline.core.log.entries import Compacted, Noted
from foldline.core.log.log import chained
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import tools_tokens
from foldline.core.view import ViewState
from foldline.errors import FoldlineError, InputError, LeafMoved
from foldline.executor import execute
from foldline.session import recall as past
from foldline.session import tools, tree
from foldline.session.compactor import Compactor
from foldline.session.cursor import Cursor
from foldline.session.events import Branched, Events, HandedOff
from foldline.session.links import (
    SUBAGENTS,
    Link,
    begin,
    handed_from,
    links,
    new_id,
    noted,
    with_child,
    without_child,
)
from foldline.session.setup import Setup
from foldline.session.state import NOTE, LiveState, Render, known_live, standing
from foldline.stores.base import Hit, Store
from foldline.summarizers.base import Summarizer

BY_ITSELF: Final = ("threshold", "overflow", "model_switch")  # reasons of compactions that nobody asked for

log = logging.getLogger("foldline")


class Methods(ABC):
    """What `Session` is made of, and the methods that need no more than that."""

    id: str
    store: Store
    max_tokens: int | None
    _log: Cursor
    _lock: asyncio.Lock
    _events: Events
    _compactor: Compactor
    _live: LiveState
    _wish: str | None = None  # what the model asked a compaction for
    _offered: frozenset[str] = frozenset()  # the tools of ours whose definitions count

    @property
    @abstractmethod
    def dialect(self) -> str:
        """The dialect of the view."""

    @abstractmethod
    async def _ready(self, *, follow: bool = True) -> None:
        """Load the session at its first use, then, to `follow`, what others have written; the lock is held."""

    async def _loaded(self) -> None:
        """Load the session at its first use; the lock is not held, but by whoever has loaded it."""
        if not self._log.loaded:
            async with self._lock:
                await self._ready()

    @abstractmethod
    def _sibling(self, session: str, setup: Setup) -> Self:
        """Return another session of the same store."""

    @property
    def setup(self) -> Setup:
        """How the session is kept: its model's window, its policy, and what is sent beside its messages."""
        return self._compactor.setup

    @property
    def summarizer(self) -> Summarizer:
        """Who writes the summaries."""
        return self._compactor.summarizer

    @summarizer.setter
    def summarizer(self, summarizer: Summarizer) -> None:
        self._compactor.summarizer = summarizer

    # ---- the tree

    async def branches(self) -> list[tree.Branch]:
        """Return the branches of the session's tree, the newest first; reads every entry."""
        await self._loaded()
        return await tree.branches(self.store, self.id, self._log.leaf)

    async def branch(self, at: str, *, summarize: bool = False, instructions: str | None = None) -> str:
        """Go on from an entry of the session: the leaf moves there, and what is left stays as a branch.

        With `summarize`, a summary of what is left is appended, as data; `instructions` say what it should look
        at. Returns the new leaf. Raises InputError for no entry of the session, LeafMoved where somebody else
        appended meanwhile.
        """
        async with self._lock:
            await self._ready(follow=False)
            if await self.store.entry(self.id, at) is None:
                raise InputError(f"no entry {at!r} in session {self.id}")
            seen, steps = self._log.leaf, None
            if summarize:
                left = await tree.left_behind(self.store, self.id, self._log.fold, at)
                ask = self._compactor.ask("manual", instructions)
                steps = tree.summarised(left, ask, self.setup.counter)
        record = await execute(steps, self.summarizer, aside=True) if steps is not None else None
        async with self._lock:
            await self._ready(follow=False)
            if self._log.leaf != seen:
                raise LeafMoved(f"something was appended to session {self.id} meanwhile", leaf=self._log.leaf)
            await self._go(at)
            if record is not None:
                await self._log.write(tree.cost_of(record))
                await self._log.say([tree.told(record.text)])
            return self._log.leaf or at

    async def rewind(self, at: str | None = None) -> tree.Rewound:
        """Go back to before a message of the user's (default: the newest) and hand its text back for editing.

        What is left stays as a branch: `branch(rewound.left)` returns to it. Raises InputError where the entry is
        no message of the user's.
        """
        async with self._lock:
            await self._ready(follow=False)
            prompt = await tree.prompt_at(self.store, self.id, at, self._log.leaf)
            left = self._log.leaf or prompt.id
            await self._go(prompt.parent)
            return tree.Rewound(prompt.message.text, prompt.message, left)

    async def _go(self, leaf: str | None) -> None:
        """Move the leaf and look at the view there as at a new one; the lock is held."""
        await self._log.move(leaf)
        compactor = self._compactor
        compactor.triggers.tried(self._log.fold, in_vain=False)
        compactor.triggers.happened("before_smaller_window")
        compactor.calibrator.load(self._log.fold, compactor.apart)
        self.max_tokens = None
        self._events.emit(Branched(leaf=leaf))

    # ---- other sessions

    async def handoff(
        self, goal: str | None = None, *, to: str | None = None, text: str | None = None
    ) -> Self:
        """Begin a new session for a goal (default: the newest request) with what this one knows that serves it.

        It starts with a checkpoint: the user's rules, pins and live state go over; this session stays as it is.
        `to` is its id, `text` the checkpoint as the user edited it (see `preview_handoff`). Both sessions share a
        store. Raises InputError where nothing was said yet or the id is taken, FloorExceeded.
        """
        session = to or new_id(self.id)
        fold, boundary = await self._handed(goal, text)
        path = fold.entries()
        link = Link(self.id, "handoff", "from", path[-1].id if path else None, goal or "")
        start = start_of(fold, noted(link))
        await begin(self.store, session, opening(start, boundary))
        await self._note(noted(msgspec.structs.replace(link, session=session, way="to")))
        self._events.emit(HandedOff(session=session))
        return self._sibling(session, self.setup)

    async def preview_handoff(self, goal: str | None = None) -> str:
        """Return the checkpoint's summary that `handoff` would write, for editing; begins nothing."""
        _, boundary = await self._handed(goal, None)
        return boundary.checkpoint.summary

    async def _handed(self, goal: str | None, text: str | None) -> tuple[ViewState, Compacted]:
        async with self._lock:
            await self._ready()
            fold = ViewState(
                self._log.fold.entries(), counter=self.setup.counter
            )  # appends may go on meanwhile
            ask = await self._live.onto(self._compactor.ask("manual"), fold)
        ask = msgspec.structs.replace(ask, goal=goal)
        link = noted(Link(self.id, "handoff", "from"))
        steps = handoff(fold, ask, start_of(fold, link), self.setup.counter, text=text)
        made = await execute(steps, self.summarizer, aside=True)
        if not isinstance(made, Compacted):
            why = made.why if isinstance(made, Nothing) else "nothing to fold"
            raise InputError(f"session {self.id} has nothing to hand off ({why})")
        return fold, made

    async def subagent(self, goal: str, *, to: str | None = None) -> Self:
        """Begin a session of a sub-agent, linked to this one; `to` is its id. Raises InputError where that is taken.

        No threshold compacts it, an overflow does. Until `finished(id)` it stands in the live state as running.
        """
        session = to or new_id(self.id)
        await self._loaded()
        link = Link(self.id, "subagent", "from", self._log.leaf, goal)
        await begin(self.store, session, [chained(noted(link), None)])
        await self._note(noted(msgspec.structs.replace(link, session=session, way="to")))
        await self._note_subagents(lambda running: with_child(running, session, goal))
        return self._sibling(session, msgspec.structs.replace(self.setup, subagent=True))

    async def finished(self, session: str) -> None:
        """Say that a sub-agent has ended: it no longer stands in the live state."""
        await self._note_subagents(lambda running: without_child(running, session))

    async def _note_subagents(self, change: Callable[[str], str]) -> None:
        async with self._lock:
            await self._ready()
            running = known_live(self._log.fold).get(SUBAGENTS, "")
            await self._log.write(Noted("", None, NOTE, {SUBAGENTS: change(running)}, at=time.time()))

    async def links(self) -> list[Link]:
        """Return the sessions that this one came from or led to; reads the path."""
        return await links(self.store, self.id)

    async def _note(self, note: Noted) -> None:
        async with self._lock:
            await self._ready()
            await self._log.write(note)

    # ---- recall

    async def recall(self, query: str, limit: int = 20) -> list[Hit]:
        """Search what was said, folded messages included; then in the sessions that this one was handed off from."""
        return await past.search(self.store, await self._pasts(), query, limit)

    async def read(self, entry: str, offset: int = 0, limit: int = past.PASSAGE) -> past.Passage:
        """Read a message as text, `limit` characters from `offset` on; raises InputError for no message."""
        return await past.read(self.store, await self._pasts(), entry, offset, limit)

    async def folded(self, limit: int = 50, before: str | None = None) -> list[past.FoldedEntry]:
        """Return what the view does not show as received, oldest first; `before` goes on backwards from an entry."""
        await self._loaded()
        return await past.folded(self.store, self.id, self._log.fold, limit, before)

    async def _pasts(self) -> Sequence[str]:
        await self._loaded()
        return await handed_from(self.store, self.id)

    # ---- tools for the model

    def tools(self, *, compact: bool = False) -> list[dict[str, Any]]:
        """Return definitions of the recall tools in the session's dialect, to be sent beside your own.

        With `compact` also one by which the model asks for a compaction. They count in the view from now on.
        """
        chosen = (*tools.RECALL_TOOLS, *((tools.COMPACT_TOOL,) if compact else ()))
        made = tools.definitions(self.dialect, chosen)
        new = [one for one, tool in zip(made, chosen, strict=True) if tool.name not in self._offered]
        if new:
            setup, more = self.setup, tools_tokens(new, self.setup.counter)
            apart = msgspec.structs.replace(setup.apart, tools=setup.apart.tools + more)
            beside = [*(setup.tools or ()), *new]
            self._compactor.triggers.use(msgspec.structs.replace(setup, tools=beside, apart=apart))
            self._offered |= {tool.name for tool in chosen}
        return made

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> str:
        """Run a tool of `tools` that the model called and return the text of its result, 2,500 tokens at most.

        `arguments` is the parsed object or its JSON. Wrong ones are answered with words for the model; InputError
        is raised for a name that is none of these tools'.
        """
        tool = next((one for one in (*tools.RECALL_TOOLS, tools.COMPACT_TOOL) if one.name == name), None)
        if tool is None:
            raise InputError(f"no tool {name!r} here; there are {', '.join(TOOLS)}")
        try:
            return await self._called(name, tools.arguments_of(tool, arguments))
        except InputError as error:
            return tools.refused(error)

    async def _called(self, name: str, given: Mapping[str, Any]) -> str:
        if name == tools.COMPACT:
            self._wish = given.get("focus", "")
            return f"{MARK}The conversation is folded before your next step."
        count = self.setup.counter.count
        if name == "recall_read":
            passage = await self.read(given["entry"], given.get("offset", 0))
            while count(passage.text) > tools.RESULT_TOKENS and len(passage.text) > 1:
                passage = await self.read(passage.entry, passage.offset, len(passage.text) * 3 // 4)
            return tools.passage_text(passage)
        if name == "recall_list":
            limit = tools.capped(given, "limit", tools.LISTED)
            entries = await self.folded(limit, given.get("before"))
            full = len(entries) >= limit
            return tools.trimmed(
                entries,
                lambda some: tools.listed_text(some, more=full or len(some) < len(entries)),
                count,
                newest=True,
            )
        hits = await self.recall(given["query"], tools.capped(given, "limit", tools.HITS))
        return tools.trimmed(
            hits, lambda some: tools.hits_text(given["query"], some, self.id), count, newest=False
        )

    def _wished(self) -> Callable[[], Awaitable[object]] | None:
        """Return the compaction that the model asked for, to be waited for without the lock; None without one."""
        wish, self._wish = self._wish, None
        return None if wish is None else partial(self._as_wished, wish or None)

    async def _as_wished(self, focus: str | None) -> None:
        try:
            await self._compactor.compact("agent", focus)
        except asyncio.CancelledError:
            self._wish = focus or ""  # the next one that asks for the context waits for it
            raise
        except (
            FoldlineError
        ) as error:  # told by an event too; the work goes on as if it had not been asked for
            log.warning("session %s: the compaction that the model asked for failed: %s", self.id, error)

    async def _carry_on(self) -> None:
        """Append the policy's request to continue, where a boundary left nothing else to send; the lock is held.

        That is behind a reply that was cut off: what waits for the user, or is done, is not continued.
        """
        text = self.setup.policy.continuation
        entries = self._log.fold.entries() if text else []
        newest = next((entry for entry in reversed(entries) if not isinstance(entry, Noted)), None)
        if not isinstance(newest, Compacted) or newest.receipt.reason not in BY_ITSELF:
            return
        if standing(self._log.fold).because == "cut_off":
            await self._log.say([Message("user", (Text(text),), injected=True)])

    # ---- state

    def attach(self, name: str, render: Render) -> Callable[[], None]:
        """Have live state, such as `todos`, rendered into every checkpoint to come; returns what ends that.

        `render` returns a text (None or "": there is none now), or is a coroutine function. The checkpoint holds
        it frozen until the next boundary. Raises InputError for a name that is no short name.
        """
        return self._live.attach(name, render)

    async def live(self) -> dict[str, str]:
        """Return the live state as it is now, by name: what the next boundary would freeze."""
        await self._loaded()
        return {one.name: one.text for one in await self._live.now(self._log.fold)}

    async def standing(self) -> Continuation:
        """Return where the session stands: mid_tool (the model goes on), waiting for the user, or done."""
        await self._loaded()
        return standing(self._log.fold)

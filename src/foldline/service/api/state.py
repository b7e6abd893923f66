"""State that the operations of the API share, and how sessions are opened.

The options of a session created over HTTP are stored in its first note.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import AbstractContextManager, aclosing
from functools import partial
from typing import Any, Final, cast

import msgspec

import foldline
from foldline.config import ServeSettings, Settings
from foldline.core.decide.presets import PRESETS
from foldline.core.log.entries import Entry, Noted
from foldline.errors import PolicyError, SessionNotFound
from foldline.service.metrics import Metrics
from foldline.service.models import Models, closing, give
from foldline.service.tenants import Tenant
from foldline.session.events import Event, ModelChanged
from foldline.session.kept import kept_of
from foldline.session.session import Session
from foldline.stores import Store
from foldline.stores.database_store import DatabaseStore
from foldline.stores.tree import SERVED

HEAD: Final = 64  # first entries of a session in which its options are searched
IMPORTED: Final = "imported"  # sessions whose age counts from their import, not from their entries


class SessionOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """The options that a session was created with; None: the service's."""

    model: str | None = None
    policy: str | None = None
    system: str | None = None
    user: str | None = None
    metadata: dict[str, str] = {}

    def note(self) -> Noted:
        """Return the note that stores these options, not chained yet."""
        return Noted("", None, SERVED, cast("dict[str, Any]", msgspec.to_builtins(self)), at=time.time())


class Opening(msgspec.Struct, frozen=True):
    """How to open a session: its options, and its current model.

    `begun` is the id and time of its first entry: they differ if the session was deleted and created again.
    """

    begun: tuple[str, float | None]
    options: SessionOptions
    model: str | None


async def stored_options(store: Store, session: str) -> SessionOptions:
    """Return the options of a session with later changes; raises SessionNotFound."""
    created = (await _opening(store, session)).options
    if not isinstance(store, DatabaseStore):
        return created
    notes: list[Entry] = await cast("DatabaseStore[Any]", store).notes(session)
    fields: dict[str, Any] = {}
    for note in notes:
        if isinstance(note, Noted) and _options_in(note) is not None:
            fields |= note.data
    return msgspec.convert(fields, SessionOptions)


async def _opening(store: Store, session: str) -> Opening:
    begun, count = None, 0
    async with aclosing(cast("Any", store.all(session))) as entries:
        async for entry in entries:
            begun = begun or (entry.id, entry.at)
            options = _options_in(entry)
            if options is not None:
                return Opening(begun, options, options.model)
            count += 1
            if count >= HEAD:
                break
    if begun is None:
        raise SessionNotFound(f"there is no session {session!r}")
    return Opening(begun, SessionOptions(), None)


def _options_in(entry: Entry) -> SessionOptions | None:
    if not isinstance(entry, Noted) or entry.kind != SERVED:
        return None
    try:
        return msgspec.convert(entry.data, SessionOptions)
    except msgspec.ValidationError:  # an imported log may hold anything
        return None


class ApiState:
    """Settings, models, metrics and background work, shared by all operations."""

    def __init__(self, serve: ServeSettings, settings: Settings, metrics: Metrics) -> None:
        self.serve = serve
        self.settings = settings
        self.metrics = metrics
        self.models = Models(serve, settings)
        self.imports = asyncio.Semaphore(2)  # at once: each holds its file in memory
        self._ending: set[asyncio.Future[Any]] = set()

    def check_policy(self, name: str | None) -> None:
        """Raise PolicyError unless the name is None or a known policy; clients cannot name files."""
        names = (*PRESETS, *self.settings.user_policies())
        if name is not None and name not in names:
            raise PolicyError(f"no policy {name!r}; there are {', '.join(names)}")

    async def opening(self, tenant: Tenant, session: str) -> Opening:
        """Return how to open a session, with its current model; raises SessionNotFound.

        A session of another tenant is not found.
        """
        opening = await _opening(tenant.store, session)
        if tenant.sessions.is_open(session, opening.begun):
            return opening  # not used: the session is open
        model = (await kept_of(tenant.store, session)).model
        return msgspec.structs.replace(opening, model=model) if model else opening

    def use(self, tenant: Tenant, session: str, opening: Opening) -> AbstractContextManager[Session]:
        """Use a session while the block runs."""
        return tenant.sessions.use(session, partial(self._open, tenant, opening), opening.begun)

    def _open(self, tenant: Tenant, opening: Opening, session: str) -> Session:
        policy = opening.options.policy
        if policy not in (*PRESETS, *self.settings.user_policies()):
            policy = self.serve.policy  # an imported log may name any policy
        model = opening.model if opening.model in self.models.names else self.models.usual
        opened = foldline.open(
            tenant.store,
            session,
            model=model if opening.model in (None, model) else None,  # the window of another model is stored
            policy=policy,
            window=self.serve.window,
            system=opening.options.system,
            summarizer=self.models.summarizer(model),
        )
        opened.follow_model()
        opened.on(ModelChanged.name, lambda event: self._change_summarizer(opened, event))
        opened.make_drafts_by(tenant.drafts)
        tenant.feed.watch(opened)
        return closing(opened)

    def _change_summarizer(self, opened: Session, event: Event) -> None:
        """Let the session's new model write its summaries."""
        assert isinstance(event, ModelChanged)
        model = event.model if event.model in self.models.names else self.models.usual
        give(opened, self.models.summarizer(model))

    def end(self, work: Awaitable[Any]) -> None:
        """Run work in the background; `finish` waits for it."""
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def finish(self, seconds: float) -> None:
        """Wait for background work, at most so many seconds."""
        if self._ending:
            await asyncio.wait(self._ending, timeout=seconds)

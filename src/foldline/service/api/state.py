"""What the operations of the API work with: how sessions are opened, and what is kept for each tenant.

How a session that was made over HTTP is opened is noted in it when it is created, so that it lasts. Previews
of compactions wait in the tenant's store to be committed or dropped, bounded in number and age.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Generator
from contextlib import aclosing, contextmanager
from typing import Any, Final, cast
from weakref import WeakValueDictionary

import msgspec

import foldline
from foldline.config import ServeSettings, Settings
from foldline.core.decide.presets import PRESETS
from foldline.core.log.entries import Entry, Noted
from foldline.errors import PolicyError, SessionNotFound
from foldline.service.api.idempotency import IdempotencyKeys
from foldline.service.metrics import Metrics
from foldline.service.models import Models, closing, give
from foldline.service.presence import Leases
from foldline.service.tenants import Tenant
from foldline.session.events import Event, ModelChanged
from foldline.session.kept import kept_of
from foldline.session.preview import Preview
from foldline.session.session import Session
from foldline.stores import Store
from foldline.stores.database_store import DatabaseStore
from foldline.stores.key_values import KeyValues, pack, unpack
from foldline.stores.tree import SERVED

HEAD: Final = 64  # entries at the beginning of a session among which it stands
PREVIEWS: Final = "preview"
MOST: Final = 64  # previews of a tenant; the oldest leaves
SECONDS: Final = 3_600.0  # that a preview is kept
IMPORTED: Final = "imported"  # names sessions that are not old yet, however old their entries are


class SessionOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a session was created with; what is not given is the service's."""

    model: str | None = None
    policy: str | None = None
    system: str | None = None
    user: str | None = None
    metadata: dict[str, str] = {}

    def noted(self) -> Noted:
        """Return the note of these options, not chained yet."""
        return Noted("", None, SERVED, cast("dict[str, Any]", msgspec.to_builtins(self)), at=time.time())


class Opening(msgspec.Struct, frozen=True):
    """How a session is opened: what it was created with, and the model that it went on with last.

    `begun` is its first entry and when that was made: another one where the session was begun anew.
    """

    begun: tuple[str, float | None]
    options: SessionOptions
    model: str | None


async def stored_options(store: Store, session: str) -> SessionOptions:
    """Return what a session was created with, and then given; raises SessionNotFound where there is none."""
    created = (await _opening(store, session)).options
    if not isinstance(store, DatabaseStore):
        return created
    notes: list[Entry] = await cast("DatabaseStore[Any]", store).notes(session)
    changed: dict[str, Any] = {}
    for note in notes:
        if isinstance(note, Noted) and _options(note) is not None:
            changed |= note.data
    return msgspec.convert(changed, SessionOptions)


async def _opening(store: Store, session: str) -> Opening:
    begun, count = None, 0
    async with aclosing(cast("Any", store.all(session))) as entries:
        async for entry in entries:
            begun = begun or (entry.id, entry.at)
            found = _options(entry)
            if found is not None:
                return Opening(begun, found, found.model)
            count += 1
            if count >= HEAD:
                break
    if begun is None:
        raise SessionNotFound(f"there is no session {session!r}")
    return Opening(begun, SessionOptions(), None)


def _options(entry: Entry) -> SessionOptions | None:
    if not isinstance(entry, Noted) or entry.kind != SERVED:
        return None
    try:
        return msgspec.convert(entry.data, SessionOptions)
    except msgspec.ValidationError:  # an imported log may say anything
        return None


# ---- what is kept of a tenant


class KeptPreview(msgspec.Struct, frozen=True):
    """A preview of a session, and until when it is kept, Unix time."""

    id: str
    session: str
    preview: Preview
    until: float


class KeptPreviews:
    """The previews of one tenant."""

    def __init__(self, values: KeyValues, most: int = MOST, seconds: float = SECONDS) -> None:
        self._values = values
        self._most = most
        self._seconds = seconds

    async def keep(self, session: str, preview: Preview) -> KeptPreview:
        """Keep a preview under a new id."""
        one = KeptPreview(secrets.token_hex(12), session, preview, time.time() + self._seconds)
        await self._values.add(PREVIEWS, one.id, pack(one), seconds=self._seconds, session=session)
        await self._values.trim(PREVIEWS, self._most)
        return one

    async def find(self, session: str, name: str) -> KeptPreview | None:
        """Return a session's preview; None where it is not, or no more, there."""
        raw = await self._values.get(PREVIEWS, name)
        found = None if raw is None else unpack(raw, KeptPreview)
        return found if found is not None and found.session == session else None

    async def drop(self, name: str) -> None:
        """Forget a preview."""
        await self._values.delete(PREVIEWS, name)


class TenantState:
    """What is kept of one tenant: idempotency keys, previews, turns under way, and locks.

    The locks keep the requests of this process off each other; those of others are kept off by the leaf.
    """

    def __init__(self, tenant: Tenant) -> None:
        self.keys = IdempotencyKeys(tenant.presence)
        self.previews = KeptPreviews(tenant.values)
        self.turns = Leases(tenant.presence, "turn")
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, session: str) -> asyncio.Lock:
        """Return the lock that a change of a session holds."""
        known = self._locks.get(session)
        if known is None:
            known = self._locks[session] = asyncio.Lock()
        return known


# ---- what all operations share


class ApiState:
    """What all operations share."""

    def __init__(self, serve: ServeSettings, known: Settings, metrics: Metrics) -> None:
        self.serve = serve
        self.known = known
        self.metrics = metrics
        self.models = Models(serve, known)
        self.imports = asyncio.Semaphore(2)  # at once: each holds its file in memory
        self._tenants: dict[str, TenantState] = {}
        self._ending: set[asyncio.Future[Any]] = set()

    def of(self, tenant: Tenant) -> TenantState:
        """Return what is kept of a tenant."""
        known = self._tenants.get(tenant.name)
        if known is None:
            known = self._tenants[tenant.name] = TenantState(tenant)
        return known

    def check_policy(self, name: str | None) -> None:
        """Raise PolicyError unless it is None or a policy's name; files cannot be named from outside."""
        known = (*PRESETS, *self.known.user_policies())
        if name is not None and name not in known:
            raise PolicyError(f"no policy {name!r}; there are {', '.join(known)}")

    async def opening(self, tenant: Tenant, session: str) -> Opening:
        """Return how a session is opened; raises SessionNotFound where it is not this tenant's.

        Its model is the one that it went on with last, whoever asked it.
        """
        found = await _opening(tenant.store, session)
        if tenant.sessions.is_open(session, found.begun):
            return found  # it is open as it is
        kept = (await kept_of(tenant.store, session)).model
        return msgspec.structs.replace(found, model=kept) if kept else found

    @contextmanager
    def use(self, tenant: Tenant, session: str, opening: Opening) -> Generator[Session]:
        """Use a session while the block runs."""
        with tenant.sessions.use(
            session, lambda name: self._opened(tenant, name, opening), opening.begun
        ) as found:
            yield found

    def _opened(self, tenant: Tenant, session: str, opening: Opening) -> Session:
        policy = opening.options.policy
        if policy not in (*PRESETS, *self.known.user_policies()):
            policy = self.serve.policy  # an imported log may name anything
        model = opening.model if opening.model in self.models.names else self.models.usual
        opened = foldline.open(
            tenant.store,
            session,
            model=model if opening.model in (None, model) else None,  # another's window is the one stored
            policy=policy,
            window=self.serve.window,
            system=opening.options.system,
            summarizer=self.models.summarizer(model),
        )
        opened.follow_model()
        opened.on(ModelChanged.name, lambda event: self._changed(opened, event))
        opened.make_drafts_by(tenant.drafts)
        tenant.feed.watch(opened)
        return closing(opened)

    def _changed(self, opened: Session, event: Event) -> None:
        """Have the summaries of a session written by the model that it goes on with."""
        assert isinstance(event, ModelChanged)
        model = event.model if event.model in self.models.names else self.models.usual
        give(opened, self.models.summarizer(model))

    def end(self, work: Awaitable[Any]) -> None:
        """Let something come to its end beside the requests; `close` waits for it."""
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def finish(self, seconds: float) -> None:
        """Wait for what comes to its end, that long at most."""
        if self._ending:
            await asyncio.wait(self._ending, timeout=seconds)

    async def close(self) -> None:
        """Close the connections to the models."""
        await self.models.close()

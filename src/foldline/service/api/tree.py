"""The tree of a session, and the sessions that begin from it: branches, rewind, fork, hand-off."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.responses import Response

from foldline.service.api.history import EntryId
from foldline.service.api.operation import ApiCall, ApiResult, NewId, Operation, Words
from foldline.service.api.sessions import AT, LeafResult, busy
from foldline.service.problems import problem
from foldline.session.links import LINK, links
from foldline.session.session import Session
from foldline.session.tree import Branch


class BranchList(msgspec.Struct, frozen=True):
    """The branches of a session, the newest first."""

    branches: list[Branch]


class BranchWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The entry to go on from; with `summarize`, what is left is told as data behind it."""

    entry: EntryId
    summarize: bool = False
    instructions: Words | None = None


class RewindWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The message of the user's to go back to before; null: the newest."""

    entry: EntryId | None = None


class RewindResult(msgspec.Struct, frozen=True):
    """The user's text for editing, the leaf that was left, and the leaf now."""

    text: str
    left: str
    leaf: str | None


class ForkWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The entry up to which the path is copied (null: all of it), and the new session's id."""

    entry: EntryId | None = None
    id: NewId | None = None


class HandoffWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the new session is for, its id, and its summary as the user edited it."""

    goal: Words | None = None
    id: NewId | None = None
    text: Words | None = None


TITLE: Final = 80  # characters of a goal that a new session is called by


class HandoffGoal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the new session is for; null: the newest request."""

    goal: Words | None = None


class HandoffText(msgspec.Struct, frozen=True):
    """The summary that the new session would begin with, for editing."""

    text: str


class NextSession(msgspec.Struct, frozen=True):
    """A session that was begun from another one, and its leaf."""

    id: str
    leaf: str | None


async def branches(call: ApiCall) -> ApiResult:
    """List the branches."""
    return ApiResult(BranchList(await call.session.branches()))


async def branch(call: ApiCall) -> ApiResult | Response:
    """Go on from another entry."""
    wish: BranchWish = call.body
    if await _turning(call):
        return busy(call.session.id)
    leaf = await call.session.branch(wish.entry, summarize=wish.summarize, instructions=wish.instructions)
    return ApiResult(LeafResult(leaf))


async def rewind(call: ApiCall) -> ApiResult | Response:
    """Go back to before a message of the user's."""
    if await _turning(call):
        return busy(call.session.id)
    taken = await call.session.rewind(call.body.entry)
    return ApiResult(RewindResult(taken.text, taken.left, call.session.leaf))


async def _turning(call: ApiCall) -> bool:
    return await call.state.of(call.tenant).turns.held(call.session.id)


async def fork(call: ApiCall) -> ApiResult | Response:
    """Copy the path into a new session."""
    wish: ForkWish = call.body
    name = wish.id or f"{call.session.id}-{call.token[:8]}"
    if (known := await _known(call, name)) is not None:
        return known
    return await _begun(call, await call.session.fork(name, at=wish.entry))


async def handoff(call: ApiCall) -> ApiResult | Response:
    """Begin a new session with what serves its goal."""
    wish: HandoffWish = call.body
    name = wish.id or f"{call.session.id}-{call.token[:8]}"
    if (known := await _known(call, name)) is not None:
        return known
    child = await call.session.handoff(wish.goal, to=name, text=wish.text)
    return await _begun(call, child, title=" ".join((wish.goal or "").split())[:TITLE])


async def _known(call: ApiCall, name: str) -> ApiResult | Response | None:
    """Return what there is to say of a session that exists: an earlier try began it, or it is another one."""
    store = call.tenant.store
    if await store.leaf(name) is None:
        return None
    known = await links(store, name) if call.again else []
    came_from = next((one for one in known if (one.way, one.session) == ("from", call.session.id)), None)
    if came_from is not None:
        if not any(one.session == name for one in await links(store, call.session.id)):
            there = msgspec.structs.replace(came_from, session=name, way="to")
            await call.session.note(LINK, **msgspec.to_builtins(there))
        options = await call.state.options(call.tenant, call.session.id)
        with call.state.use(call.tenant, name, options) as child:
            return await _noted(call, child)
    return problem(409, "there is such a session", f"{name!r} exists already: give another id")


async def _begun(call: ApiCall, child: Session, title: str = "") -> ApiResult:
    """Note in a new session how it is opened, and what it is called, and close it again."""
    async with child:
        return await _noted(call, child, title)


async def _noted(call: ApiCall, child: Session, title: str = "") -> ApiResult:
    note = (await call.state.options(call.tenant, call.session.id)).noted()
    await child.note(note.kind, **note.data)
    if title:
        await child.note("title", title=title)
    return ApiResult(NextSession(child.id, child.leaf), headers={"location": f"/api/sessions/{child.id}"})


async def preview_handoff(call: ApiCall) -> ApiResult:
    """Show the summary that a hand-off would begin with."""
    return ApiResult(HandoffText(await call.session.preview_handoff(call.body.goal)))


OPERATIONS: Final = (
    Operation(
        name="listBranches",
        method="GET",
        path=f"{AT}/branches",
        about="List the branches of a session",
        run=branches,
        result=BranchList,
    ),
    Operation(
        name="branch",
        method="POST",
        path=f"{AT}/branch",
        about="Go on from another entry; what is left stays as a branch",
        run=branch,
        body=BranchWish,
        result=LeafResult,
        changes=True,
        keyed=True,
    ),
    Operation(
        name="rewind",
        method="POST",
        path=f"{AT}/rewind",
        about="Go back to before a message of the user's, whose text comes back for editing",
        run=rewind,
        body=RewindWish,
        result=RewindResult,
        changes=True,
        keyed=True,
    ),
    Operation(
        name="fork",
        method="POST",
        path=f"{AT}/fork",
        about="Begin a session with a copy of the path",
        run=fork,
        body=ForkWish,
        result=NextSession,
        status=201,
        changes=True,
        keyed=True,
        resumes=True,
    ),
    Operation(
        name="handOff",
        method="POST",
        path=f"{AT}/handoff",
        about="Begin a session for a goal with what of this one serves it",
        run=handoff,
        body=HandoffWish,
        result=NextSession,
        status=201,
        changes=True,
        held=False,
        keyed=True,
        resumes=True,
    ),
    Operation(
        name="previewHandOff",
        method="POST",
        path=f"{AT}/handoff/preview",
        about="Show the summary that a hand-off would begin with; begins nothing",
        run=preview_handoff,
        body=HandoffGoal,
        result=HandoffText,
    ),
)

"""The tree of a session, and the sessions that begin from it: branches, rewind, fork, hand-off."""

from __future__ import annotations

from typing import Final

import msgspec

from foldline.service.api.history import EntryId
from foldline.service.api.operation import ApiCall, NewId, Words, operation
from foldline.service.api.sessions import AT, LeafResult, check_no_turn, taken
from foldline.service.api.state import stored_options
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


class MergeWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The leaf of another branch, or a session such as a fork of this one; `instructions` for the summary."""

    branch: EntryId
    instructions: Words | None = None


class MergeResult(msgspec.Struct, frozen=True):
    """The entry of the note that tells what was done there, and the leaf now."""

    entry: str
    leaf: str | None


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


ENTRY: Final = "a9e17dff01a45b4c1dc3fcadd11326f2"  # in examples
GOAL: Final = {"goal": "Write the tests of the parser."}
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


@operation("GET", f"{AT}/branches")
async def list_branches(call: ApiCall) -> BranchList:
    """List the branches of a session."""
    return BranchList(await call.session.branches())


@operation("POST", f"{AT}/branch", changes=True, keyed=True, example={"entry": ENTRY})
async def branch(call: ApiCall, body: BranchWish) -> LeafResult:
    """Go on from another entry; what is left stays as a branch."""
    await check_no_turn(call, call.session.id)
    leaf = await call.session.branch(body.entry, summarize=body.summarize, instructions=body.instructions)
    return LeafResult(leaf)


@operation("POST", f"{AT}/merge", changes=True, held=False, keyed=True, example={"branch": ENTRY})
async def merge(call: ApiCall, body: MergeWish) -> MergeResult:
    """Note here what was done on another branch or in a fork; that stays as it is."""
    return MergeResult(
        await call.session.merge(body.branch, instructions=body.instructions), call.session.leaf
    )


@operation("POST", f"{AT}/rewind", changes=True, keyed=True, example={"entry": ENTRY})
async def rewind(call: ApiCall, body: RewindWish) -> RewindResult:
    """Go back to before a message of the user's, whose text comes back for editing."""
    await check_no_turn(call, call.session.id)
    taken = await call.session.rewind(body.entry)
    return RewindResult(taken.text, taken.left, call.session.leaf)


@operation("POST", f"{AT}/fork", status=201, changes=True, keyed=True, resumes=True, example={"entry": ENTRY})
async def fork(call: ApiCall, body: ForkWish) -> NextSession:
    """Begin a session with a copy of the path."""
    name = body.id or f"{call.session.id}-{call.token[:8]}"
    if (known := await _known(call, name)) is not None:
        return known
    first_try = call.remembered.record.leaf if call.remembered is not None else None
    return await _begun(call, await call.session.fork(name, at=body.entry or first_try))


@operation(
    "POST", f"{AT}/handoff", status=201, changes=True, held=False, keyed=True, resumes=True, example=GOAL
)
async def hand_off(call: ApiCall, body: HandoffWish) -> NextSession:
    """Begin a session for a goal with what of this one serves it."""
    name = body.id or f"{call.session.id}-{call.token[:8]}"
    title = " ".join((body.goal or "").split())[:TITLE]
    if (known := await _known(call, name, title)) is not None:
        return known
    return await _begun(call, await call.session.handoff(body.goal, to=name, text=body.text), title)


async def _known(call: ApiCall, name: str, title: str = "") -> NextSession | None:
    """Return the session that an earlier try began, None where there is none; another one is refused."""
    store, here = call.tenant.store, call.session.id
    if await store.leaf(name) is None:
        return None
    known = await links(store, name) if call.again else []
    came_from = next((one for one in known if (one.way, one.session) == ("from", here)), None)
    if came_from is None:
        raise taken(name)
    if not any(one.session == name for one in await links(store, here)):
        there = msgspec.structs.replace(came_from, session=name, way="to")
        await call.session.note(LINK, **msgspec.to_builtins(there))
    with call.state.use(call.tenant, name, await call.state.opening(call.tenant, here)) as child:
        return await _noted(call, child, title)


async def _begun(call: ApiCall, child: Session, title: str = "") -> NextSession:
    """Note in a new session how it is opened, and what it is called, and close it again."""
    async with child:
        return await _noted(call, child, title)


async def _noted(call: ApiCall, child: Session, title: str) -> NextSession:
    note = (await stored_options(call.tenant.store, call.session.id)).noted()
    await child.note(note.kind, **note.data)
    if title:
        await child.note("title", title=title)
    call.headers["location"] = f"/api/sessions/{child.id}"
    return NextSession(child.id, child.leaf)


@operation("POST", f"{AT}/handoff/preview", example=GOAL)
async def preview_hand_off(call: ApiCall, body: HandoffGoal) -> HandoffText:
    """Show the summary that a hand-off would begin with; begins nothing."""
    return HandoffText(await call.session.preview_handoff(body.goal))

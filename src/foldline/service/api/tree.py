"""The tree of a session, and sessions that start from it: branches, rewind, fork, hand-off."""

from __future__ import annotations

from typing import Final

import msgspec

from foldline.service.api.history import EntryId
from foldline.service.api.operation import ApiCall, NewId, Words, operation
from foldline.service.api.sessions import AT, LeafResult, taken
from foldline.service.api.state import stored_options
from foldline.session.links import LINK, links
from foldline.session.session import Session
from foldline.session.tree import Branch


class BranchList(msgspec.Struct, frozen=True):
    """The branches of a session, the newest first."""

    branches: list[Branch]


class BranchWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The entry to continue from; `summarize` adds a summary of the branch that is left."""

    entry: EntryId
    summarize: bool = False
    instructions: Words | None = None


class MergeWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The leaf of another branch, or the id of a session such as a fork; `instructions` for the summary."""

    branch: EntryId
    instructions: Words | None = None


class MergeResult(msgspec.Struct, frozen=True):
    """The entry of the note that sums up the branch, and the new leaf."""

    entry: str
    leaf: str | None


class RewindWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user message to rewind to, which is taken out; null: the newest."""

    entry: EntryId | None = None


class RewindResult(msgspec.Struct, frozen=True):
    """The user's text for editing, the leaf of the branch that was left, and the new leaf."""

    text: str
    left: str
    leaf: str | None


class ForkWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last entry to copy (null: the whole path), and the new session's id."""

    entry: EntryId | None = None
    id: NewId | None = None


class HandoffWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The goal of the new session, its id, and its summary as the user edited it."""

    goal: Words | None = None
    id: NewId | None = None
    text: Words | None = None


ENTRY: Final = "a9e17dff01a45b4c1dc3fcadd11326f2"  # in examples
GOAL: Final = {"goal": "Write the tests of the parser."}
TITLE: Final = 80  # characters of the goal in the new session's title


class HandoffGoal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The goal of the new session; null: the newest request."""

    goal: Words | None = None


class HandoffText(msgspec.Struct, frozen=True):
    """The summary that the new session would start with, for editing."""

    text: str


class NextSession(msgspec.Struct, frozen=True):
    """A session created from another one, and its leaf."""

    id: str
    leaf: str | None


@operation("GET", f"{AT}/branches")
async def list_branches(call: ApiCall) -> BranchList:
    """List the branches of a session."""
    return BranchList(await call.session.branches())


@operation("POST", f"{AT}/branch", changes=True, keyed=True, example={"entry": ENTRY})
async def branch(call: ApiCall, body: BranchWish) -> LeafResult:
    """Continue from another entry; the path that is left stays as a branch."""
    await call.tenant.check_no_turn(call.session.id)
    leaf = await call.session.branch(body.entry, summarize=body.summarize, instructions=body.instructions)
    return LeafResult(leaf)


@operation("POST", f"{AT}/merge", changes=True, held=False, keyed=True, example={"branch": ENTRY})
async def merge(call: ApiCall, body: MergeWish) -> MergeResult:
    """Add a summary of another branch or of a fork to this path; the other one stays as it is."""
    return MergeResult(
        await call.session.merge(body.branch, instructions=body.instructions), call.session.leaf
    )


@operation("POST", f"{AT}/rewind", changes=True, keyed=True, example={"entry": ENTRY})
async def rewind(call: ApiCall, body: RewindWish) -> RewindResult:
    """Go back to before a user message, and return its text for editing."""
    await call.tenant.check_no_turn(call.session.id)
    rewound = await call.session.rewind(body.entry)
    return RewindResult(rewound.text, rewound.left, call.session.leaf)


@operation("POST", f"{AT}/fork", status=201, changes=True, keyed=True, resumes=True, example={"entry": ENTRY})
async def fork(call: ApiCall, body: ForkWish) -> NextSession:
    """Create a session with a copy of the path."""
    name = body.id or f"{call.session.id}-{call.token[:8]}"
    if (existing := await _from_earlier_attempt(call, name)) is not None:
        return existing
    leaf = call.key_entry.record.leaf if call.key_entry is not None else None  # of the first attempt
    async with await call.session.fork(name, at=body.entry or leaf) as child:
        return await _describe(call, child)


@operation(
    "POST", f"{AT}/handoff", status=201, changes=True, held=False, keyed=True, resumes=True, example=GOAL
)
async def hand_off(call: ApiCall, body: HandoffWish) -> NextSession:
    """Create a session for a goal, with what this session knows about it."""
    name = body.id or f"{call.session.id}-{call.token[:8]}"
    title = " ".join((body.goal or "").split())[:TITLE]
    if (existing := await _from_earlier_attempt(call, name, title)) is not None:
        return existing
    async with await call.session.handoff(body.goal, to=name, text=body.text) as child:
        return await _describe(call, child, title)


async def _from_earlier_attempt(call: ApiCall, name: str, title: str = "") -> NextSession | None:
    """Return the session that an earlier attempt created, if any; raises Refused if the id is taken."""
    store, here = call.tenant.store, call.session.id
    if await store.leaf(name) is None:
        return None
    back_links = await links(store, name) if call.is_retry else []
    origin = next((link for link in back_links if (link.way, link.session) == ("from", here)), None)
    if origin is None:
        raise taken(name)
    if not any(link.session == name for link in await links(store, here)):
        forward = msgspec.structs.replace(origin, session=name, way="to")
        await call.session.note(LINK, **msgspec.to_builtins(forward))
    with call.state.use(call.tenant, name, await call.state.opening(call.tenant, here)) as child:
        return await _describe(call, child, title)


async def _describe(call: ApiCall, child: Session, title: str = "") -> NextSession:
    """Copy the options to a new session and set its title."""
    note = (await stored_options(call.tenant.store, call.session.id)).note()
    await child.note(note.kind, **note.data)
    if title:
        await child.note("title", title=title)
    call.headers["location"] = f"/api/sessions/{child.id}"
    return NextSession(child.id, child.leaf)


@operation("POST", f"{AT}/handoff/preview", example=GOAL)
async def preview_hand_off(call: ApiCall, body: HandoffGoal) -> HandoffText:
    """Show the summary that a hand-off would start with, without creating a session."""
    return HandoffText(await call.session.preview_handoff(body.goal))

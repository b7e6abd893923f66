"""What is clicked: each a form over an operation of the API, after which the browser goes where it leads."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, Final, cast

import msgspec
from starlette.responses import JSONResponse, RedirectResponse, Response

from foldline.core.decide.ask import Nothing
from foldline.errors import FoldlineError
from foldline.files import safe_name
from foldline.service.api import compaction, messages, sessions, transfers, tree, turns
from foldline.service.api.compaction import CompactionResult, CompactionWish, LiftResult
from foldline.service.api.messages import ExclusionWish
from foldline.service.api.operation import Operation
from foldline.service.api.sessions import SessionChange
from foldline.service.api.transfers import ExportQuery
from foldline.service.api.tree import (
    BranchWish,
    ForkWish,
    HandoffGoal,
    HandoffWish,
    MergeWish,
    NextSession,
    RewindResult,
    RewindWish,
)
from foldline.service.api.turns import TurnStream, TurnWish
from foldline.service.problems import status_of, words_of
from foldline.service.web.page_request import BASE, PageRequest, to_session
from foldline.service.web.rendering import HEADERS, segment, short
from foldline.service.web.session_page import session_page

EDGE: Final = "edge"  # the place of the fold in a history
NOTHING_YET: Final = "There is nothing to fold yet: nothing was said."
END: Final = "live"  # where new messages come

Form = dict[str, str]


class PageAction(msgspec.Struct, frozen=True):
    """A button: the operation, what it is given of the form, and what is told when it is done.

    `nothing` is told where there was nothing to do; `notice` may name the session.
    """

    operation: Operation[Any]
    notice: str = ""
    body: Callable[[Form], Any] | None = None
    nothing: str = ""
    at: str = ""


ACTIONS: Final[dict[str, PageAction]] = {
    "compact": PageAction(
        compaction.compact, body=lambda form: CompactionWish(form.get("instructions") or None), at=EDGE
    ),
    "fold-up-to": PageAction(
        compaction.compact, body=lambda form: CompactionWish(up_to=form.get("entry", "")), at=EDGE
    ),
    "fold-since": PageAction(
        compaction.compact, body=lambda form: CompactionWish(since=form.get("entry", "")), at=EDGE
    ),
    "undo": PageAction(
        compaction.undo,
        "The newest fold is undone: what it folded, or took out, is sent again.",
        nothing="There is no fold to undo.",
    ),
    "redo": PageAction(
        compaction.redo, "The fold holds again.", nothing="There is nothing to redo.", at=EDGE
    ),
    "pin": PageAction(messages.pin_entry, "Pinned: every later view holds it word for word."),
    "unpin": PageAction(messages.unpin_entry, "Unpinned."),
    "exclude": PageAction(
        messages.exclude_entry,
        "Taken out: neither the model nor a later fold sees it. Undo brings it back.",
        lambda form: ExclusionWish(int(form["part"]) if form.get("part", "").isdecimal() else None),
    ),
    "branch": PageAction(
        tree.branch,
        "The session goes on from there. What was left is under Branches.",
        lambda form: BranchWish(form.get("entry", "")),
    ),
    "merge": PageAction(
        tree.merge,
        "What was done there is noted here; it stays as it is.",
        lambda form: MergeWish(form.get("entry", "")),
        at=END,
    ),
    "rewind": PageAction(
        tree.rewind,
        "Edit it, and send it again. What was left is under Branches.",
        lambda form: RewindWish(form.get("entry") or None),
    ),
    "fork": PageAction(tree.fork, "A copy of {session}.", lambda form: ForkWish(form.get("entry") or None)),
    "handoff": PageAction(
        tree.hand_off,
        "Handed off from {session}.",
        lambda form: HandoffWish(form.get("goal") or None, None, plain(form.get("text", "")) or None),
    ),
    "rename": PageAction(sessions.change_session, body=lambda form: SessionChange(form.get("title", ""))),
    "clear": PageAction(sessions.clear_session, "Begun again. What was said is under Branches."),
    "delete": PageAction(sessions.delete_session),
}


async def act(asked: PageRequest) -> Response:
    """Do what a button says, and lead to what came of it."""
    action = ACTIONS.get(asked.request.path_params["action"])
    if action is None:
        return asked.problem(404, "No such action", "")
    form, operation = await asked.form(), action.operation
    if operation is sessions.delete_session and form.get("sure") != "yes":
        return asked.back(problem="Tick the box first: it is for good.")
    names: dict[str, Any] = {"entry": form.get("entry", "")} if "{entry}" in operation.path else {}
    try:
        found = await asked.ask(operation, body=action.body(form) if action.body else None, **names)
    except FoldlineError as error:
        return asked.back(problem=words_of(error))
    notice = action.notice.format(session=asked.session)
    match found:
        case None:  # it is deleted
            return RedirectResponse(f"{BASE}/", 303)
        case CompactionResult():
            return await folded(asked, found, "Folded")
        case LiftResult(entry=None):
            return asked.back(problem=action.nothing)
        case NextSession():
            return to_session(found.id, notice=notice)
        case RewindResult():
            return asked.back(notice=notice, draft_of=form.get("entry") or found.left)
        case _ if names:
            return to_message(asked, names["entry"], notice=notice)
        case _:
            return asked.back(action.at, **({"notice": notice} if notice else {}))


async def folded(asked: PageRequest, found: CompactionResult, how: str, *more: str) -> Response:
    """Lead to what a compaction came to: the edge of the fold with its sizes, or why there is none."""
    receipt = found.receipt
    if receipt is None:
        empty = not (await asked.info()).messages
        return asked.back(problem=NOTHING_YET if empty else why(cast("Nothing", found.nothing)))
    sizes = f"{how}: {short(receipt.tokens_before)} tokens are {short(receipt.tokens_after)} now."
    return asked.back(EDGE, notice=" ".join((sizes, *more)), undo="yes")


def to_message(asked: PageRequest, entry: str, **told: str) -> Response:
    """Return the way to a message, wherever in the history it stands."""
    way = asked.back(**told).headers["location"]
    query = way.partition("?")[2]
    return RedirectResponse(f"{BASE}/s/{segment(asked.session)}/at/{segment(entry)}?{query}", 303)


def why(nothing: Nothing) -> str:
    """Return why nothing was folded."""
    return f"Nothing was folded: {nothing.words}."


def plain(text: str) -> str:
    """Return a text of a form with plain line breaks."""
    return text.replace("\r\n", "\n")


# ---- another session


async def preview_handoff(asked: PageRequest) -> Response:
    """Show what a hand-off would begin with."""
    form = await asked.form()
    goal = form.get("goal", "")
    found = await asked.ask(tree.preview_hand_off, body=HandoffGoal(goal or None))
    return asked.page("handoff.html", here="sessions", info=await asked.info(), goal=goal, text=found.text)


async def download(asked: PageRequest) -> Response:
    """Write a session out as a file; for another agent, say first where it looks for it."""
    query = asked.request.query_params
    form, cwd = query.get("format", "markdown"), query.get("cwd", "")[:1_000]
    found = await asked.ask(transfers.export_session, query=ExportQuery(form, cwd=cwd))
    info = await asked.info()
    suffix = {"markdown": "md", "json": "json"}.get(form, "jsonl")
    name = f"{safe_name(info.title or asked.session)}.{form}.{suffix}"
    if place := found.headers.get("foldline-place"):  # where an agent looks for a file, its name counts
        name = safe_name(PurePosixPath(place).name, 200)
    if place and "save" not in query:
        told = {header: found.headers.get(f"foldline-{header}", "") for header in ("command", "warnings")}
        where = {"place": place, "folder": _in_a_shell(str(PurePosixPath(place).parent)), "name": name}
        return asked.page("move.html", here="sessions", info=info, form=form, cwd=cwd, told={**told, **where})
    headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}"'}
    return Response(found.body, media_type="application/octet-stream", headers=headers)


def _in_a_shell(place: str) -> str:
    """Return a place as it is typed; the home directory stays a `~`."""
    return f"~/{shlex.quote(place[2:])}" if place.startswith("~/") else shlex.quote(place)


# ---- talk


async def say(asked: PageRequest) -> Response:
    """Have a turn: as events for a script that reads them, else to its end and back to the page.

    `go_on` has what was said last answered, where nothing new is to be said.
    """
    form = await asked.form()
    streamed = "text/event-stream" in asked.request.headers.get("accept", "")
    text = None if "go_on" in form else form.get("text", "")
    try:
        found = await asked.ask(turns.turn, body=TurnWish(text=text))
    except FoldlineError as error:
        if streamed:
            return JSONResponse({"detail": words_of(error)}, status_of(error))
        return await session_page(asked, status_of(error), problem=words_of(error), draft=text or "")
    stream = cast("TurnStream", found)
    if streamed:
        return stream
    await stream.to_its_end()
    return asked.back(END)

"""Buttons: each is a form that runs an operation of the API and redirects the browser."""

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

EDGE: Final = "edge"  # the anchor of the newest fold in a history
EMPTY: Final = "There is nothing to fold yet: the session has no messages."
END: Final = "live"  # the anchor of new messages

Form = dict[str, str]


class PageAction(msgspec.Struct, frozen=True):
    """A button: its operation, the body made from the form, and the notice after it.

    `nothing` is shown if there was nothing to do; `notice` may name the session; `at` is an anchor.
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
        "The newest fold is undone: its messages are sent again.",
        nothing="There is no fold to undo.",
    ),
    "redo": PageAction(
        compaction.redo, "The fold is in effect again.", nothing="There is nothing to redo.", at=EDGE
    ),
    "pin": PageAction(messages.pin_entry, "Pinned: the model always gets this message word for word."),
    "unpin": PageAction(messages.unpin_entry, "Unpinned."),
    "exclude": PageAction(
        messages.exclude_entry,
        "Taken out: neither the model nor a later fold sees it. Undo restores it.",
        lambda form: ExclusionWish(int(form["part"]) if form.get("part", "").isdecimal() else None),
    ),
    "branch": PageAction(
        tree.branch,
        "The session continues from there. The path you left is under Branches.",
        lambda form: BranchWish(form.get("entry", "")),
    ),
    "merge": PageAction(
        tree.merge,
        "A summary of that branch was added here; the branch itself is unchanged.",
        lambda form: MergeWish(form.get("entry", "")),
        at=END,
    ),
    "rewind": PageAction(
        tree.rewind,
        "Edit the message and send it again. The path you left is under Branches.",
        lambda form: RewindWish(form.get("entry") or None),
    ),
    "fork": PageAction(tree.fork, "A copy of {session}.", lambda form: ForkWish(form.get("entry") or None)),
    "handoff": PageAction(
        tree.hand_off,
        "Handed off from {session}.",
        lambda form: HandoffWish(form.get("goal") or None, None, plain(form.get("text", "")) or None),
    ),
    "rename": PageAction(sessions.change_session, body=lambda form: SessionChange(form.get("title", ""))),
    "clear": PageAction(sessions.clear_session, "Cleared. The old messages are under Branches."),
    "delete": PageAction(sessions.delete_session),
}


async def act(request: PageRequest) -> Response:
    """Run the operation of a button, and redirect to its result."""
    action = ACTIONS.get(request.path["action"])
    if action is None:
        return request.problem(404, "No such action", "")
    form, operation = await request.form(), action.operation
    if operation is sessions.delete_session and form.get("sure") != "yes":
        return request.back(problem="Tick the box first: this cannot be undone.")
    names: dict[str, Any] = {"entry": form.get("entry", "")} if "{entry}" in operation.path else {}
    try:
        result = await request.ask(operation, body=action.body(form) if action.body else None, **names)
    except FoldlineError as error:
        return request.back(problem=words_of(error))
    notice = action.notice.format(session=request.session)
    match result:
        case None:  # deleted
            return RedirectResponse(f"{BASE}/", 303)
        case CompactionResult():
            return await show_fold(request, result, "Folded")
        case LiftResult(entry=None):
            return request.back(problem=action.nothing)
        case NextSession():
            return to_session(result.id, notice=notice)
        case RewindResult():
            return request.back(notice=notice, draft_of=form.get("entry") or result.left)
        case _ if names:
            return to_message(request, names["entry"], notice=notice)
        case _:
            return request.back(action.at, **({"notice": notice} if notice else {}))


async def show_fold(request: PageRequest, result: CompactionResult, title: str, *sentences: str) -> Response:
    """Redirect to a new fold and say its sizes, or why there is none."""
    receipt = result.receipt
    if receipt is None:
        empty = not (await request.info()).messages
        return request.back(problem=EMPTY if empty else why(cast("Nothing", result.nothing)))
    sizes = f"{title}: {short(receipt.tokens_before)} tokens are {short(receipt.tokens_after)} now."
    return request.back(EDGE, notice=" ".join((sizes, *sentences)), undo="yes")


def to_message(request: PageRequest, entry: str, **query_fields: str) -> Response:
    """Redirect to a message anywhere in the history."""
    query = request.back(**query_fields).headers["location"].partition("?")[2]
    return RedirectResponse(f"{request.place}/at/{segment(entry)}?{query}", 303)


def why(nothing: Nothing) -> str:
    """Say why nothing was folded."""
    return f"Nothing was folded: {nothing.words}."


def plain(text: str) -> str:
    """Replace the line breaks of a form by plain ones."""
    return text.replace("\r\n", "\n")


# ---- another session


async def preview_handoff(request: PageRequest) -> Response:
    """Show the summary that a hand-off would start with."""
    form = await request.form()
    goal = form.get("goal", "")
    preview = await request.ask(tree.preview_hand_off, body=HandoffGoal(goal or None))
    return request.page(
        "handoff.html", here="sessions", info=await request.info(), goal=goal, text=preview.text
    )


async def download(request: PageRequest) -> Response:
    """Export a session as a file; for another agent, first show where to put it."""
    query = request.query
    form, cwd = query.get("format", "markdown"), query.get("cwd", "")[:1_000]
    exported = await request.ask(transfers.export_session, query=ExportQuery(form, cwd=cwd))
    info = await request.info()
    suffix = {"markdown": "md", "json": "json"}.get(form, "jsonl")
    name = f"{safe_name(info.title or request.session)}.{form}.{suffix}"
    if place := exported.headers.get("foldline-place"):  # agents find files by their names
        name = safe_name(PurePosixPath(place).name, 200)
    if place and "save" not in query:
        hints = {header: exported.headers.get(f"foldline-{header}", "") for header in ("command", "warnings")}
        hints |= {"place": place, "folder": _shell_quoted(str(PurePosixPath(place).parent)), "name": name}
        return request.page("move.html", here="sessions", info=info, form=form, cwd=cwd, hints=hints)
    headers = {**HEADERS, "content-disposition": f'attachment; filename="{name}"'}
    return Response(exported.body, media_type="application/octet-stream", headers=headers)


def _shell_quoted(place: str) -> str:
    """Quote a path for a shell, but not its `~`."""
    return f"~/{shlex.quote(place[2:])}" if place.startswith("~/") else shlex.quote(place)


# ---- turns


async def say(request: PageRequest) -> Response:
    """Run a turn: stream its events to the page's script, or redirect to the page after it.

    The field `go_on` answers the last message instead of a new one.
    """
    form = await request.form()
    streamed = "text/event-stream" in request.http.headers.get("accept", "")
    text = None if "go_on" in form else form.get("text", "")
    try:
        response = await request.ask(turns.turn, body=TurnWish(text=text))
    except FoldlineError as error:
        if streamed:
            return JSONResponse({"detail": words_of(error)}, status_of(error))
        return await session_page(request, status_of(error), problem=words_of(error), draft=text or "")
    stream = cast("TurnStream", response)
    if streamed:
        return stream
    await stream.drain()
    return request.back(END)

"""What is clicked: each a form, after which the browser goes to the page that shows what came of it."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import Final, cast

from starlette.responses import RedirectResponse, Response

from foldline.core.decide.ask import Nothing
from foldline.core.log.codec import encode_utf8
from foldline.errors import FoldlineError
from foldline.files import safe_name
from foldline.service.api import compaction, messages, sessions, transfers, tree, turns
from foldline.service.api.compaction import CompactionWish
from foldline.service.api.sessions import NewTitle
from foldline.service.api.transfers import ExportQuery
from foldline.service.api.tree import BranchWish, ForkWish, HandoffGoal, HandoffWish, RewindWish
from foldline.service.api.turns import TurnStream, TurnWish
from foldline.service.problems import words_of
from foldline.service.web.page_request import BASE, PageRequest, to_session
from foldline.service.web.rendering import HEADERS, segment, short

EDGE: Final = "edge"  # the place of the fold in a history
NOTHING_YET: Final = "There is nothing to fold yet: nothing was said."
END: Final = "live"  # where new messages come


def to_message(asked: PageRequest, entry: str, **told: str) -> Response:
    """Return the way to a message, wherever in the history it stands."""
    way = asked.back(**told).headers["location"]
    query = way.partition("?")[2]
    return RedirectResponse(f"{BASE}/s/{segment(asked.session)}/at/{segment(entry)}?{query}", 303)


def why(nothing: Nothing) -> str:
    """Return why nothing was folded."""
    return f"Nothing was folded: {nothing.words}."


async def act(asked: PageRequest) -> Response:
    """Do what a button says, and go back to the session."""
    do = ACTIONS.get(asked.request.path_params["action"])
    if do is None:
        return asked.problem(404, "No such action", "")
    form = await asked.form()
    try:
        return await do(asked, form)
    except FoldlineError as error:
        return asked.back(problem=words_of(error))


async def _compact(asked: PageRequest, form: dict[str, str]) -> Response:
    found = await asked.ask(compaction.compact, body=CompactionWish(form.get("instructions") or None))
    if found.receipt is None:
        empty = not (await asked.ask(sessions.show_session)).info.messages
        return asked.back(problem=NOTHING_YET if empty else why(cast("Nothing", found.nothing)))
    told = f"Folded: {short(found.receipt.tokens_before)} tokens are {short(found.receipt.tokens_after)} now."
    return asked.back(EDGE, notice=told)


async def _undo(asked: PageRequest, form: dict[str, str]) -> Response:
    del form
    found = await asked.ask(compaction.undo)
    if found.entry is None:
        return asked.back(problem="There is no fold to undo.")
    return asked.back(notice="The newest fold is undone: what it folded is sent again.")


async def _redo(asked: PageRequest, form: dict[str, str]) -> Response:
    del form
    found = await asked.ask(compaction.redo)
    if found.entry is None:
        return asked.back(problem="There is nothing to redo.")
    return asked.back(EDGE, notice="The fold holds again.")


async def _pin(asked: PageRequest, form: dict[str, str]) -> Response:
    entry = form.get("entry", "")
    await asked.ask(messages.pin_entry, entry=entry)
    return to_message(asked, entry, notice="Pinned: every later view holds it word for word.")


async def _unpin(asked: PageRequest, form: dict[str, str]) -> Response:
    entry = form.get("entry", "")
    await asked.ask(messages.unpin_entry, entry=entry)
    return to_message(asked, entry, notice="Unpinned.")


async def _branch(asked: PageRequest, form: dict[str, str]) -> Response:
    await asked.ask(tree.branch, body=BranchWish(form.get("entry", "")))
    return asked.back(notice="The session goes on from there. What was left is under Branches.")


async def _rewind(asked: PageRequest, form: dict[str, str]) -> Response:
    found = await asked.ask(tree.rewind, body=RewindWish(form.get("entry") or None))
    told = "Edit it, and send it again. What was left is under Branches."
    return asked.back(notice=told, draft=found.text)


async def _fork(asked: PageRequest, form: dict[str, str]) -> Response:
    found = await asked.ask(tree.fork, body=ForkWish(form.get("entry") or None))
    return to_session(found.id, notice=f"A copy of {asked.session}.")


async def _rename(asked: PageRequest, form: dict[str, str]) -> Response:
    await asked.ask(sessions.rename_session, body=NewTitle(form.get("title", "")))
    return asked.back()


async def _clear(asked: PageRequest, form: dict[str, str]) -> Response:
    del form
    await asked.ask(sessions.clear_session)
    return asked.back(notice="Begun again. What was said is under Branches.")


async def _delete(asked: PageRequest, form: dict[str, str]) -> Response:
    if form.get("sure") != "yes":
        return asked.back(problem="Tick the box first: it is for good.")
    await asked.ask(sessions.delete_session)
    return RedirectResponse(f"{BASE}/", 303)


ACTIONS: Final = {
    "compact": _compact,
    "undo": _undo,
    "redo": _redo,
    "pin": _pin,
    "unpin": _unpin,
    "branch": _branch,
    "rewind": _rewind,
    "fork": _fork,
    "rename": _rename,
    "clear": _clear,
    "delete": _delete,
}


# ---- another session


async def preview_handoff(asked: PageRequest) -> Response:
    """Show what a hand-off would begin with."""
    form = await asked.form()
    goal = form.get("goal", "")
    found = await asked.ask(tree.preview_hand_off, body=HandoffGoal(goal or None))
    detail = await asked.ask(sessions.show_session)
    return asked.page("handoff.html", here="sessions", info=detail.info, goal=goal, text=found.text)


async def hand_off(asked: PageRequest) -> Response:
    """Begin a session with what was shown."""
    form = await asked.form()
    text = form.get("text", "").replace("\r\n", "\n")
    found = await asked.ask(tree.hand_off, body=HandoffWish(form.get("goal") or None, None, text or None))
    return to_session(found.id, notice=f"Handed off from {asked.session}.")


async def download(asked: PageRequest) -> Response:
    """Write a session out as a file; for another agent, say first where it looks for it."""
    query = asked.request.query_params
    form, cwd = query.get("format", "markdown"), query.get("cwd", "")[:1_000]
    found = await asked.ask(transfers.export_session, query=ExportQuery(form, cwd=cwd))
    detail = await asked.ask(sessions.show_session)
    suffix = {"markdown": "md", "json": "json"}.get(form, "jsonl")
    name = f"{safe_name(detail.info.title or asked.session)}.{form}.{suffix}"
    if place := found.headers.get("foldline-place"):  # where an agent looks for a file, its name counts
        name = safe_name(PurePosixPath(place).name, 200)
    if place and "save" not in query:
        told = {header: found.headers.get(f"foldline-{header}", "") for header in ("command", "warnings")}
        where = {"place": place, "folder": _in_a_shell(str(PurePosixPath(place).parent)), "name": name}
        return asked.page(
            "move.html", here="sessions", info=detail.info, form=form, cwd=cwd, told={**told, **where}
        )
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
            body = encode_utf8({"detail": words_of(error)})
            return Response(body, 409, media_type="application/json")
        return asked.back(problem=words_of(error), draft=text or "")
    stream = cast("TurnStream", found)
    if streamed:
        return stream
    await stream.to_its_end()
    return asked.back(END)

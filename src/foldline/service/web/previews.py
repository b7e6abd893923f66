"""The preview of a fold: what goes, what stays, the summary to edit, messages to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import RedirectResponse, Response

from foldline.core.compact.receipt import in_window_order
from foldline.core.log.entries import Receipt
from foldline.service.api import boundaries, compaction, history, messages
from foldline.service.api.compaction import CompactionWish, EditedSummary, PreviewResult
from foldline.service.api.history import ShownMessage
from foldline.service.bodies import read_form
from foldline.service.problems import Refused
from foldline.service.web.actions import plain, show_fold, why
from foldline.service.web.meter import Segment, segmented
from foldline.service.web.page_request import PageRequest, to_session
from foldline.service.web.prose import diff
from foldline.service.web.rendering import plural
from foldline.service.web.shown import newest_fold, who
from foldline.session.recall import HIDDEN
from foldline.terminal import clean

SHOWN: Final = 1_000  # newest messages that a preview lists
FIELDS: Final = 3_000  # of its form
GONE: Final = "That preview has expired. This one is new: check it, then fold."


class PreviewForm(msgspec.Struct, frozen=True):
    """The form: the focus, the edited summary, messages to keep, and those pinned by earlier steps."""

    instructions: str
    summary: str
    keep: list[str]
    kept: list[str]


class PreviewStep(msgspec.Struct, frozen=True):
    """The preview to show next, the messages pinned for it, and what went wrong."""

    shown: PreviewResult
    kept: list[str] = []
    problem: str = ""


async def preview(request: PageRequest) -> Response:
    """Show what a fold would do."""
    instructions = (await request.form()).get("instructions", "")
    result = await _make(request, instructions)
    if result.id is None:
        return await _page(request, PreviewStep(result), instructions)
    query = urlencode({"instructions": instructions})
    return RedirectResponse(f"{request.place}/preview/{result.id}?{query}", 303)


async def show(request: PageRequest) -> Response:
    """Show a stored preview again."""
    stored = await _find(request)
    if stored is None:
        return to_session(request.session, notice="That preview has expired: make a new one.")
    return await _page(request, PreviewStep(stored), request.query.get("instructions", "")[:2_000])


async def keep(request: PageRequest) -> Response:
    """Pin messages that must stay, and show the new preview; an edited summary stays as it is."""
    form, stored = await _form(request), await _find(request)
    step = await _remake(request, form, stored)
    return await _page(request, step, form.instructions, _edited(form, stored))


async def commit(request: PageRequest) -> Response:
    """Commit a preview with the edited summary and the ticked messages, or show it again and why not."""
    form, stored = await _form(request), await _find(request)
    edited = _edited(form, stored)
    if stored is None:
        step = msgspec.structs.replace(await _remake(request, form, stored), problem=GONE)
    elif form.keep:  # they change the cut
        step = await _remake(request, form, stored)
    else:
        step = PreviewStep(stored, form.kept)
    if step.problem or step.shown.id is None:
        return await _page(request, step, form.instructions, edited)
    result = await request.ask(compaction.commit_preview, body=EditedSummary(edited), preview=step.shown.id)
    if result.nothing is not None:
        step = msgspec.structs.replace(step, problem=why(result.nothing))
        return await _page(request, step, form.instructions, edited)
    title = "Folded, with the ticked messages kept" if form.keep else "Folded as previewed"
    pinned = [f"{plural(len(step.kept), 'message')} pinned by you, under Rules."] if step.kept else []
    notes = result.receipt.notes if result.receipt is not None and edited is not None else ()
    left_out = [f"{note[:1].upper()}{note[1:]}." for note in notes]  # of the edited summary
    return await show_fold(request, result, title, *pinned, *left_out)


async def leave(request: PageRequest) -> Response:
    """Drop a preview, and unpin the messages that were pinned for it."""
    form = await _form(request)
    await _drop(request)
    await _unpin(request, form.kept)
    return request.back(notice="Nothing has changed.")


async def _page(
    request: PageRequest, step: PreviewStep, instructions: str, edited: str | None = None
) -> Response:
    shown = step.shown
    newest = await request.history(SHOWN)
    sent = [item for item in newest.items if isinstance(item, ShownMessage) and item.how not in HIDDEN]
    last = newest_fold((await request.ask(boundaries.list_boundaries)).boundaries)
    usable = (await request.ask(history.read_stats)).stats.usable
    return request.page(
        "preview.html",
        usable=usable,
        bars=_bars(shown, usable),
        rules=(await request.ask(messages.list_constraints)).standing,
        changed=diff(last.summary, shown.summary) if last and last.summary and shown.summary else "",
        here="sessions",
        info=await request.info(),
        shown=shown,
        preview=shown.id or request.path.get("preview", ""),
        problem=step.problem or ("" if shown.nothing is None else why(shown.nothing)),
        summary=shown.summary if edited is None else edited,
        instructions=instructions,
        kept=step.kept,
        **_parts(sent, shown.receipt, folded=last is not None),
    )


def _parts(sent: list[ShownMessage], receipt: Receipt | None, *, folded: bool) -> dict[str, Any]:
    """Return which of the newest messages go and which stay, and the numbers of all of them.

    `folded`: the first message of the view is a checkpoint.
    """
    if receipt is None:
        return {}
    gone: int = receipt.dropped.get("messages", 0)
    places = [number for number, message in enumerate(sent) if message.entry == receipt.first_kept]
    end = places[0] if places else 0 if receipt.first_kept or not gone else len(sent)
    going = [message for message in sent[:end] if who(message) != "system"]
    go = gone - sum(message.pinned for message in going)
    staying = [message for message in sent[:end] if who(message) == "system"] + sent[end:]
    total = receipt.messages_before - folded
    return {
        "going": _turns(going),
        "staying": _turns(staying),
        "go": go,
        "stay": total - go,
        "as_it_is": total - gone,
        "unlisted": max(0, gone - len(going)),
    }


def _turns(messages: Sequence[ShownMessage]) -> list[list[ShownMessage]]:
    """Group messages into turns, each of which starts with a user message."""
    turns: list[list[ShownMessage]] = []
    for message in messages:
        if who(message) == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


def _bars(shown: PreviewResult, usable: int) -> list[tuple[str, int, list[Segment]]]:
    """Return the bars of the view before and after: title, size, and segments by category."""
    if shown.receipt is None:
        return []
    receipt, kinds = shown.receipt, in_window_order(shown.receipt.by_category)
    whole = max(usable, receipt.tokens_before)
    sides = ("Now", receipt.tokens_before, 0), ("After", receipt.tokens_after, 1)
    return [
        (title, size, segmented({kind: receipt.by_category[kind][side] for kind in kinds}, whole))
        for title, size, side in sides
    ]


async def _make(request: PageRequest, instructions: str) -> PreviewResult:
    return await request.ask(compaction.preview_compaction, body=CompactionWish(instructions or None))


async def _remake(request: PageRequest, form: PreviewForm, stored: PreviewResult | None) -> PreviewStep:
    """Pin the messages to keep, and return a new preview.

    If nothing can be folded any more, unpin them and return the stored preview.
    """
    for entry in form.keep:
        await request.ask(messages.pin_entry, entry=entry)
    result = await _make(request, form.instructions)
    if result.nothing is None:
        await _drop(request)
        return PreviewStep(result, [*form.kept, *form.keep])
    await _unpin(request, form.keep)
    return PreviewStep(stored or result, form.kept, why(result.nothing))


async def _unpin(request: PageRequest, entries: Sequence[str]) -> None:
    for entry in entries:
        await request.ask(messages.unpin_entry, entry=entry)


async def _form(request: PageRequest) -> PreviewForm:
    request.check_length(request.serve.max_body, "a form")
    async with read_form(request.http, max_files=0, max_fields=FIELDS) as form:

        def listed(name: str) -> list[str]:
            return [value for value in form.getlist(name) if isinstance(value, str)]

        def text(name: str) -> str:
            return "".join(listed(name)[:1])

        summary = plain(text("summary"))
        return PreviewForm(text("instructions"), summary, listed("keep"), listed("kept"))


async def _find(request: PageRequest) -> PreviewResult | None:
    """Return the preview named in the path; None if it has expired or was dropped."""
    try:
        return await request.ask(compaction.show_preview, preview=request.path["preview"])
    except Refused:
        return None


def _edited(form: PreviewForm, stored: PreviewResult | None) -> str | None:
    """Return the summary of the form if it differs from the preview's."""
    if stored is None:
        return form.summary or None
    return form.summary if stored.summary is not None and form.summary != clean(stored.summary) else None


async def _drop(request: PageRequest) -> None:
    try:
        await request.ask(compaction.drop_preview, preview=request.path["preview"])
    except Refused:  # already gone
        return

"""A fold that is shown first: what goes, what stays, the summary to edit, messages to keep."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import RedirectResponse, Response

from foldline.core.compact.receipt import in_window_order
from foldline.service.api import boundaries, compaction, history, messages
from foldline.service.api.compaction import CompactionWish, EditedSummary, PreviewResult
from foldline.service.api.history import HistoryPage, ShownMessage
from foldline.service.bodies import read_form
from foldline.service.problems import Refused
from foldline.service.web.actions import folded, plain, why
from foldline.service.web.meter import Segment, segmented
from foldline.service.web.page_request import BASE, PageRequest, to_session
from foldline.service.web.prose import diff
from foldline.service.web.rendering import plural, segment
from foldline.service.web.shown import newest_fold
from foldline.session.recall import HIDDEN
from foldline.terminal import clean

SHOWN: Final = 1_000  # newest messages of which a preview shows what becomes
FIELDS: Final = 3_000  # of its form


class PreviewForm(msgspec.Struct, frozen=True):
    """What somebody chose: the focus, the summary as edited, messages to keep, those kept for it before."""

    instructions: str
    summary: str
    keep: list[str]
    kept: list[str]


async def preview(asked: PageRequest) -> Response:
    """Show what a fold would do."""
    instructions = (await asked.form()).get("instructions", "")
    made = await _made(asked, instructions)
    if made.id is None:
        return await _page(asked, made, instructions)
    place = f"{BASE}/s/{segment(asked.session)}/preview/{made.id}"
    return RedirectResponse(f"{place}?{urlencode({'instructions': instructions})}", 303)


async def show(asked: PageRequest) -> Response:
    """Show a preview that was made, as long as it is kept."""
    try:
        made = await asked.ask(compaction.show_preview, preview=asked.request.path_params["preview"])
    except Refused:
        return to_session(asked.session, notice="That preview is gone: make another one.")
    return await _page(asked, made, asked.request.query_params.get("instructions", "")[:2_000])


async def keep(asked: PageRequest) -> Response:
    """Pin messages that must stay, and show the fold again; a summary that was edited stays as it is."""
    form = await _form(asked)
    edited = await _edited(asked, form)
    made = await _made_again(asked, form)
    return await _page(asked, made, form.instructions, edited, [*form.kept, *form.keep])


async def commit(asked: PageRequest) -> Response:
    """Fold as it was shown, with the summary as edited and the messages that were ticked."""
    form = await _form(asked)
    edited = await _edited(asked, form)
    name = asked.request.path_params["preview"]
    if form.keep:  # they change the cut
        again = await _made_again(asked, form)
        if again.id is None:
            return await _page(asked, again, form.instructions, edited, [*form.kept, *form.keep])
        name = again.id
    found = await asked.ask(compaction.commit_preview, body=EditedSummary(edited), preview=name)
    kept = len(form.keep) + len(form.kept)
    how = "Folded, with what was ticked since kept" if form.keep else "Folded as it was shown"
    by_hand = [f"{plural(kept, 'message')} kept by hand, under Rules."] if kept else []
    notes = found.receipt.notes if found.receipt is not None and edited is not None else ()
    left_out = [f"{note[:1].upper()}{note[1:]}." for note in notes]  # by the summary as edited
    return await folded(asked, found, how, *by_hand, *left_out)


async def leave(asked: PageRequest) -> Response:
    """Drop a preview, and the pins that were made for it."""
    form = await _form(asked)
    await _drop(asked)
    for entry in form.kept:
        await asked.ask(messages.unpin_entry, entry=entry)
    return asked.back(notice="Nothing has changed.")


async def _page(
    asked: PageRequest,
    shown: PreviewResult,
    instructions: str,
    edited: str | None = None,
    kept: list[str] | None = None,
) -> Response:
    newest = await asked.ask(history.read_history, query=HistoryPage(SHOWN))
    sent = [one for one in newest.items if isinstance(one, ShownMessage) and one.how not in HIDDEN]
    first = shown.receipt.first_kept if shown.receipt is not None else None
    places = [number for number, one in enumerate(sent) if one.entry == first]
    end = places[0] if places else len(sent)
    usable = (await asked.ask(history.read_stats)).stats.usable
    last = newest_fold((await asked.ask(boundaries.list_boundaries)).boundaries)
    return asked.page(
        "preview.html",
        usable=usable,
        bars=_bars(shown, usable),
        rules=(await asked.ask(messages.list_constraints)).standing,
        changed=diff(last.summary, shown.summary) if last and last.summary and shown.summary else "",
        here="sessions",
        info=await asked.info(),
        shown=shown,
        summary=shown.summary if edited is None else edited,
        nothing="" if shown.nothing is None else why(shown.nothing),
        instructions=instructions,
        going=sent[:end],
        staying=sent[end:],
        kept=kept or [],
    )


def _bars(shown: PreviewResult, usable: int) -> list[tuple[str, int, list[Segment]]]:
    """Return the view as it is and as it would be: what it is called, its size, and that by kind."""
    if shown.receipt is None:
        return []
    told = shown.receipt
    whole = max(usable, told.tokens_before)
    sides = ("Now", told.tokens_before, 0), ("After", told.tokens_after, 1)
    return [
        (
            name,
            size,
            segmented(
                {kind: told.by_category[kind][side] for kind in in_window_order(told.by_category)}, whole
            ),
        )
        for name, size, side in sides
    ]


async def _made(asked: PageRequest, instructions: str) -> PreviewResult:
    return await asked.ask(compaction.preview_compaction, body=CompactionWish(instructions or None))


async def _made_again(asked: PageRequest, form: PreviewForm) -> PreviewResult:
    """Pin what must stay, and return the preview of the fold that this leads to."""
    await _drop(asked)
    for entry in form.keep:
        await asked.ask(messages.pin_entry, entry=entry)
    return await _made(asked, form.instructions)


async def _form(asked: PageRequest) -> PreviewForm:
    asked.check_length(asked.serve.max_body, "a form")
    async with read_form(asked.request, max_files=0, max_fields=FIELDS) as form:

        def listed(name: str) -> list[str]:
            return [one for one in form.getlist(name) if isinstance(one, str)]

        def text(name: str) -> str:
            return "".join(listed(name)[:1])

        summary = plain(text("summary"))
        return PreviewForm(text("instructions"), summary, listed("keep"), listed("kept"))


async def _edited(asked: PageRequest, form: PreviewForm) -> str | None:
    """Return the summary, if it is another one than the preview's."""
    shown = await asked.ask(compaction.show_preview, preview=asked.request.path_params["preview"])
    return form.summary if shown.summary is not None and form.summary != clean(shown.summary) else None


async def _drop(asked: PageRequest) -> None:
    try:
        await asked.ask(compaction.drop_preview, preview=asked.request.path_params["preview"])
    except Refused:  # it is gone already
        return

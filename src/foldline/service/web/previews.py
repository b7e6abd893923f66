"""A fold that is shown first: what goes, what stays, the summary to edit, messages to keep."""

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
from foldline.service.web.actions import folded, plain, why
from foldline.service.web.meter import Segment, segmented
from foldline.service.web.page_request import BASE, PageRequest, to_session
from foldline.service.web.prose import diff
from foldline.service.web.rendering import plural, segment
from foldline.service.web.shown import newest_fold, who
from foldline.session.recall import HIDDEN
from foldline.terminal import clean

SHOWN: Final = 1_000  # newest messages of which a preview shows what becomes
FIELDS: Final = 3_000  # of its form
GONE: Final = "That preview is gone. This one is new: look at it, and fold."


class PreviewForm(msgspec.Struct, frozen=True):
    """What somebody chose: the focus, the summary as edited, messages to keep, those kept for it before."""

    instructions: str
    summary: str
    keep: list[str]
    kept: list[str]


class PreviewStep(msgspec.Struct, frozen=True):
    """The preview that is shown next: what is pinned for it, and what did not go as it was asked."""

    shown: PreviewResult
    kept: list[str] = []
    problem: str = ""


async def preview(asked: PageRequest) -> Response:
    """Show what a fold would do."""
    instructions = (await asked.form()).get("instructions", "")
    made = await _made(asked, instructions)
    if made.id is None:
        return await _page(asked, PreviewStep(made), instructions)
    place = f"{BASE}/s/{segment(asked.session)}/preview/{made.id}"
    return RedirectResponse(f"{place}?{urlencode({'instructions': instructions})}", 303)


async def show(asked: PageRequest) -> Response:
    """Show a preview that was made, as long as it is kept."""
    made = await _known(asked)
    if made is None:
        return to_session(asked.session, notice="That preview is gone: make another one.")
    return await _page(asked, PreviewStep(made), asked.request.query_params.get("instructions", "")[:2_000])


async def keep(asked: PageRequest) -> Response:
    """Pin messages that must stay, and show the fold again; a summary that was edited stays as it is."""
    form, known = await _form(asked), await _known(asked)
    step = await _made_again(asked, form, known)
    return await _page(asked, step, form.instructions, _edited(form, known))


async def commit(asked: PageRequest) -> Response:
    """Fold as it was shown, with the summary as edited and the messages that were ticked.

    Where that cannot be, it is shown again, and why.
    """
    form, known = await _form(asked), await _known(asked)
    edited = _edited(form, known)
    if known is None:
        step = msgspec.structs.replace(await _made_again(asked, form, known), problem=GONE)
    elif form.keep:  # they change the cut
        step = await _made_again(asked, form, known)
    else:
        step = PreviewStep(known, form.kept)
    if step.problem or step.shown.id is None:
        return await _page(asked, step, form.instructions, edited)
    found = await asked.ask(compaction.commit_preview, body=EditedSummary(edited), preview=step.shown.id)
    if found.nothing is not None:
        step = msgspec.structs.replace(step, problem=why(found.nothing))
        return await _page(asked, step, form.instructions, edited)
    how = "Folded, with what was ticked since kept" if form.keep else "Folded as it was shown"
    by_hand = [f"{plural(len(step.kept), 'message')} kept by hand, under Rules."] if step.kept else []
    notes = found.receipt.notes if found.receipt is not None and edited is not None else ()
    left_out = [f"{note[:1].upper()}{note[1:]}." for note in notes]  # by the summary as edited
    return await folded(asked, found, how, *by_hand, *left_out)


async def leave(asked: PageRequest) -> Response:
    """Drop a preview, and the pins that were made for it."""
    form = await _form(asked)
    await _drop(asked)
    await _unpin(asked, form.kept)
    return asked.back(notice="Nothing has changed.")


async def _page(
    asked: PageRequest, step: PreviewStep, instructions: str, edited: str | None = None
) -> Response:
    shown = step.shown
    newest = await asked.history(SHOWN)
    sent = [one for one in newest.items if isinstance(one, ShownMessage) and one.how not in HIDDEN]
    last = newest_fold((await asked.ask(boundaries.list_boundaries)).boundaries)
    usable = (await asked.ask(history.read_stats)).stats.usable
    return asked.page(
        "preview.html",
        usable=usable,
        bars=_bars(shown, usable),
        rules=(await asked.ask(messages.list_constraints)).standing,
        changed=diff(last.summary, shown.summary) if last and last.summary and shown.summary else "",
        here="sessions",
        info=await asked.info(),
        shown=shown,
        preview=shown.id or asked.request.path_params.get("preview", ""),
        problem=step.problem or ("" if shown.nothing is None else why(shown.nothing)),
        summary=shown.summary if edited is None else edited,
        instructions=instructions,
        kept=step.kept,
        **_parted(sent, shown.receipt, folded=last is not None),
    )


def _parted(sent: list[ShownMessage], receipt: Receipt | None, *, folded: bool) -> dict[str, Any]:
    """Return which of the newest messages go and which stay, and how many do of all that are sent.

    `folded`: the first of these is a checkpoint.
    """
    if receipt is None:
        return {}
    gone: int = receipt.dropped.get("messages", 0)
    places = [number for number, one in enumerate(sent) if one.entry == receipt.first_kept]
    end = places[0] if places else 0 if receipt.first_kept or not gone else len(sent)
    going = [one for one in sent[:end] if who(one) != "system"]
    go = gone - sum(one.pinned for one in going)
    staying = [one for one in sent[:end] if who(one) == "system"] + sent[end:]
    every = receipt.messages_before - folded
    return {
        "going": _turns(going),
        "staying": _turns(staying),
        "go": go,
        "stay": every - go,
        "as_it_is": every - gone,
        "unlisted": max(0, gone - len(going)),
    }


def _turns(messages: Sequence[ShownMessage]) -> list[list[ShownMessage]]:
    """Return messages by turns, each of which begins with what the user says."""
    found: list[list[ShownMessage]] = []
    for one in messages:
        if who(one) == "user" or not found:
            found.append([])
        found[-1].append(one)
    return found


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


async def _made_again(asked: PageRequest, form: PreviewForm, known: PreviewResult | None) -> PreviewStep:
    """Pin what must stay, and return the preview of the fold that this leads to.

    Where there is none, the pins are taken back, and the preview that was known still stands.
    """
    for entry in form.keep:
        await asked.ask(messages.pin_entry, entry=entry)
    made = await _made(asked, form.instructions)
    if made.nothing is None:
        await _drop(asked)
        return PreviewStep(made, [*form.kept, *form.keep])
    await _unpin(asked, form.keep)
    return PreviewStep(known or made, form.kept, why(made.nothing))


async def _unpin(asked: PageRequest, entries: Sequence[str]) -> None:
    for entry in entries:
        await asked.ask(messages.unpin_entry, entry=entry)


async def _form(asked: PageRequest) -> PreviewForm:
    asked.check_length(asked.serve.max_body, "a form")
    async with read_form(asked.request, max_files=0, max_fields=FIELDS) as form:

        def listed(name: str) -> list[str]:
            return [one for one in form.getlist(name) if isinstance(one, str)]

        def text(name: str) -> str:
            return "".join(listed(name)[:1])

        summary = plain(text("summary"))
        return PreviewForm(text("instructions"), summary, listed("keep"), listed("kept"))


async def _known(asked: PageRequest) -> PreviewResult | None:
    """Return the preview that the path names; None where it is gone."""
    try:
        return await asked.ask(compaction.show_preview, preview=asked.request.path_params["preview"])
    except Refused:
        return None


def _edited(form: PreviewForm, known: PreviewResult | None) -> str | None:
    """Return the summary, if it is another one than the preview's."""
    if known is None:
        return form.summary or None
    return form.summary if known.summary is not None and form.summary != clean(known.summary) else None


async def _drop(asked: PageRequest) -> None:
    try:
        await asked.ask(compaction.drop_preview, preview=asked.request.path_params["preview"])
    except Refused:  # it is gone already
        return

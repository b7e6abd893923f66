"""Compactions by hand: at once, or shown first and then committed; undone and redone."""

from __future__ import annotations

from typing import Final

import msgspec

from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Receipt
from foldline.service.api.history import EntryId
from foldline.service.api.operation import ApiCall, Target, Words, operation
from foldline.service.api.sessions import AT
from foldline.service.api.state import KeptPreview
from foldline.service.problems import Refused


class CompactionWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a compaction is to look at, and the budget of the view in tokens (null: the policy's).

    Or the range to fold: all up to an entry and its exchange, or since an entry; the rest is kept as it is.
    """

    instructions: Words | None = None
    target: Target | None = None
    up_to: EntryId | None = None
    since: EntryId | None = None


class CompactionResult(msgspec.Struct, frozen=True):
    """The receipt of a boundary that was made; or `nothing` says why none was."""

    receipt: Receipt | None
    nothing: Nothing | None
    leaf: str | None


class PreviewResult(msgspec.Struct, frozen=True):
    """A boundary that is not appended: `id` commits or drops it, `until` Unix time. Or why there is none."""

    id: str | None
    receipt: Receipt | None
    summary: str | None
    until: float | None
    nothing: Nothing | None


class EditedSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The summary as the user edited it; null: as it was shown."""

    summary: Words | None = None


EDITED: Final = {"summary": "The parser reads all but nested lists."}


class LiftResult(msgspec.Struct, frozen=True):
    """The boundary that was undone or redone; null where there was none."""

    entry: str | None
    leaf: str | None


@operation(
    "POST",
    f"{AT}/compact",
    changes=True,
    held=False,
    keyed=True,
    example={"instructions": "Keep what concerns the parser."},
)
async def compact(call: ApiCall, body: CompactionWish) -> CompactionResult:
    """Compact now; what is said meanwhile stays in order."""
    return _told(call, await call.session.compact(**msgspec.structs.asdict(body)))


def _told(call: ApiCall, outcome: Receipt | Nothing) -> CompactionResult:
    if isinstance(outcome, Nothing):
        return CompactionResult(None, outcome, call.session.leaf)
    return CompactionResult(outcome, None, call.session.leaf)


@operation("POST", f"{AT}/previews", changes=True, held=False, keyed=True, example={"target": 20_000})
async def preview_compaction(call: ApiCall, body: CompactionWish) -> PreviewResult:
    """Show what a compaction would do, and keep it to be committed."""
    made = await call.session.preview(**msgspec.structs.asdict(body))
    if isinstance(made, Nothing):
        return PreviewResult(None, None, None, None, made)
    return _shown(await call.state.of(call.tenant).previews.keep(call.session.id, made))


def _shown(kept: KeptPreview) -> PreviewResult:
    return PreviewResult(kept.id, kept.preview.receipt, kept.preview.summary, kept.until, None)


@operation("GET", f"{AT}/previews/{{preview}}")
async def show_preview(call: ApiCall) -> PreviewResult:
    """Show a preview that is kept."""
    return _shown(await _kept(call))


@operation("POST", f"{AT}/previews/{{preview}}/commit", changes=True, keyed=True, example=EDITED)
async def commit_preview(call: ApiCall, body: EditedSummary) -> CompactionResult:
    """Append the boundary that a preview showed, with its summary as edited; it is kept if none is."""
    kept = await _kept(call)
    outcome = await call.session.commit(kept.preview, summary=body.summary)
    if isinstance(outcome, Receipt):
        await call.state.of(call.tenant).previews.drop(kept.id)
    return _told(call, outcome)


@operation("DELETE", f"{AT}/previews/{{preview}}", status=204)
async def drop_preview(call: ApiCall) -> None:
    """Drop a preview."""
    kept = await _kept(call)
    await call.state.of(call.tenant).previews.drop(kept.id)


async def _kept(call: ApiCall) -> KeptPreview:
    kept = await call.state.of(call.tenant).previews.find(call.session.id, call.names["preview"])
    if kept is None:
        raise Refused(404, "no such preview", "it was committed, dropped, or is too old: make another one")
    return kept


@operation("POST", f"{AT}/undo", changes=True, keyed=True)
async def undo(call: ApiCall) -> LiftResult:
    """Undo the newest compaction, prune or exclusion; what was said since stays."""
    return LiftResult(await call.session.undo(), call.session.leaf)


@operation("POST", f"{AT}/redo", changes=True, keyed=True)
async def redo(call: ApiCall) -> LiftResult:
    """Take back the newest undo."""
    return LiftResult(await call.session.redo(), call.session.leaf)

"""Compactions by hand: at once, or shown first and then committed; undone and redone."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.responses import Response

from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Receipt
from foldline.service.api.operation import ApiCall, ApiResult, Operation, Target, Words
from foldline.service.api.previews import KeptPreview
from foldline.service.api.sessions import AT
from foldline.service.problems import problem


class CompactionWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a compaction is to look at, and the budget of the view in tokens (null: the policy's)."""

    instructions: Words | None = None
    target: Target | None = None


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


class LiftResult(msgspec.Struct, frozen=True):
    """The boundary that was undone or redone; null where there was none."""

    entry: str | None
    leaf: str | None


async def compact(call: ApiCall) -> ApiResult:
    """Compact now."""
    wish: CompactionWish = call.body
    return _told(call, await call.session.compact(wish.instructions, target=wish.target))


def _told(call: ApiCall, outcome: Receipt | Nothing) -> ApiResult:
    if isinstance(outcome, Nothing):
        return ApiResult(CompactionResult(None, outcome, call.session.leaf))
    call.state.metrics.folded(outcome)
    return ApiResult(CompactionResult(outcome, None, call.session.leaf))


async def preview(call: ApiCall) -> ApiResult:
    """Show what a compaction would do, and keep it."""
    wish: CompactionWish = call.body
    made = await call.session.preview(wish.instructions, target=wish.target)
    if isinstance(made, Nothing):
        return ApiResult(PreviewResult(None, None, None, None, made))
    kept = await call.state.of(call.tenant).previews.keep(call.session.id, made)
    return ApiResult(_shown(kept))


def _shown(kept: KeptPreview) -> PreviewResult:
    return PreviewResult(kept.id, kept.preview.receipt, kept.preview.summary, kept.until, None)


async def show(call: ApiCall) -> ApiResult | Response:
    """Show a preview again."""
    kept = await _kept(call)
    return _gone() if kept is None else ApiResult(_shown(kept))


async def commit(call: ApiCall) -> ApiResult | Response:
    """Append the boundary that a preview showed."""
    kept = await _kept(call)
    if kept is None:
        return _gone()
    edited: EditedSummary = call.body
    outcome = await call.session.commit(kept.preview, summary=edited.summary)
    await call.state.of(call.tenant).previews.drop(kept.id)
    return _told(call, outcome)


async def drop(call: ApiCall) -> ApiResult | Response:
    """Drop a preview."""
    kept = await _kept(call)
    if kept is None:
        return _gone()
    await call.state.of(call.tenant).previews.drop(kept.id)
    return ApiResult()


async def _kept(call: ApiCall) -> KeptPreview | None:
    return await call.state.of(call.tenant).previews.find(call.session.id, call.names["preview"])


def _gone() -> Response:
    return problem(404, "no such preview", "it was committed, dropped, or is too old: make another one")


async def undo(call: ApiCall) -> ApiResult:
    """Undo the newest boundary."""
    entry = await call.session.undo()
    return ApiResult(LiftResult(entry, call.session.leaf))


async def redo(call: ApiCall) -> ApiResult:
    """Take back the newest undo."""
    entry = await call.session.redo()
    return ApiResult(LiftResult(entry, call.session.leaf))


OPERATIONS: Final = (
    Operation(
        name="compact",
        method="POST",
        path=f"{AT}/compact",
        about="Compact now; what is said meanwhile stays in order",
        run=compact,
        body=CompactionWish,
        result=CompactionResult,
        changes=True,
        held=False,
        keyed=True,
    ),
    Operation(
        name="previewCompaction",
        method="POST",
        path=f"{AT}/previews",
        about="Show what a compaction would do, and keep it to be committed",
        run=preview,
        body=CompactionWish,
        result=PreviewResult,
        changes=True,
        held=False,
        keyed=True,
    ),
    Operation(
        name="showPreview",
        method="GET",
        path=f"{AT}/previews/{{preview}}",
        about="Show a preview that is kept",
        run=show,
        result=PreviewResult,
    ),
    Operation(
        name="commitPreview",
        method="POST",
        path=f"{AT}/previews/{{preview}}/commit",
        about="Append the boundary that a preview showed, with its summary as edited",
        run=commit,
        body=EditedSummary,
        result=CompactionResult,
        changes=True,
        keyed=True,
    ),
    Operation(
        name="dropPreview",
        method="DELETE",
        path=f"{AT}/previews/{{preview}}",
        about="Drop a preview",
        run=drop,
        status=204,
    ),
    Operation(
        name="undo",
        method="POST",
        path=f"{AT}/undo",
        about="Undo the newest compaction or prune; what was said since stays",
        run=undo,
        result=LiftResult,
        changes=True,
        keyed=True,
    ),
    Operation(
        name="redo",
        method="POST",
        path=f"{AT}/redo",
        about="Take back the newest undo",
        run=redo,
        result=LiftResult,
        changes=True,
        keyed=True,
    ),
)

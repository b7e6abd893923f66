"""Compactions by hand: at once, or previewed and then committed; undo and redo.

Previews are kept in the tenant's store until they are committed or dropped, limited in number and age.
"""

from __future__ import annotations

import secrets
import time
from typing import Final

import msgspec

from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Receipt
from foldline.service.api.history import EntryId
from foldline.service.api.operation import ApiCall, Target, Words, operation
from foldline.service.api.sessions import AT
from foldline.service.problems import Refused
from foldline.session.preview import Preview
from foldline.stores.key_values import pack, unpack

SPACE: Final = "preview"
MOST: Final = 64  # previews of a tenant; the oldest is dropped
SECONDS: Final = 3_600.0  # that a preview is kept


class CompactionWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the summary should focus on, and the budget of the view in tokens (null: the policy's).

    Or the range to fold: everything up to an entry and its exchange, or from an entry on; the rest stays.
    """

    instructions: Words | None = None
    target: Target | None = None
    up_to: EntryId | None = None
    since: EntryId | None = None


class CompactionResult(msgspec.Struct, frozen=True):
    """The receipt of the new boundary, or `nothing`: why none was made."""

    receipt: Receipt | None
    nothing: Nothing | None
    leaf: str | None


class PreviewResult(msgspec.Struct, frozen=True):
    """A boundary that is not appended yet, to commit by `id` before `until` (Unix time); or why none is."""

    id: str | None
    receipt: Receipt | None
    summary: str | None
    until: float | None
    nothing: Nothing | None


class KeptPreview(msgspec.Struct, frozen=True):
    """A preview of a session, kept until a Unix time."""

    id: str
    session: str
    preview: Preview
    until: float

    def result(self) -> PreviewResult:
        """Return it as it is shown."""
        return PreviewResult(self.id, self.preview.receipt, self.preview.summary, self.until, None)


class EditedSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The summary as the user edited it; null: as the preview showed it."""

    summary: Words | None = None


EDITED: Final = {"summary": "The parser reads all but nested lists."}


class LiftResult(msgspec.Struct, frozen=True):
    """The boundary that was undone or redone, if any."""

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
    """Compact now; messages appended meanwhile keep their order."""
    return _result(call, await call.session.compact(**msgspec.structs.asdict(body)))


def _result(call: ApiCall, outcome: Receipt | Nothing) -> CompactionResult:
    if isinstance(outcome, Nothing):
        return CompactionResult(None, outcome, call.session.leaf)
    return CompactionResult(outcome, None, call.session.leaf)


@operation("POST", f"{AT}/previews", changes=True, held=False, keyed=True, example={"target": 20_000})
async def preview_compaction(call: ApiCall, body: CompactionWish) -> PreviewResult:
    """Show what a compaction would do, and keep it for a commit."""
    preview = await call.session.preview(**msgspec.structs.asdict(body))
    if isinstance(preview, Nothing):
        return PreviewResult(None, None, None, None, preview)
    kept = KeptPreview(secrets.token_hex(12), call.session.id, preview, time.time() + SECONDS)
    values = call.tenant.values
    await values.add(SPACE, kept.id, pack(kept), seconds=SECONDS, session=kept.session)
    await values.trim(SPACE, MOST)
    return kept.result()


@operation("GET", f"{AT}/previews/{{preview}}")
async def show_preview(call: ApiCall) -> PreviewResult:
    """Show a preview again."""
    return (await _find(call)).result()


@operation("POST", f"{AT}/previews/{{preview}}/commit", changes=True, keyed=True, example=EDITED)
async def commit_preview(call: ApiCall, body: EditedSummary) -> CompactionResult:
    """Append the boundary of a preview, with its summary as edited."""
    kept = await _find(call)
    outcome = await call.session.commit(kept.preview, summary=body.summary)
    if isinstance(outcome, Receipt):
        await call.tenant.values.delete(SPACE, kept.id)
    return _result(call, outcome)


@operation("DELETE", f"{AT}/previews/{{preview}}", status=204)
async def drop_preview(call: ApiCall) -> None:
    """Drop a preview."""
    kept = await _find(call)
    await call.tenant.values.delete(SPACE, kept.id)


async def _find(call: ApiCall) -> KeptPreview:
    raw = await call.tenant.values.get(SPACE, call.names["preview"])
    kept = None if raw is None else unpack(raw, KeptPreview)
    if kept is None or kept.session != call.session.id:
        raise Refused(404, "no such preview", "it was committed or dropped, or has expired: make a new one")
    return kept


@operation("POST", f"{AT}/undo", changes=True, keyed=True)
async def undo(call: ApiCall) -> LiftResult:
    """Undo the newest compaction, prune or exclusion; later messages stay."""
    return LiftResult(await call.session.undo(), call.session.leaf)


@operation("POST", f"{AT}/redo", changes=True, keyed=True)
async def redo(call: ApiCall) -> LiftResult:
    """Revert the newest undo."""
    return LiftResult(await call.session.redo(), call.session.leaf)

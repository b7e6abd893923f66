"""Messages: appended, pinned and excluded; and the user's standing rules."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from foldline.core.log.entries import Pin, Receipt
from foldline.service.api.operation import ApiCall, operation
from foldline.service.api.sessions import AT, LeafResult
from foldline.service.idempotency import stored_before
from foldline.session.rules import Rules


class NewMessages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages to append in one commit: of any dialect, or replies as a provider sent them."""

    messages: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]


class PinList(msgspec.Struct, frozen=True):
    """The entries of the pinned messages, with the text that every view contains."""

    pins: list[Pin]


class ExclusionWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to exclude: the whole message, or one part of it, by number from 0."""

    part: Annotated[int, msgspec.Meta(ge=0)] | None = None


class ExclusionResult(msgspec.Struct, frozen=True):
    """The receipt of the exclusion, and the leaf."""

    receipt: Receipt
    leaf: str | None


class AppendResult(msgspec.Struct, frozen=True):
    """The entry ids of the messages that were appended, and the leaf."""

    entries: list[str]
    leaf: str | None


EXAMPLE: Final = {"messages": [{"role": "user", "content": "Never push to main."}]}


@operation("POST", f"{AT}/messages", status=201, changes=True, keyed=True, resumes=True, example=EXAMPLE)
async def append_messages(call: ApiCall, body: NewMessages) -> AppendResult:
    """Append messages in one commit; they are durable when the response arrives."""
    entries = None
    if call.key_entry is not None and call.is_retry:
        entries = await stored_before(call.session, call.key_entry.record.leaf, body.messages)
    if entries is None:
        entries = await call.session.append(*body.messages)
    return AppendResult(entries, call.session.leaf)


@operation("GET", f"{AT}/pins")
async def list_pins(call: ApiCall) -> PinList:
    """List the pinned messages."""
    return PinList(list(call.session.pins))


@operation("PUT", f"{AT}/pins/{{entry}}", changes=True)
async def pin_entry(call: ApiCall) -> LeafResult:
    """Pin a message: every later view contains its text word for word."""
    await call.session.pin(call.names["entry"])
    return LeafResult(call.session.leaf)


@operation("DELETE", f"{AT}/pins/{{entry}}", changes=True)
async def unpin_entry(call: ApiCall) -> LeafResult:
    """Unpin a message."""
    await call.session.unpin(call.names["entry"])
    return LeafResult(call.session.leaf)


@operation("POST", f"{AT}/entries/{{entry}}/exclude", changes=True, keyed=True, example={"part": 0})
async def exclude_entry(call: ApiCall, body: ExclusionWish) -> ExclusionResult:
    """Exclude a message, or a part of it, from the context and from all later folds; undo brings it back."""
    receipt = await call.session.exclude(call.names["entry"], body.part)
    return ExclusionResult(receipt, call.session.leaf)


@operation("GET", f"{AT}/constraints")
async def list_constraints(call: ApiCall) -> Rules:
    """List the user's standing rules, and the ended ones with what ended them."""
    return await call.session.constraints()

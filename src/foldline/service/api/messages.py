"""What is said to a session, what is pinned in it, and which rules stand."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from foldline.core.log.entries import Pin
from foldline.service.api.operation import ApiCall, ApiResult, Operation
from foldline.service.api.retry import stored_before
from foldline.service.api.sessions import AT, LeafResult
from foldline.session.rules import Rules


class NewMessages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages to append in one commit: of any dialect, or replies as a provider gave them."""

    messages: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=10_000)]


class PinList(msgspec.Struct, frozen=True):
    """The pinned messages, by their entries, with the text that every view holds."""

    pins: list[Pin]


class AppendResult(msgspec.Struct, frozen=True):
    """The entry ids of the messages that were appended, and the leaf."""

    entries: list[str]
    leaf: str | None


async def append(call: ApiCall) -> ApiResult:
    """Append messages."""
    given: NewMessages = call.body
    entries = None
    if call.remembered is not None and call.again:
        entries = await stored_before(call.session, call.remembered.record.leaf, given.messages)
    if entries is None:
        entries = await call.session.append(*given.messages)
    return ApiResult(AppendResult(entries, call.session.leaf))


async def pin(call: ApiCall) -> ApiResult:
    """Pin a message."""
    await call.session.pin(call.names["entry"])
    return ApiResult(LeafResult(call.session.leaf))


async def unpin(call: ApiCall) -> ApiResult:
    """Take a pin away."""
    await call.session.unpin(call.names["entry"])
    return ApiResult(LeafResult(call.session.leaf))


async def pins(call: ApiCall) -> ApiResult:
    """List what is pinned."""
    return ApiResult(PinList(list(call.session.pins)))


async def constraints(call: ApiCall) -> ApiResult:
    """Show the user's rules."""
    return ApiResult(await call.session.constraints())


OPERATIONS: Final = (
    Operation(
        name="appendMessages",
        method="POST",
        path=f"{AT}/messages",
        about="Append messages in one commit, durable when it is answered",
        run=append,
        body=NewMessages,
        result=AppendResult,
        status=201,
        changes=True,
        keyed=True,
        resumes=True,
    ),
    Operation(
        name="listPins",
        method="GET",
        path=f"{AT}/pins",
        about="List the pinned messages",
        run=pins,
        result=PinList,
    ),
    Operation(
        name="pinEntry",
        method="PUT",
        path=f"{AT}/pins/{{entry}}",
        about="Pin a message: every later view holds its text word for word",
        run=pin,
        result=LeafResult,
        changes=True,
    ),
    Operation(
        name="unpinEntry",
        method="DELETE",
        path=f"{AT}/pins/{{entry}}",
        about="Take a pin away",
        run=unpin,
        result=LeafResult,
        changes=True,
    ),
    Operation(
        name="listConstraints",
        method="GET",
        path=f"{AT}/constraints",
        about="List the user's standing rules, and what ended the others",
        run=constraints,
        result=Rules,
    ),
)

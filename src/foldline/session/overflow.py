"""Handle a request that did not fit the window.

First learn the window, then try a shorter reply, then compact once for a user message.
"""

from __future__ import annotations

from typing import Any, cast

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.room import floor_of
from foldline.core.decide.ask import Nothing
from foldline.core.decide.overflow import Shorter, share_left
from foldline.core.decide.triggers import Refuse, Stay
from foldline.core.log.messages import Message
from foldline.core.measure.overflow import (
    STARVED_SHARE,
    Overflow,
    cut_call,
    cut_short,
    fits_with,
    fitting_output,
    overflow,
    refuses_roles,
    silent,
)
from foldline.core.secrets.redact import redact
from foldline.dialects import get
from foldline.dialects.base import reply_dialect
from foldline.errors import FloorExceeded, InputError, OverflowRemains, ProviderError
from foldline.providers.base import Reply
from foldline.providers.failures import from_sdk
from foldline.session.compactor import Compactor
from foldline.session.events import OverflowSeen, Remedy
from foldline.session.setup import Setup
from foldline.session.shared import Shared
from foldline.session.view import ContextMessages, ViewToken, check_answered

FULL = "model_context_window_exceeded"  # Anthropic's stop reason for a reply that filled the window


class OverflowMender:
    """Makes the next request fit after one that did not."""

    def __init__(self, shared: Shared, compactor: Compactor) -> None:
        self._shared = shared
        self._compactor = compactor

    async def overflowed(
        self, seen: Any, *, view: list[Any] | None = None, max_tokens: int | None = None
    ) -> ContextMessages:
        """Return the messages to send after a request that did not fit, compacted if that helps.

        `seen` is what the provider raised (an SDK's exception or a ProviderError), or a reply that shows an
        overflow, such as one cut short by the window; any other error is raised again, and any other reply
        raises InputError. `view` is the list that was sent, as returned by `context` or this method (default:
        the newest); if it has been folded since, the newer one is returned unchanged. `max_tokens` is what
        the request asked for: if a smaller value makes it fit, the messages stay the same and
        `session.max_tokens` is the value to send. Compacts once for a user message, and again only after a
        reply. Raises OverflowRemains with what cannot be removed if nothing helps, and the original error if
        the policy forbids compaction. If a chat template rejects consecutive messages of one role, they are
        joined from then on.
        """
        self._shared.check_free()
        if isinstance(seen, BaseException) and refuses_roles(str(seen)):
            await self._merge_roles(seen)
        else:
            await self._mend(seen, max_tokens, self._shared.view.asked_with(view))
        async with self._shared.locked() as cursor:
            check_answered(cursor.state)
            return self._shared.view.hand_out()

    async def _mend(self, seen: Any, max_tokens: int | None, shown: ViewToken | None) -> None:
        """Make the next request fit: by a compaction, or by a shorter reply, stored in `Shared.reply`.

        `shown` is the token of the view that was sent (None: unknown). Does nothing if the view has changed
        since, as the new one was not tried yet.
        """
        found, path, remedy = await self._choose_remedy(seen, max_tokens, shown)
        if remedy is None:
            self._emit(found, "newer_view")
        elif isinstance(remedy, Shorter):
            self._emit(found, "max_tokens", remedy.max_tokens)
        else:
            self._emit(found, "compaction")
            result = await self._compactor.overflow(remedy, path)
            if isinstance(result, Nothing):
                async with self._shared.locked() as cursor:
                    if cursor.state.boundaries == path:
                        why = f"nothing could be folded ({result.why})"
                        raise self._overflow_remains(found, why) from _cause(seen)
        self._shared.reply.mended(remedy if isinstance(remedy, Shorter) else None)

    async def _merge_roles(self, seen: BaseException) -> None:
        """Join neighbouring messages of one role; raises the error again if they are joined already."""
        async with self._shared.locked():
            if self._shared.model.in_turn:
                raise seen
            await self._shared.model.learn_turns()

    async def _choose_remedy(
        self, seen: Any, max_tokens: int | None, shown: ViewToken | None
    ) -> tuple[Overflow, ViewToken, Shorter | float | None]:
        """Return the overflow, the path's boundaries, and the remedy.

        That is a shorter reply, a share of the window to compact to, or None if there is a newer view.
        """
        model, hint = self._shared.model, self._shared.reply.max_tokens
        async with self._shared.locked() as cursor:
            state = cursor.state
            check_answered(state)
            size, path = model.view_tokens, state.boundaries
            found, cut = overflow_in(seen, model.setup), False
            if found is None:
                found, cut = _cut_off_or_raise(seen, model.setup, max_tokens), True
            if shown is not None and shown != path:
                return found, path, None
            if not cut:  # the size of a truncated reply is unknown, and a shorter one does not help
                await model.learn_window(found, size)
                reply = shorter(found, model.setup, model.trigger_size(cursor.state), max_tokens)
                if reply and (hint is None or reply.max_tokens < hint):
                    return found, path, reply
            share = share_left(found, size, model.ask("overflow").usable, max_tokens)
            self._check_permitted(found, seen)
            return found, path, share

    def _check_permitted(self, found: Overflow, seen: Any) -> None:
        """Raise if the policy forbids to fold after an overflow, or folding did not help."""
        decision = self._shared.watch.on_overflow(self._shared.model.trigger_facts())
        if isinstance(decision, Refuse):
            raise FloorExceeded(decision.floor, decision.usable, decision.breakdown) from _cause(seen)
        if isinstance(decision, Stay) and decision.why == "mended":
            raise self._overflow_remains(
                found, "the session was already compacted for this message"
            ) from _cause(seen)
        if isinstance(decision, Stay):
            self._emit(found, "none")
            if decision.why == "disabled" and isinstance(seen, BaseException):
                raise seen
            why = "the policy forbids compaction" if decision.why == "disabled" else "three attempts failed"
            raise self._overflow_remains(found, why) from _cause(seen)

    def _emit(self, found: Overflow, remedy: Remedy, max_tokens: int | None = None) -> None:
        event = OverflowSeen(limit=found.limit, asked=found.asked, remedy=remedy, max_tokens=max_tokens)
        self._shared.events.emit(event)

    def _overflow_remains(self, found: Overflow, why: str) -> OverflowRemains:
        model = self._shared.model
        floor = floor_of(
            CompactionInput(self._shared.cursor.state, model.ask("overflow"), model.setup.counter)
        )
        return OverflowRemains(
            why,
            view_tokens=model.view_tokens,
            floor=floor.total,
            breakdown=floor.breakdown,
            limit=found.limit,
            asked=found.asked,
        )


def _cause(seen: Any) -> BaseException | None:
    return seen if isinstance(seen, BaseException) else None


# ---- detecting an overflow


def overflow_in(seen: Any, setup: Setup) -> Overflow | None:
    """Return the overflow that an error or a reply shows; None for anything else.

    `seen` is a ProviderError, an SDK's exception, any other exception with the provider's text, a `Reply`, or
    an SDK reply: some providers report an overflow in an ordinary reply.
    """
    if isinstance(seen, ProviderError):
        return (seen.overflow or Overflow()) if seen.kind == "overflow" else None
    if isinstance(seen, Exception):
        failure = from_sdk(seen, setup.model or "", redact)
        if failure is not None:
            return (failure.overflow or Overflow()) if failure.kind == "overflow" else None
        return overflow(str(seen), getattr(seen, "status_code", None))
    if isinstance(seen, Reply):
        return seen.overflow or silent(seen.usage, seen.stop, setup.window)
    message = _message(seen)
    return silent(message.usage, message.stop, setup.window)


def cut_off(seen: Any, setup: Setup, max_tokens: int | None) -> Overflow | None:
    """Return the overflow of a reply that the window cut short; None for any other reply.

    The reply ended before the requested `max_tokens`, or its provider reports a full window. If `max_tokens`
    is unknown: it filled the window, or has no usage and an incomplete call. `limit` is the size reached. A
    reply that used all of its `max_tokens` is not an overflow.
    """
    if isinstance(seen, BaseException):
        return None
    reply = seen if isinstance(seen, Reply) else None
    message = _message(reply.native if reply is not None else seen)
    usage, requested = message.usage, max_tokens or (reply.tokens_asked if reply is not None else None)
    if usage is None:
        return Overflow() if cut_call(message) else None
    asked = usage.input + usage.cache_read + usage.cache_write
    full = _stop_reason(reply.native if reply is not None else seen) == FULL
    if requested is not None:
        full = full or cut_short(usage, message.stop, requested)
    elif message.stop == "length":
        full = full or asked + usage.output >= STARVED_SHARE * setup.window.context
    return Overflow(limit=asked + usage.output, asked=asked) if full and asked else None


def _cut_off_or_raise(seen: Any, setup: Setup, max_tokens: int | None) -> Overflow:
    if isinstance(seen, BaseException):
        raise seen
    found = cut_off(seen, setup, max_tokens)
    if found is None:
        raise InputError(
            "this reply is not an overflow: append it and call `context`. If it stopped at its own "
            "max_tokens, the window was not full: retry with a larger max_tokens, or pass yours here"
        )
    return found


def _stop_reason(reply: object) -> object:
    if isinstance(reply, dict):
        return cast("dict[str, Any]", reply).get("stop_reason")
    return getattr(reply, "stop_reason", None)


def _message(reply: Any) -> Message:
    if isinstance(reply, Message):
        return reply
    name = reply_dialect(reply)
    if name is None:
        raise InputError("pass the error that the provider raised, or its reply")
    return get(name).decode_reply(reply)


# ---- remedies


def shorter(found: Overflow, setup: Setup, size: int, max_tokens: int | None) -> Shorter | None:
    """Return the shorter reply that makes the same messages fit; None if the reply was not the cause.

    `size` is our count of the request's tokens, used if the provider reports none.
    """
    wanted = max_tokens or found.max_tokens
    if found.asked is not None:
        smaller = fits_with(found.limit or setup.window.context, found.asked, wanted)
    else:
        smaller = fitting_output(size, setup.window, wanted) if wanted else None
    if smaller is None or wanted is None:
        return None
    return Shorter(smaller, wanted, found.asked / size if found.asked and size else 1.0)

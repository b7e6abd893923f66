"""A request that did not fit: what the provider said of it, and what is done about it.

First its window is learnt. Then a shorter reply is tried, then one compaction for a user message.
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
from foldline.session.model import Setup
from foldline.session.shared import Shared
from foldline.session.view import ContextMessages, ViewToken, check_answered

FULL = "model_context_window_exceeded"  # Anthropic's stop reason of a reply that the window cut short


class OverflowMender:
    """Makes the next request fit after one that did not."""

    def __init__(self, shared: Shared, compactor: Compactor) -> None:
        self._shared = shared
        self._compactor = compactor

    async def overflowed(
        self, seen: Any, *, view: list[Any] | None = None, max_tokens: int | None = None
    ) -> ContextMessages:
        """Return the messages to send after a request that did not fit, compacted where that is what helps.

        `seen` is what the provider raised (an SDK's exception or a ProviderError), or a reply that is an
        overflow in disguise, one that the window cut short included; any other error is raised again,
        InputError for any other reply. `view` is the list that was sent, as `context` or this method returned
        it (default: the newest that was handed out); where its view has been folded since, the newer one is
        returned as it is, whichever task or thread asks. `max_tokens` is what the request asked for: where a
        smaller one fits, the messages stay as they are and `session.max_tokens` says which to send. Compacts
        once for a user message, and again only when the model has replied since. Raises OverflowRemains with
        what cannot be removed where nothing helps any more, and what was raised where the policy forbids to
        mend it. An error in which a chat template asks for user and assistant in turn is mended as well: from
        then on messages of one role in a row are joined.
        """
        self._shared.check_free()
        if isinstance(seen, BaseException) and refuses_roles(str(seen)):
            await self._speak_in_turn(seen)
        else:
            await self._mend(seen, max_tokens, self._shared.view.asked_with(view))
        async with self._shared.locked() as cursor:
            check_answered(cursor.state)
            return self._shared.view.hand_out()

    async def _mend(self, seen: Any, max_tokens: int | None, shown: ViewToken | None) -> None:
        """Make the next request fit: by a compaction, or by a shorter reply, which `Shared.reply` holds.

        `shown` is the token of the view that was asked with (None: not known). Where the view is another by
        now, that one has not been tried, and nothing is done.
        """
        found, path, cure = await self._considered(seen, max_tokens, shown)
        if cure is None:
            self._emit(found, "newer_view")
        elif isinstance(cure, Shorter):
            self._emit(found, "max_tokens", cure.max_tokens)
        else:
            self._emit(found, "compaction")
            done = await self._compactor.overflow(cure, path)
            if isinstance(done, Nothing):
                async with self._shared.locked() as cursor:
                    if cursor.state.boundaries == path:
                        why = f"nothing could be folded ({done.why})"
                        raise self._remains(found, why) from _cause(seen)
        self._shared.reply.mended(cure if isinstance(cure, Shorter) else None)

    async def _speak_in_turn(self, seen: BaseException) -> None:
        """Have the view speak in turn, which a chat template asks for; raises what was seen if it does."""
        async with self._shared.locked():
            if self._shared.model.in_turn:
                raise seen
            await self._shared.model.learn_turns()

    async def _considered(
        self, seen: Any, max_tokens: int | None, shown: ViewToken | None
    ) -> tuple[Overflow, ViewToken, Shorter | float | None]:
        """Return the overflow, the path's boundaries, and what helps.

        That is a shorter reply, or a view of this share of the window; None where a newer view is there.
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
            if not cut:  # of one that was cut short the size is not sure, and a shorter one does not help
                await model.learn_window(found, size)
                reply = shorter(found, model.setup, model.trigger_size(cursor.state), max_tokens)
                if reply and (hint is None or reply.max_tokens < hint):
                    return found, path, reply
            share = share_left(found, size, model.ask("overflow").usable, max_tokens)
            self._check_permitted(found, seen)
            return found, path, share

    def _check_permitted(self, found: Overflow, seen: Any) -> None:
        """Raise where an overflow is not to be folded away, or was and came again."""
        decision = self._shared.watch.on_overflow(self._shared.model.trigger_facts())
        if isinstance(decision, Refuse):
            raise FloorExceeded(decision.floor, decision.usable, decision.breakdown) from _cause(seen)
        if isinstance(decision, Stay) and decision.why == "mended":
            raise self._remains(found, "it was compacted for this message already") from _cause(seen)
        if isinstance(decision, Stay):
            self._emit(found, "none")
            if decision.why == "disabled" and isinstance(seen, BaseException):
                raise seen
            why = "the policy forbids compaction" if decision.why == "disabled" else "three attempts failed"
            raise self._remains(found, why) from _cause(seen)

    def _emit(self, found: Overflow, remedy: Remedy, max_tokens: int | None = None) -> None:
        event = OverflowSeen(limit=found.limit, asked=found.asked, remedy=remedy, max_tokens=max_tokens)
        self._shared.events.emit(event)

    def _remains(self, found: Overflow, why: str) -> OverflowRemains:
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


# ---- what the provider said


def overflow_in(seen: Any, setup: Setup) -> Overflow | None:
    """Return the overflow that an error or a reply tells of; None where it is something else.

    `seen` is a ProviderError, what an official SDK raised, any other exception with the provider's words, a
    `Reply` of ours, or an SDK reply: an overflow can come as an ordinary one.
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
    """Return the overflow of a reply that the window cut short after some tokens; None for any other.

    That is one that ended before the `max_tokens` that were asked for, one that its provider says so of, and,
    where `max_tokens` is not known, one with which the window is full, or whose call was cut off and nothing
    was counted. `limit` is how far it came. A reply that took all of its `max_tokens` is not an overflow.
    """
    if isinstance(seen, BaseException):
        return None
    reply = seen if isinstance(seen, Reply) else None
    message = _message(reply.native if reply is not None else seen)
    usage, asked_for = message.usage, max_tokens or (reply.tokens_asked if reply is not None else None)
    if usage is None:
        return Overflow() if cut_call(message) else None
    asked = usage.input + usage.cache_read + usage.cache_write
    full = _stop_reason(reply.native if reply is not None else seen) == FULL
    if asked_for is not None:
        full = full or cut_short(usage, message.stop, asked_for)
    elif message.stop == "length":
        full = full or asked + usage.output >= STARVED_SHARE * setup.window.context
    return Overflow(limit=asked + usage.output, asked=asked) if full and asked else None


def _cut_off_or_raise(seen: Any, setup: Setup, max_tokens: int | None) -> Overflow:
    if isinstance(seen, BaseException):
        raise seen
    found = cut_off(seen, setup, max_tokens)
    if found is None:
        raise InputError(
            "this reply is not an overflow: append it, and ask for the context. If it stopped at its own "
            "max_tokens, the window was not full: ask again with a larger max_tokens, or pass yours here"
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
        raise InputError("pass what the provider raised, or the reply that it sent")
    return get(name).decode_reply(reply)


# ---- what helps


def shorter(found: Overflow, setup: Setup, size: int, max_tokens: int | None) -> Shorter | None:
    """Return the shorter reply with which the same messages fit; None if the reply was not the cause.

    `size` is the request's in tokens by our count, used where the provider names none.
    """
    wanted = max_tokens or found.max_tokens
    if found.asked is not None:
        smaller = fits_with(found.limit or setup.window.context, found.asked, wanted)
    else:
        smaller = fitting_output(size, setup.window, wanted) if wanted else None
    if smaller is None or wanted is None:
        return None
    return Shorter(smaller, wanted, found.asked / size if found.asked and size else 1.0)

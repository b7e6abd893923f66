"""A request that did not fit: what the provider said of it, and what was tried already."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from foldline.core.checkpoint.redact import redact
from foldline.core.decide.triggers import fitting_output
from foldline.core.log.entries import Compacted, Entry, Pruned, Said
from foldline.core.log.messages import Message
from foldline.core.measure.overflow import (
    STARVED_SHARE,
    Overflow,
    cut_call,
    cut_short,
    fits_with,
    overflow,
    silent,
)
from foldline.core.measure.window import Window
from foldline.dialects import get
from foldline.dialects.dialect_of import reply_dialect
from foldline.errors import InputError, ProviderError
from foldline.providers.base import Reply
from foldline.providers.failures import from_sdk
from foldline.session.setup import Setup

FULL = "model_context_window_exceeded"  # Anthropic's stop reason of a reply that the window cut short
MARGIN = 1.01  # of a request's size: what came since the provider counted it is our estimate
NEXT_TRY = 0.7  # of a view that fits by our count and did not: what is tried where the provider names no size


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
    """Return the overflow of a reply that the window cut short after some tokens; None where it is something else.

    That is one that ended before the `max_tokens` that were asked for, one that its provider says so of, and, where
    `max_tokens` is not known, one with which the window is full, or whose call was cut off and nothing was counted.
    `limit` is how far it came. A reply that took all of its `max_tokens` is no overflow.
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


def _stop_reason(reply: object) -> object:
    if isinstance(reply, dict):
        return cast("dict[str, Any]", reply).get("stop_reason")
    return getattr(reply, "stop_reason", None)


def _message(reply: Any) -> Message:
    if isinstance(reply, Message):
        return reply
    name = reply_dialect(reply)
    if name is None:
        raise InputError("give what the provider raised, or the reply that it sent")
    return get(name).decode_reply(reply)


class Shorter(NamedTuple):
    """What a reply may take: `max_tokens` now, `wanted` where there is room; a provider counts `rate` times our tokens."""

    max_tokens: int
    wanted: int
    rate: float

    def fitting(self, size: int, window: Window) -> int | None:
        """Return the `max_tokens` with which a later request of `size` tokens by our count fits; None: any will do."""
        return fitting_output(math.ceil(MARGIN * self.rate * size), window, self.wanted)


def shorter(found: Overflow, setup: Setup, size: int, max_tokens: int | None) -> Shorter | None:
    """Return the shorter reply with which the same messages fit, or None where the reply was not the cause."""
    smaller, wanted = smaller_output(found, setup, size, max_tokens), max_tokens or found.max_tokens
    if smaller is None or wanted is None:
        return None
    return Shorter(smaller, wanted, found.asked / size if found.asked and size else 1.0)


def smaller_output(found: Overflow, setup: Setup, size: int, max_tokens: int | None) -> int | None:
    """Return a smaller `max_tokens` with which the same messages fit, or None where that was not the cause.

    `size` is the request's in tokens by our count, used where the provider names none.
    """
    wanted = max_tokens or found.max_tokens
    if found.asked is not None:
        return fits_with(found.limit or setup.window.context, found.asked, wanted)
    return fitting_output(size, setup.window, wanted) if wanted else None


def mended_already(path: Sequence[Entry]) -> bool:
    """Whether an overflow was folded away since the newest user message, and no reply has come since."""
    for entry in reversed(path):
        if isinstance(entry, Compacted | Pruned) and entry.receipt.reason == "overflow":
            return True
        if isinstance(entry, Said) and (entry.message.role == "assistant" or entry.message.is_prompt):
            return False
    return False


def share_left(found: Overflow, size: int, usable: int, max_tokens: int | None = None) -> float:
    """Return the part of the window, in our tokens, that is as much as the provider takes.

    By its own count of the request where it gives one, and so that the reply that was asked for, of `max_tokens`,
    has room beside it; else a view that fits by our count, and did not, is taken to be allowed 70% of itself.
    """
    if found.asked:
        rate, reply = size / found.asked, max_tokens or found.max_tokens
        if not (found.limit and reply and usable):
            return min(1.0, rate)
        return min(1.0, rate, rate * max(found.limit - reply, found.limit // 2) / usable)
    return min(1.0, NEXT_TRY * size / usable) if usable else 1.0

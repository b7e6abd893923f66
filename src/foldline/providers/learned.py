"""What an overflow teaches of a model's window."""

from __future__ import annotations

from typing import Final

import msgspec

from foldline.catalogue import ModelInfo
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.window import Window, share

# Of what an unknown model did not take, where its error names no limit. A guess: two of them halve it.
NEXT_TRY: Final = 0.7
LEAST: Final = 2_048  # tokens; no model in use has less


def learned(info: ModelInfo, context: int) -> ModelInfo:
    """Return a model with a context, in tokens, that an overflow taught."""
    return msgspec.structs.replace(info, window=narrowed(info.window, context), known=True, found="learned")


def learn(window: Window, overflow: Overflow, *, known: bool, sent: int | None = None) -> Window | None:
    """Return the window that an overflow teaches, or None where it teaches nothing new.

    A limit that the provider names is believed, above or below what was assumed: it is a fact of that server.
    Where it names none, an unknown model (`known` False) is tried with 70% of the tokens that were `sent`; a
    known one keeps its window, as our count, not the window, may be off. Tokens are the provider's for a
    named limit, Foldline's for `sent`.
    """
    if overflow.limit:
        return None if overflow.limit == window.context else narrowed(window, max(LEAST, overflow.limit))
    size = overflow.asked or sent
    if known or not size:
        return None
    guess = max(LEAST, share(min(size, window.context), NEXT_TRY))
    return narrowed(window, guess) if guess < window.context else None


def narrowed(window: Window, context: int) -> Window:
    """Return a window of that context, in tokens, without an input limit; a reply may take half of it."""
    return Window(context=context, output=min(window.output, max(1, context // 2)))

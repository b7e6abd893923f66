"""A model's window and price, and how an overflow changes them."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from foldline.core.decide.price import Price
from foldline.core.measure.overflow import NEXT_TRY, Overflow
from foldline.core.measure.window import Window, share

# The default for unknown models. A window that is too large is corrected at the first overflow; with one that
# is too small, a session would always fold too early.
DEFAULT_WINDOW: Final = Window(context=200_000, output=8_192)

LEAST: Final = 2_048  # tokens; no model in use has a smaller window

Found = Literal["given", "override", "exact", "same name", "longest prefix", "learned", "default"]


class ModelInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's limits in tokens and its price; `known` False: the window is an assumption.

    `name` is the requested name (None: no model was named), `entry` its name in the catalogue or the settings
    ("": in neither), `found` the source of the window.
    """

    name: str | None
    window: Window = DEFAULT_WINDOW
    price: Price | None = None
    known: bool = True
    entry: str = ""
    found: Found = "exact"

    @property
    def warning(self) -> str | None:
        """A warning that the window of the model that the user named is assumed; None otherwise."""
        if self.known or not self.name:
            return None
        window = self.window
        return (
            f"{self.name} is not in the catalogue: a window of {window.context:,} tokens and replies of "
            f"{window.output:,} are assumed. "
            f'Set models."{self.name}".context in settings.toml, or give a window.'
        )

    def within(self, window: int | Window) -> ModelInfo:
        """Return the model with a caller's window; a number is its context in tokens."""
        if not isinstance(window, Window):
            window = msgspec.structs.replace(self.window, context=window, input=None)
        return msgspec.structs.replace(self, window=window, known=True, found="given")


def learned(info: ModelInfo, context: int) -> ModelInfo:
    """Return a model with the context in tokens that was learnt from an overflow."""
    return msgspec.structs.replace(info, window=narrowed(info.window, context), known=True, found="learned")


def learn(window: Window, overflow: Overflow, *, known: bool, sent: int | None = None) -> Window | None:
    """Return the window learnt from an overflow, or None if it is not new.

    A limit that the provider names is used, whether larger or smaller: it is a fact of that server. Without
    one, an unknown model (`known` False) gets 70% of the tokens that were `sent`; a known one keeps its
    window, because our count may be wrong instead. Tokens are the provider's for a named limit, Foldline's
    for `sent`.
    """
    if overflow.limit:
        return None if overflow.limit == window.context else narrowed(window, max(LEAST, overflow.limit))
    size = overflow.asked or sent
    if known or not size:
        return None
    guess = max(LEAST, share(min(size, window.context), NEXT_TRY))
    return narrowed(window, guess) if guess < window.context else None


def narrowed(window: Window, context: int) -> Window:
    """Return a window with a smaller context in tokens and no input limit; a reply may take half of it."""
    return Window(context=context, output=min(window.output, max(1, context // 2)))

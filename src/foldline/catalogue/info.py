"""What is known of a model: its window and its price, resolved once; and what an overflow teaches of them."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from foldline.core.decide.price import Price
from foldline.core.measure.overflow import NEXT_TRY, Overflow
from foldline.core.measure.window import Window, share

# The one default, where no window is given and none is known. A window assumed too large mends itself at the
# first overflow; one assumed too small would fold too early for good.
DEFAULT_WINDOW: Final = Window(context=200_000, output=8_192)

LEAST: Final = 2_048  # tokens; no model in use has less

Found = Literal["given", "override", "exact", "same name", "longest prefix", "learned", "default"]


class ModelInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's limits in tokens and its price; `known` False: the window is an assumption.

    `name` is the model as it was asked for (None: no model was named), `entry` what the catalogue or the
    settings call it ("": neither has it), `found` where the window comes from.
    """

    name: str | None
    window: Window = DEFAULT_WINDOW
    price: Price | None = None
    known: bool = True
    entry: str = ""
    found: Found = "exact"

    @property
    def warning(self) -> str | None:
        """What to tell the user of a window that is assumed for a model they named; None otherwise."""
        if self.known or not self.name:
            return None
        window = self.window
        return (
            f"{self.name} is not in the catalogue: a window of {window.context:,} tokens and replies of "
            f"{window.output:,} are assumed. "
            f'Set models."{self.name}".context in settings.toml, or give a window.'
        )

    def within(self, window: int | Window) -> ModelInfo:
        """Return the model with the window that a caller gives; a number is its context, in tokens."""
        if not isinstance(window, Window):
            window = msgspec.structs.replace(self.window, context=window, input=None)
        return msgspec.structs.replace(self, window=window, known=True, found="given")


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

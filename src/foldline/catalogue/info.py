"""What is known of a model: its window and its price, resolved once and passed along."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from foldline.core.measure.price import Price
from foldline.core.measure.window import Window

# The one default, where no window is given and none is known. A window assumed too large mends itself at the
# first overflow; one assumed too small would fold too early for good.
DEFAULT_WINDOW: Final = Window(context=200_000, output=8_192)

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

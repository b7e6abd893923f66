"""A model's limits, the usable part of them, and what no compaction can remove."""

from __future__ import annotations

from typing import Literal

import msgspec

SMALLEST_SHARE = 0.25  # of the input limit stays usable with any reserve


class Window(msgspec.Struct, frozen=True):
    """A model's limits in tokens: `context` in all, at most `input` (None: the context) and `output`."""

    context: int
    input: int | None = None
    output: int = 8_192

    @property
    def input_limit(self) -> int:
        """The most input the model takes, in tokens."""
        return min(self.context, self.input) if self.input else self.context


class Amount(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number of tokens given in up to four ways; the smallest one counts.

    `tokens` absolute, `fraction` of `of` (context, usable, or the policy's reserve), `output` the model's
    output limit, `less` the input limit minus that many tokens.
    """

    tokens: int | None = None
    fraction: float | None = None
    output: bool = False
    of: Literal["context", "usable", "reserve"] = "context"
    less: int | None = None

    def resolve(self, window: Window, usable: int | None = None, reserve: int | None = None) -> int:
        """Return the amount for a window in tokens; without `usable` or `reserve`, `of` means the context."""
        specified = {"context": None, "usable": usable, "reserve": reserve}[self.of]
        base = window.context if specified is None else specified
        amounts = [
            *([self.tokens] if self.tokens is not None else []),
            *([share(base, self.fraction)] if self.fraction is not None else []),
            *([window.output] if self.output else []),
            *([max(0, window.input_limit - self.less)] if self.less is not None else []),
        ]
        return min(amounts) if amounts else 0


def share(base: int, fraction: float) -> int:
    """Return the whole tokens in a fraction of `base`: 29% of 100 is 29, although 0.29 * 100 is less."""
    return int(base * fraction + 1e-6)


def usable_tokens(window: Window, reserve: Amount) -> int:
    """Return what a view may take, in tokens: the input limit less the reserve.

    At least a quarter of the input limit stays usable. A reserve made for large windows would leave nothing
    of a small one, and every turn would compact.
    """
    limit = window.input_limit
    return max(limit - reserve.resolve(window), share(limit, SMALLEST_SHARE))


class Floor(msgspec.Struct, frozen=True, omit_defaults=True):
    """What no compaction can remove, in tokens of Foldline's own count.

    `unanswered` are the messages that no reply has seen yet, at their elided size; `checkpoint` is the size
    of the smallest checkpoint.
    """

    system: int = 0
    tools: int = 0
    pins: int = 0
    unanswered: int = 0
    checkpoint: int = 0

    @property
    def total(self) -> int:
        """The sum of the parts."""
        return self.system + self.tools + self.pins + self.unanswered + self.checkpoint

    @property
    def breakdown(self) -> dict[str, int]:
        """The parts by name, largest first, without empty ones."""
        parts = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: tokens for name, tokens in sorted(parts.items(), key=lambda p: -p[1]) if tokens}

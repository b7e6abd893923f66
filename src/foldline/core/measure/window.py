"""A model's limits, and what of them a session may use."""

from __future__ import annotations

import msgspec


class Window(msgspec.Struct, frozen=True):
    """Limits of a model, in tokens: `context` in all, `input` at most (None: the context), `output` at most."""

    context: int
    input: int | None = None
    output: int = 8_192

    @property
    def input_limit(self) -> int:
        """The most input the model takes, in tokens."""
        return min(self.context, self.input) if self.input else self.context


class Amount(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number of tokens given in up to three ways; the smallest of those given counts.

    `tokens` absolute, `fraction` of `of` (context, or usable), `output` the model's output limit.
    """

    tokens: int | None = None
    fraction: float | None = None
    output: bool = False
    of: str = "context"

    def resolve(self, window: Window, usable: int | None = None) -> int:
        """The amount for a window, in tokens; `usable` is needed where `of` says so (else: context)."""
        base = usable if self.of == "usable" and usable is not None else window.context
        given = [
            *([self.tokens] if self.tokens is not None else []),
            *([int(base * self.fraction)] if self.fraction is not None else []),
            *([window.output] if self.output else []),
        ]
        return min(given) if given else 0

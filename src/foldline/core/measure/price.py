"""What a request costs, at prices passed in as values."""

from __future__ import annotations

import msgspec

from foldline.core.log.messages import Usage


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    """USD for a million tokens. A cache price of None means that such tokens cost as much as `input`.

    The base price: what some providers add above a size of context, for priority or by batch is left out.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    @property
    def read(self) -> float:
        """What a million tokens read from the cache cost."""
        return self.input if self.cache_read is None else self.cache_read

    @property
    def write(self) -> float:
        """What a million tokens that are put into the cache cost."""
        return self.input if self.cache_write is None else self.cache_write


def cost(usage: Usage, price: Price) -> float:
    """Return the USD that a request cost; tokens read from or written to a cache at their own prices."""
    total = usage.input * price.input + usage.cache_read * price.read
    return (total + usage.cache_write * price.write + usage.output * price.output) / 1_000_000


def added(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the usage of both; None where neither was counted."""
    if one is None or other is None:
        return one or other
    return Usage(
        input=one.input + other.input,
        cache_read=one.cache_read + other.cache_read,
        cache_write=one.cache_write + other.cache_write,
        output=one.output + other.output,
    )

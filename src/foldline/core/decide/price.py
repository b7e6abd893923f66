"""What a request costs, what a summary costs by each way of having it written, and whether a fold pays.

Pure arithmetic: prices, token counts and the age of the provider's cache come in as values. A prefix that a
provider has just read costs a tenth of its price to be read again, for some minutes; a compaction changes the
prefix, and so throws that away. Both are counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

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
    """Return the USD that a request cost; tokens read from or written to a cache at their own prices.

    Those written for an hour cost twice the input, by Anthropic's list; no other provider names them.
    """
    total = usage.input * price.input + usage.cache_read * price.read
    total += usage.cache_write_hour * (2 * price.input - price.write)
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
        cache_write_hour=one.cache_write_hour + other.cache_write_hour,
    )


# ---- whether a compaction pays


# Anthropic's cache lives five minutes from its last use (one hour at a higher price); OpenAI's five to ten.
CACHE_SECONDS: Final = 300.0
# What a checkpoint of a model usually takes, whatever it may take: lossless-claw's leaves have 2,400 tokens.
USUAL: Final = 2_400
MILLION: Final = 1_000_000

Form = Literal["in-session", "bare"]


class Cache(msgspec.Struct, frozen=True):
    """What a provider's cache holds of a session: `tokens` of its prefix, last used `idle` seconds ago.

    `idle` None: it was never used. `life` is for how many seconds the provider keeps it.
    """

    tokens: int = 0
    idle: float | None = None
    life: float = CACHE_SECONDS

    @property
    def warm(self) -> int:
        """The tokens that can still be read from it."""
        return self.tokens if self.idle is not None and self.idle < self.life else 0


class Way(msgspec.Struct, frozen=True):
    """One way of having a summary written: which model, in which form, and the usage that is expected.

    `usd` is None where the model's price is not known.
    """

    model: str
    form: Form
    usage: Usage
    usd: float | None = None

    @property
    def words(self) -> str:
        """The way and its price, for a receipt."""
        how = "in-session by" if self.form == "in-session" else "by"
        price = "price unknown" if self.usd is None else dollars(self.usd)
        cached = f", {self.usage.cache_read:,} tokens from its cache" if self.usage.cache_read else ""
        return f"{how} {self.model} ({price}{cached})"


def in_session(model: str, price: Price | None, *, prompt: int, asked: int, output: int, cache: Cache) -> Way:
    """Return the way that sends the session's own next request with one more message.

    `prompt` are the tokens of that request, `asked` those of the message, `output` the most that the summary
    may take. What the cache holds is read from it; the rest of the prompt is put into it.
    """
    read = min(cache.warm, prompt)
    usage = Usage(input=asked, cache_read=read, cache_write=prompt - read, output=min(output, USUAL))
    return Way(model, "in-session", usage, None if price is None else cost(usage, price))


def bare(model: str, price: Price | None, *, prompt: int, calls: int, output: int) -> Way:
    """Return the way that sends the conversation as text, in so many calls, `prompt` tokens in all."""
    usual = min(output, USUAL)
    usage = Usage(input=prompt + usual * (calls - 1), output=usual * calls)
    return Way(model, "bare", usage, None if price is None else cost(usage, price))


def by_price(ways: Sequence[Way]) -> list[Way]:
    """Return the ways, the cheapest first; as they came where the price of one is not known."""
    if any(way.usd is None for way in ways):
        return list(ways)
    return sorted(ways, key=lambda way: way.usd or 0.0)


def choice_note(ordered: Sequence[Way]) -> str:
    """Say which way was taken and why, for the receipt."""
    first, *others = ordered
    if not others:
        return f"written {first.words}: the only way"
    if any(way.usd is None for way in ordered):
        return f"written {first.words}: prices are not known, the first choice counts"
    return f"written {first.words}: cheapest; {', '.join(way.words for way in others)}"


NO_GAIN: Final = "a request costs no less than before"


class Balance(msgspec.Struct, frozen=True):
    """What a compaction costs and saves, in USD.

    `summary` was paid for the summary, `lost` is what the changed prefix costs more at the next request,
    `saved` what each request after costs less. `requests` is after how many of them it has paid for itself;
    None: never.
    """

    summary: float
    lost: float
    saved: float
    requests: int | None

    @property
    def words(self) -> str:
        """The balance in one line, for a receipt."""
        if self.requests is None:
            return NO_GAIN
        if self.requests == 0:
            return f"pays at once: each request costs {dollars(self.saved)} less"
        count = "1 request" if self.requests == 1 else f"{self.requests:,} requests"
        lost = f", {dollars(self.lost)} for the cache it loses" if self.lost > 0 else ""
        paid = f"{dollars(self.summary)} for the summary{lost}"
        return f"pays after {count}: {paid}; each costs {dollars(self.saved)} less"


def balance(
    before: int, after: int, *, same: int, price: Price, cache: Cache, summary: float = 0.0
) -> Balance:
    """Return whether a compaction from `before` to `after` tokens pays, against going on without it.

    `same` are the tokens at the head that stay as they were (system prompt and tools): the cache keeps them.
    Going on, the next request reads what is cached and puts the rest in; folded, it puts in all but `same`.
    From then on both are read from the cache: each request saves the reading of what was folded.
    """
    warm = min(cache.warm, before)
    kept = min(same, warm, after)
    going_on = warm * price.read + (before - warm) * price.write
    folded = kept * price.read + (after - kept) * price.write
    lost = (folded - going_on) / MILLION  # less than nothing where the cache is cold
    saved = (before - after) * price.read / MILLION
    spent = summary + lost
    if spent <= 0:
        return Balance(summary, lost, saved, 0)
    return Balance(summary, lost, saved, math.ceil(spent / saved) if saved > 0 else None)


class Economy(msgspec.Struct, frozen=True):
    """What a session's requests cost: the prices of its model, and what the provider's cache holds of it."""

    price: Price
    cache: Cache = Cache()

    def balance(self, before: int, after: int, *, same: int, summary: float | None) -> Balance:
        """Return whether a compaction pays; see `balance`. A `summary` of unknown price counts as free."""
        return balance(before, after, same=same, price=self.price, cache=self.cache, summary=summary or 0.0)


def is_balance(note: str) -> bool:
    """Whether a note of a receipt is a balance; a draft's is out of date when it is committed."""
    return note == NO_GAIN or note.startswith(("pays at once: ", "pays after "))


def dollars(usd: float) -> str:
    """Write an amount in USD: cents and their fractions as far as they are told apart."""
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"

"""The price of requests and summaries, and whether a fold pays.

Pure arithmetic: prices, token counts and the age of the provider's cache are arguments. For some minutes a
provider reads a cached prefix at a tenth of its price; a compaction changes the prefix and loses that. Both
are counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from foldline.core.log.messages import Usage


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    """USD per million tokens. A cache price of None means the price of `input`.

    These are base prices, without surcharges for long contexts or priority and without batch discounts.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    @property
    def read(self) -> float:
        """USD per million tokens read from the cache."""
        return self.input if self.cache_read is None else self.cache_read

    @property
    def write(self) -> float:
        """USD per million tokens written to the cache."""
        return self.input if self.cache_write is None else self.cache_write


def cost(usage: Usage, price: Price) -> float:
    """Return the price of a request in USD, with cache reads and writes at their own prices.

    Tokens cached for an hour cost twice the input price (Anthropic; no other provider reports them).
    """
    total = usage.input * price.input + usage.cache_read * price.read
    total += usage.cache_write_hour * (2 * price.input - price.write)
    return (total + usage.cache_write * price.write + usage.output * price.output) / 1_000_000


def added(first: Usage | None, second: Usage | None) -> Usage | None:
    """Return the sum of two usages; None if both are None."""
    if first is None or second is None:
        return first or second
    return Usage(
        input=first.input + second.input,
        cache_read=first.cache_read + second.cache_read,
        cache_write=first.cache_write + second.cache_write,
        output=first.output + second.output,
        cache_write_hour=first.cache_write_hour + second.cache_write_hour,
    )


# ---- whether a compaction pays


# Anthropic's cache lives five minutes from its last use (one hour at a higher price); OpenAI's five to ten.
CACHE_SECONDS: Final = 300.0
# Tokens of a usual summary, however many are allowed: lossless-claw's leaves have 2,400.
USUAL: Final = 2_400
MILLION: Final = 1_000_000

Form = Literal["in-session", "bare"]


class Cache(msgspec.Struct, frozen=True):
    """A provider's cache of a session: `tokens` of its prefix, last used `idle` seconds ago.

    `idle` None: never used. The provider keeps it for `life` seconds.
    """

    tokens: int = 0
    idle: float | None = None
    life: float = CACHE_SECONDS

    @property
    def warm(self) -> int:
        """The tokens that can still be read from the cache."""
        return self.tokens if self.idle is not None and self.idle < self.life else 0


class Way(msgspec.Struct, frozen=True):
    """A way to have a summary written: the model, the form, and the expected usage.

    `usd` is None if the model's price is unknown.
    """

    model: str
    form: Form
    usage: Usage
    usd: float | None = None

    @property
    def words(self) -> str:
        """The model, the form and the price, for a receipt."""
        how = "in-session by" if self.form == "in-session" else "by"
        price = "price unknown" if self.usd is None else dollars(self.usd)
        cached = f", {self.usage.cache_read:,} tokens from its cache" if self.usage.cache_read else ""
        return f"{how} {self.model} ({price}{cached})"


def in_session(model: str, price: Price | None, *, prompt: int, asked: int, output: int, cache: Cache) -> Way:
    """Return the way that sends the session's next request with one more message.

    `prompt` are the tokens of that request, `asked` those of the message, `output` the most for the summary.
    Cached tokens are read from the cache; the rest of the prompt is written to it.
    """
    read = min(cache.warm, prompt)
    usage = Usage(input=asked, cache_read=read, cache_write=prompt - read, output=min(output, USUAL))
    return Way(model, "in-session", usage, None if price is None else cost(usage, price))


def bare(model: str, price: Price | None, *, prompt: int, calls: int, output: int) -> Way:
    """Return the way that sends the conversation as text, `prompt` tokens in `calls` requests."""
    output_each = min(output, USUAL)
    usage = Usage(input=prompt + output_each * (calls - 1), output=output_each * calls)
    return Way(model, "bare", usage, None if price is None else cost(usage, price))


def by_price(ways: Sequence[Way]) -> list[Way]:
    """Return the ways, cheapest first; in the given order if a price is unknown."""
    if any(way.usd is None for way in ways):
        return list(ways)
    return sorted(ways, key=lambda way: way.usd or 0.0)


def choice_note(ordered: Sequence[Way]) -> str:
    """Return the receipt's note on which way was chosen and why."""
    chosen, *others = ordered
    if not others:
        return f"written {chosen.words}: the only way"
    if any(way.usd is None for way in ordered):
        return f"written {chosen.words}: prices are unknown, so the first choice was used"
    return f"written {chosen.words}: cheapest; {', '.join(way.words for way in others)}"


NO_GAIN: Final = "a request costs no less than before"


class Balance(msgspec.Struct, frozen=True):
    """The cost and the savings of a compaction, in USD.

    `summary` is the price of the summary, `lost` the extra cost of the changed prefix at the next request,
    `saved` what each later request saves. It has paid for itself after so many `requests`; None: never.
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
        costs = f"{dollars(self.summary)} for the summary{lost}"
        return f"pays after {count}: {costs}; each costs {dollars(self.saved)} less"


class Economy(msgspec.Struct, frozen=True):
    """The prices of a session's model, and the provider's cache of the session."""

    price: Price
    cache: Cache = Cache()

    def balance(self, before: int, after: int, *, same: int, summary: float | None) -> Balance:
        """Return the balance of a compaction from `before` to `after` tokens.

        `same` are the tokens at the head that do not change (system prompt and tools), so the cache keeps
        them. A `summary` of unknown price counts as free. Without a fold, the next request reads what is
        cached and writes the rest; after a fold it writes all but `same`. Every later request reads the cache
        and saves the folded tokens.
        """
        price, summary = self.price, summary or 0.0
        warm = min(self.cache.warm, before)
        kept = min(same, warm, after)
        unfolded = warm * price.read + (before - warm) * price.write
        folded = kept * price.read + (after - kept) * price.write
        lost = (folded - unfolded) / MILLION  # negative if the cache is cold
        saved = (before - after) * price.read / MILLION
        spent = summary + lost
        if spent <= 0:
            return Balance(summary, lost, saved, 0)
        return Balance(summary, lost, saved, math.ceil(spent / saved) if saved > 0 else None)


def is_balance(note: str) -> bool:
    """Whether a note of a receipt is a balance, which is out of date when a draft is committed."""
    return note == NO_GAIN or note.startswith(("pays at once: ", "pays after "))


def dollars(usd: float) -> str:
    """Format an amount in USD: two decimals from $1 on, else four."""
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"

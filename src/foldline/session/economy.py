"""What a session knows of its provider's cache: for summaries written in it, and for what a compaction costs."""

from __future__ import annotations

from typing import Protocol

from foldline.core.decide.price import Cache, Economy
from foldline.core.measure.accounting import real_usage
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.dialects import ANTHROPIC
from foldline.providers.base import Call
from foldline.session.setup import Setup
from foldline.summarizers.choose import Prefix


class Asking(Protocol):
    """What is needed of a session to ask in it."""

    @property
    def setup(self) -> Setup:
        """How it is kept."""
        ...

    @property
    def dialect(self) -> str:
        """The dialect of its messages."""
        ...

    @property
    def view_tokens(self) -> int:
        """The size of its next request."""
        ...

    @property
    def cache(self) -> Cache:
        """What the provider's cache holds of it."""
        ...

    def prefix(self) -> Call:
        """Return its next request."""
        ...


def cache_of(fold: ViewState, dialect: str, now: float) -> Cache:
    """Return what the newest reply since the boundary says of the cache; `now` is Unix time.

    OpenAI caches every prompt by itself, Anthropic what was marked: only what it read or wrote counts.
    """
    for entry in reversed(fold.kept[fold.usage_from :]):
        usage = real_usage(entry.message)
        if usage is None:
            continue
        native = entry.message.native
        marked = (native.dialect if native is not None else dialect) == ANTHROPIC
        tokens = usage.cache_read + (usage.cache_write if marked else usage.input)
        return Cache(tokens, idle=None if entry.at is None else max(0.0, now - entry.at))
    return Cache()


def economy_of(setup: Setup, fold: ViewState, now: float) -> Economy | None:
    """Return the prices and the cache of a session, for the balance of a compaction; None without a price."""
    price = setup.info.price
    return None if price is None else Economy(price, cache_of(fold, setup.dialect or "", now))


def window_in(session: Asking, model: str) -> Window | None:
    """Return the window of a session's model as the session knows it, learnt or told; None where it is another's."""
    return session.setup.window if session.setup.model == model else None


def asking_in(session: Asking, model: str, dialect: str) -> Prefix | None:
    """Return the next request of a session, to ask for a summary in it; None where that model cannot take it."""
    if session.setup.model != model or session.dialect != dialect:
        return None
    call = session.prefix()
    if not call.messages:
        return None
    return Prefix(call, session.view_tokens, session.cache)

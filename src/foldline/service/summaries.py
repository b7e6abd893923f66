"""Who writes the summaries of the service: the model that is asked, another, or code alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from foldline import providers
from foldline.catalogue import ModelInfo
from foldline.config import ServeSettings
from foldline.providers import Patience, Provider
from foldline.session.session import Session
from foldline.summarizers import ModelSummarizer, OfflineSummarizer, Summarizer

UPSTREAM: Final = "upstream"
OFFLINE: Final = "offline"
BY_RULE: Final = (UPSTREAM, OFFLINE)  # any other word of `[serve] summaries` is a provider's name
IMPATIENT: Final = Patience(attempts=2, first=0.2, longest=2.0, timeout=120.0)  # somebody may be waiting


def written_by(
    serve: ServeSettings, upstream: Callable[[], Provider | None], info: ModelInfo | None
) -> Summarizer:
    """Return who writes: `upstream` makes the provider of the model that is asked, None where it cannot."""
    who = serve.summaries
    if who == OFFLINE:
        return OfflineSummarizer()
    if who != UPSTREAM:
        return ModelSummarizer(providers.get(who, base_url=serve.url_of(who)), patience=IMPATIENT)
    provider = upstream()
    if provider is None:
        return OfflineSummarizer()
    window, price = (None, None) if info is None else (info.window, info.price)
    return ModelSummarizer(provider, window=window, price=price, patience=IMPATIENT)


def give(session: Session, summarizer: Summarizer) -> None:
    """Have a session's summaries written so from now on."""
    session.summarizer = summarizer
    closing(session)


def closing(session: Session) -> Session:
    """Have a session close its summariser's connections when it is closed; return the session."""
    if isinstance(session.summarizer, ModelSummarizer):
        session.at_close(session.summarizer.close)
    return session

"""The summariser for a model's name: the model where it can be asked, code alone where it cannot."""

from __future__ import annotations

from collections.abc import Callable

from foldline.catalogue import Catalogue
from foldline.core.decide.policy import Policy
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Window
from foldline.errors import InputError
from foldline.providers import choose
from foldline.providers.offline import OFFLINE as NO_MODEL
from foldline.summarizers.base import Summarizer
from foldline.summarizers.candidate import Candidate, candidate
from foldline.summarizers.choose import Prefix
from foldline.summarizers.model import ModelSummarizer
from foldline.summarizers.offline import OfflineSummarizer


def summarizer_for(
    model: str | None,
    policy: Policy,
    *,
    counter: Counter = OFFLINE,
    window: Window | None = None,
    dialect: str | None = None,
    catalogue: Catalogue | None = None,
    prefix: Callable[[], Prefix | None] | None = None,
) -> Summarizer:
    """Return who writes the summaries of a session with this model; nothing is imported or connected.

    `policy.summary_model` names a second model. Where neither can be asked (no provider in the name, no SDK, no
    key), code alone writes, at once, and each receipt says why. `window` is the session's model's.
    """
    own, why = _model(model, window, dialect, catalogue)
    other, why_other = _model(policy.summary_model, None, None, catalogue)
    first = own or other
    if first is None:
        reasons = [words for words in (why, why_other) if words]
        return OfflineSummarizer(
            counter, notes=tuple(f"written without a model: {words}" for words in reasons)
        )
    return ModelSummarizer(
        first.provider,
        other=other if own is not None and other is not None and own.name != other.name else None,
        counter=counter,
        window=first.window,
        price=first.price,
        prefix=prefix if own is not None else None,
    )


def _model(
    name: str | None, window: Window | None, dialect: str | None, catalogue: Catalogue | None
) -> tuple[Candidate | None, str]:
    """A model that can be asked, or why there is none; "" where none was named."""
    if not name or name == NO_MODEL:
        return None, ""
    try:
        if why := choose.missing(name):
            return None, f"{name}: {why}"
        speaks = choose.named(name).kind.dialects
        spoken = dialect if dialect in speaks else None
        provider = choose.get(name, dialect=spoken, window=window, catalogue=catalogue)
    except InputError as error:
        return None, str(error)
    return candidate(provider, window=window, catalogue=catalogue), ""

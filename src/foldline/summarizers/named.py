"""The summariser for a model: the model if it can be asked, otherwise code alone."""

from __future__ import annotations

from foldline.catalogue import Catalogue, ModelInfo
from foldline.core.decide.policy import Policy
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.errors import InputError
from foldline.providers import choose
from foldline.providers.choose import OFFLINE as NO_MODEL
from foldline.summarizers.base import Summarizer
from foldline.summarizers.candidate import Candidate
from foldline.summarizers.model import ModelSummarizer
from foldline.summarizers.offline import OfflineSummarizer


def summarizer_for(
    info: ModelInfo,
    policy: Policy,
    *,
    catalogue: Catalogue,
    counter: Counter = OFFLINE,
    dialect: str | None = None,
) -> Summarizer:
    """Return the summariser of a session with this model; nothing is imported or connected.

    `policy.summary_model` names a second model; `offline` has code alone write. Where neither can be asked
    (no provider in the name, no SDK, no key), code alone writes, at once. Each receipt says who could not be
    asked, and why.
    """
    if policy.summary_model == NO_MODEL:
        return OfflineSummarizer(counter)
    own, why = _candidate(info, dialect)
    other, why_other = _candidate(catalogue.look_up(policy.summary_model), None)
    told = _told(why_other, own)
    first = own or other
    if first is None:
        alone = [f"written without a model: {why}"] if why else []
        return OfflineSummarizer(counter, notes=(*alone, *told))
    return ModelSummarizer(
        first.provider,
        other=other if own is not None and other is not None and own.name != other.name else None,
        counter=counter,
        window=first.window,
        price=first.price,
        notes=told,
    )


def unasked_warning(info: ModelInfo, policy: Policy, *, catalogue: Catalogue) -> str:
    """Return what to tell of a `summary_model` that cannot be asked, and who is asked; "" if there is none.

    `info` is the session's own model. It says what the receipts of its `summarizer_for` say.
    """
    why = _candidate(catalogue.look_up(policy.summary_model), None)[1]
    return "".join(_told(why, _candidate(info, None)[0]))


def _told(why: str, own: Candidate | None) -> tuple[str, ...]:
    """Return the note on a `summary_model` that cannot be asked, and on what is done instead."""
    instead = f"{own.name} is asked instead" if own is not None else "code alone writes"
    return (f"the policy's summary_model cannot be asked ({why}): {instead}",) if why else ()


def _candidate(info: ModelInfo, dialect: str | None) -> tuple[Candidate | None, str]:
    """Return the model as a candidate, or why it cannot be asked ("" if no model is named)."""
    name = info.name
    if not name or name == NO_MODEL:
        return None, ""
    try:
        if why := choose.missing(name):
            return None, f"{name}: {why}"
        speaks = choose.named(name).kind.dialects
        provider = choose.get(name, dialect=dialect if dialect in speaks else None, info=info)
    except InputError as error:
        return None, str(error)
    return Candidate(provider, info.window, info.price), ""

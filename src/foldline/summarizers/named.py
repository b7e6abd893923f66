"""The summariser for a model: the model if it can be called, else code."""

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

    `policy.summary_model` names a second model; `offline` uses code. If neither model can be called (no
    provider in the name, no SDK, no key), code writes the summaries. Each receipt says which model could not
    be called, and why.
    """
    if policy.summary_model == NO_MODEL:
        return OfflineSummarizer(counter)
    own, reason = _candidate(info, dialect)
    other, reason_other = _candidate(catalogue.look_up(policy.summary_model), None)
    notes = _notes(reason_other, own)
    first = own or other
    if first is None:
        offline = [f"written without a model: {reason}"] if reason else []
        return OfflineSummarizer(counter, notes=(*offline, *notes))
    return ModelSummarizer(
        first.provider,
        other=other if own is not None and other is not None and own.name != other.name else None,
        counter=counter,
        window=first.window,
        price=first.price,
        notes=notes,
    )


def unasked_warning(info: ModelInfo, policy: Policy, *, catalogue: Catalogue) -> str:
    """Return a warning about a `summary_model` that cannot be called; "" if it can, or none is set.

    `info` is the session's own model. The receipts of its `summarizer_for` have the same text.
    """
    reason = _candidate(catalogue.look_up(policy.summary_model), None)[1]
    return "".join(_notes(reason, _candidate(info, None)[0]))


def _notes(reason: str, own: Candidate | None) -> tuple[str, ...]:
    """Return a note on a `summary_model` that cannot be called, and what is used instead."""
    instead = f"{own.name} is asked instead" if own is not None else "code alone writes"
    return (f"the policy's summary_model cannot be asked ({reason}): {instead}",) if reason else ()


def _candidate(info: ModelInfo, dialect: str | None) -> tuple[Candidate | None, str]:
    """Return the model as a candidate, or why it cannot be called ("" if no model is named)."""
    name = info.name
    if not name or name == NO_MODEL:
        return None, ""
    try:
        if reason := choose.missing(name):
            return None, f"{name}: {reason}"
        dialects = choose.named(name).kind.dialects
        provider = choose.get(name, dialect=dialect if dialect in dialects else None, info=info)
    except InputError as error:
        return None, str(error)
    return Candidate(provider, info.window, info.price), ""

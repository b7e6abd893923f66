"""Fit a list of messages into a budget, without a store: `foldline.compact`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.arguments import check_shared, check_target, check_text, check_writer
from foldline.catalogue import Catalogue, ModelInfo
from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Window
from foldline.folding import Done, FoldOptions, fold_and_close, fold_now, fold_once
from foldline.loading import Loaded, from_messages
from foldline.summarizers.base import Summarizer
from foldline.summarizers.named import summarizer_for


def compact(
    messages: Sequence[Any],
    target: int | None = None,
    policy: str | Policy | None = None,
    *,
    instructions: str | None = None,
    model: str | None = None,
    system: Any = None,
    tools: Any = None,
    window: int | Window | None = None,
    dialect: str | None = None,
    counter: Counter = OFFLINE,
    summarizer: Summarizer | None = None,
) -> Done:
    """Fit a list of native messages into a budget; no model, key or network is needed, unless one is named.

    `messages` are native messages of any dialect (dicts or SDK objects; of OpenAI's Responses: items),
    `target` the budget in tokens (default: what `policy` leaves usable of `window`, or of the model's).
    `system` and `tools` count but are not changed. `instructions` say what to look at first. A valid list
    that fits comes back unchanged. `summarizer` writes the summary, or `model` (`provider:model`) where its
    key is in the environment; else code alone does, and the receipt says why. `policy`, `window` and the
    model's limits that are not given are those of the settings files. Inside a running event loop it stands
    still meanwhile: await `acompact`. Raises FloorExceeded where the budget cannot be met, DialectError for
    what is no message, InputError for an argument of the wrong type.
    """
    loaded, options, writer = _prepared(
        messages,
        target,
        policy,
        instructions=instructions,
        model=model,
        system=system,
        tools=tools,
        window=window,
        dialect=dialect,
        counter=counter,
        summarizer=summarizer,
    )
    return fold_now(loaded, options, writer)


async def acompact(
    messages: Sequence[Any],
    target: int | None = None,
    policy: str | Policy | None = None,
    *,
    instructions: str | None = None,
    model: str | None = None,
    system: Any = None,
    tools: Any = None,
    window: int | Window | None = None,
    dialect: str | None = None,
    counter: Counter = OFFLINE,
    summarizer: Summarizer | None = None,
) -> Done:
    """Fit a list of native messages into a budget; see `compact`. A `summarizer` that is given stays open."""
    loaded, options, writer = _prepared(
        messages,
        target,
        policy,
        instructions=instructions,
        model=model,
        system=system,
        tools=tools,
        window=window,
        dialect=dialect,
        counter=counter,
        summarizer=summarizer,
    )
    fold = fold_and_close if summarizer is None else fold_once
    return await fold(loaded, options, writer)


def _prepared(
    messages: Sequence[Any],
    target: int | None,
    policy: str | Policy | None,
    *,
    instructions: str | None,
    model: str | None,
    system: Any,
    tools: Any,
    window: int | Window | None,
    dialect: str | None,
    counter: Counter,
    summarizer: Summarizer | None,
) -> tuple[Loaded, FoldOptions, Summarizer]:
    """Return what a call asks for, read and checked."""
    check_target(target)
    check_text("instructions", instructions)
    check_shared(
        model=model,
        window=window,
        dialect=dialect,
        system=system,
        tools=tools,
        counter=counter,
        summarizer=summarizer,
    )
    known = settings()
    rules = known.find_policy(policy)
    info = known.model_info(model, window)
    loaded = from_messages(messages, counter, dialect=dialect)
    loaded.system, loaded.tools = system, tools
    options = FoldOptions(rules, info, target=target, instructions=instructions, counter=counter)
    if summarizer is None:
        summarizer = asked_summarizer(model, info, options.resolved_policy, known.catalogue(), counter)
    return loaded, options, summarizer


def asked_summarizer(
    model: str | None, info: ModelInfo, policy: Policy, catalogue: Catalogue, counter: Counter = OFFLINE
) -> Summarizer:
    """Return who writes a summary for which a call names `model`; `info` is what is known of it.

    `policy` is the policy as it is for the model in use; its `summary_model` is asked all the same. None asks
    no other model: one of the settings, or of a file, gives its window alone. Raises InputError for a name
    that neither a provider nor the catalogue knows.
    """
    if model is None:
        info = catalogue.look_up(None)
    else:
        check_writer(model, known=catalogue.look_up(model).known)
    return summarizer_for(info, policy, catalogue=catalogue, counter=counter)

"""`foldline.open`: a session of a store, by its id."""

from __future__ import annotations

from typing import Any

from foldline.arguments import check
from foldline.config import Settings, settings
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import resolve
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Window
from foldline.folding import overhead_of
from foldline.session.kept import KeptModel
from foldline.session.session import Session, Setup
from foldline.stores import Store, find_store
from foldline.summarizers import Summarizer


def open_session(
    store: str | Store | None = None,
    session: str = "default",
    *,
    model: str | None = None,
    policy: str | Policy | None = None,
    window: int | Window | None = None,
    dialect: str | None = None,
    system: Any = None,
    tools: Any = None,
    counter: Counter = OFFLINE,
    summarizer: Summarizer | None = None,
    subagent: bool = False,
) -> Session:
    """Open a session of a store, for use with `async with`; its first append creates it.

    `store` is a URL, or a `Store` of your own, which you close. `model` gives the window and prices, without
    network access: only summaries call it. `window` overrides its context, in tokens. Both are stored with
    the session until others are given. Defaults for these and `policy` come from the settings files, then
    ~/.foldline/foldline.db, no model, "foldline". A stored model or one from the settings gives its window
    and prices, but writes no summaries.

    `dialect` fixes what `context` returns (default: the newest message's). `system` and `tools` are what you
    send with the messages; `counter` counts their tokens. Summaries are written by `summarizer`; by default
    by `model` or the one set by `use_model`, if it names its provider (`anthropic:...`) and the key is in the
    environment, otherwise offline, and the receipts say why. A `subagent` is compacted only after an
    overflow. Raises InputError for an argument of the wrong type, PolicyError for an unknown policy.
    """
    check(
        session=session,
        model=model,
        window=window,
        dialect=dialect,
        system=system,
        tools=tools,
        counter=counter,
        summarizer=summarizer,
    )
    return open_with(
        settings(),
        store,
        session,
        model=model,
        policy=policy,
        window=window,
        dialect=dialect,
        system=system,
        tools=tools,
        counter=counter,
        summarizer=summarizer,
        subagent=subagent,
    )


def open_with(
    known: Settings,
    store: str | Store | None,
    session: str,
    *,
    model: str | None = None,
    policy: str | Policy | None = None,
    window: int | Window | None = None,
    dialect: str | None = None,
    system: Any = None,
    tools: Any = None,
    counter: Counter = OFFLINE,
    summarizer: Summarizer | None = None,
    subagent: bool = False,
) -> Session:
    """Open a session with given settings, such as those of another folder than the current one."""
    rules = known.find_policy(policy)
    info = known.model_info(model, window)
    setup = Setup(
        policy=resolve(rules, info.name, info.window),
        rules=rules,
        info=info,
        given=KeptModel(model or "", window),
        catalogue=known.catalogue(),
        dialect=dialect,
        system=system,
        tools=tools,
        overhead=overhead_of(system, tools, counter),
        counter=counter,
        subagent=subagent,
    )
    place = find_store(known.store if store is None else store)
    # a model from the settings gives only window and prices: a file must not choose who reads a session
    summary_model = info if model is not None else setup.catalogue.look_up(None)
    return Session(
        place,
        session,
        setup,
        summarizer=summarizer,
        summary_model=summary_model if summarizer is None else None,
        owns_store=place is not store,
    )

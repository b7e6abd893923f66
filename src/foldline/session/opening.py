"""`foldline.open`: a session of a store, by its id."""

from __future__ import annotations

from typing import Any

from foldline.arguments import check
from foldline.config import Settings, settings
from foldline.core.decide.policy import Policy
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Window
from foldline.folding import overhead_of
from foldline.session.kept import KeptModel
from foldline.session.model import with_info
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
    """Open a session of a store, to be used with `async with`; it begins to exist at its first append.

    `store` is a URL, or a `Store` of your own, which you close. `model` gives the window and prices, without
    any network: only a summary calls it. `window` overrides its context, in tokens. Both are stored with the
    session, and stand until others are given. Of these and `policy`, what is neither given nor stored is
    taken from the settings files, else from the defaults: ~/.foldline/foldline.db, no model, "foldline". A
    model of the settings, or one that is stored, gives its window and prices; it is not asked for summaries.

    `dialect` fixes what `context` returns (default: the newest message's). `system` and `tools` are what you
    send beside the messages: they count, by `counter`. Summaries are written by `summarizer`; by default by
    `model`, or the one that `use_model` goes on with, where it names its provider (`anthropic:...`) and the
    key is in the environment, else by code alone, and the receipts say why. A `subagent` is compacted after
    an overflow only. Raises InputError for an argument of the wrong type, PolicyError for an unknown policy.
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
    """Open a session by settings that were read: those of another folder than the current one, say."""
    rules = known.find_policy(policy)
    info = known.model_info(model, window)
    setup = Setup(
        policy=rules,
        info=info,
        dialect=dialect,
        system=system,
        tools=tools,
        overhead=overhead_of(system, tools, counter),
        counter=counter,
        subagent=subagent,
        rules=rules,
        catalogue=known.catalogue(),
        given=KeptModel(model or "", window),
    )
    place = find_store(known.store if store is None else store)
    # a model of the settings gives window and prices alone: a file must not choose who reads a session
    asked = info if model is not None else setup.catalogue.look_up(None)
    return Session(
        place,
        session,
        with_info(setup, info),
        summarizer=summarizer,
        summary_model=asked if summarizer is None else None,
        owns_store=place is not store,
    )

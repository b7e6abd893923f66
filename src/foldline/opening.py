"""`foldline.open`: a session of a store, by URL and id."""

from __future__ import annotations

from functools import partial
from typing import Any

from foldline.core.decide.policy import Policy
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Window
from foldline.live.economy import asking_in, window_in
from foldline.live.events import ModelChanged
from foldline.live.windows import with_model
from foldline.policies import policy as find_policy
from foldline.session import Session, Setup
from foldline.stateless import apart, window_for
from foldline.stores import open_store
from foldline.summarizers import ModelSummarizer, Summarizer, summarizer_for


def open_session(
    url: str | None = None,
    session: str = "default",
    *,
    model: str | None = None,
    policy: str | Policy = "foldline",
    window: int | Window | None = None,
    dialect: str | None = None,
    system: Any = None,
    tools: Any = None,
    counter: Counter = OFFLINE,
    summarizer: Summarizer | None = None,
    subagent: bool = False,
) -> Session:
    """Open a session of a store, to be used with `async with`; it begins to exist at its first append.

    `url` is a store URL (default: ~/.foldline/foldline.db); `model` gives the window and prices, without any
    network: only a summary calls it; `window` overrides its context, in tokens. `dialect` fixes what `context` returns (default: the
    newest message's). `system` and `tools` are what you send beside the messages: they count. Summaries are written
    by `summarizer`; by default by `model` where it names its provider (`anthropic:...`) and the key is in the
    environment, else by code alone, and the receipts say why. A
    `subagent` is not compacted at thresholds, only behind an overflow.
    """
    rules = policy if isinstance(policy, Policy) else find_policy(policy)
    setup = Setup(
        policy=rules,
        window=window_for(model, window),
        dialect=dialect,
        system=system,
        tools=tools,
        apart=apart(system, tools, counter),
        counter=counter,
        subagent=subagent,
        rules=rules,
    )
    fitted = with_model(setup, model, window)
    opened = Session(open_store(url), session, fitted, summarizer=summarizer, owns_store=True)
    if summarizer is None:
        _write_by_model(opened, model)
        opened.on(ModelChanged.name, lambda event: _write_by_model(opened, event.model))
    return opened


def _write_by_model(session: Session, model: str | None) -> None:
    """Have a session's summaries written by its model, in the session itself where that is cheapest."""
    setup = session.setup
    window = setup.window if setup.known else None
    written = summarizer_for(model, setup.policy, counter=setup.counter, window=window, dialect=setup.dialect)
    session.summarizer = written
    if isinstance(written, ModelSummarizer):
        written.prefix = partial(asking_in, session, written.name, written.dialect)
        written.limits = partial(window_in, session, written.name)
        session.at_close(written.close)

"""`foldline.open`: a session of a store, by URL and id."""

from __future__ import annotations

from typing import Any

from foldline.core.decide.policy import Policy
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Window
from foldline.folding import apart, window_for
from foldline.policies import policy as find_policy
from foldline.session.session import Session, Setup
from foldline.session.summarizer_choice import SummarizerChoice
from foldline.session.windows import with_model
from foldline.stores import open_store
from foldline.summarizers import Summarizer


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
    by `summarizer`; by default by `model`, or the one that `use_model` goes on with, where it names its provider
    (`anthropic:...`) and the key is in the environment, else by code alone, and the receipts say why. A `subagent` is not compacted at thresholds, only behind an overflow.
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
        writers = SummarizerChoice()
        writers.use_model(opened, model)
        opened.written_by(writers)
    return opened

"""Fit a list of messages into a budget, without a store: `foldline.compact`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, ParamSpec

from foldline.arguments import check, check_writer
from foldline.catalogue import Catalogue, ModelInfo
from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Window
from foldline.folding import Done, FoldOptions, fold_and_close, fold_now, fold_once
from foldline.loading import Loaded, from_messages
from foldline.summarizers.base import Summarizer
from foldline.summarizers.named import summarizer_for

P = ParamSpec("P")


class _Prepared(NamedTuple):
    """What a call asks for, read and checked; `own` says that the summariser was made for it."""

    loaded: Loaded
    options: FoldOptions
    summarizer: Summarizer
    own: bool


def _prepared(
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
) -> _Prepared:
    """Fit a list of native messages into a budget; no model, key or network is needed, unless one is named.

    `messages` are native messages of any dialect (dicts or SDK objects; of OpenAI's Responses: items),
    `target` the budget in tokens (default: what `policy` leaves usable of `window`, or of the model's).
    `system` and `tools` count but are not changed. `instructions` say what to look at first. A valid list
    that fits comes back unchanged. `summarizer` writes the summary, or `model` (`provider:model`) where its
    key is in the environment; else code alone does, and the receipt says why. `policy`, `window` and the
    model's limits that are not given are those of the settings files. Inside a running event loop, which
    `compact` stops in the meantime, await `acompact`; there a `summarizer` that is given stays open. Raises
    FloorExceeded where the budget cannot be met, DialectError for what is no message, InputError for an
    argument of the wrong type.
    """
    check(
        target=target,
        instructions=instructions,
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
    if summarizer is not None:
        return _Prepared(loaded, options, summarizer, own=False)
    made = asked_summarizer(model, info, options.resolved_policy, known.catalogue(), counter)
    return _Prepared(loaded, options, made, own=True)


def _now(prepare: Callable[P, _Prepared]) -> Callable[P, Done]:
    @functools.wraps(prepare, assigned=("__doc__",))
    def compact(*args: P.args, **kwargs: P.kwargs) -> Done:
        asked = prepare(*args, **kwargs)
        return fold_now(asked.loaded, asked.options, asked.summarizer)

    compact.__qualname__ = compact.__name__  # by which it is pickled
    return compact


def _async(prepare: Callable[P, _Prepared]) -> Callable[P, Coroutine[Any, Any, Done]]:
    @functools.wraps(prepare, assigned=("__doc__",))
    async def acompact(*args: P.args, **kwargs: P.kwargs) -> Done:
        asked = prepare(*args, **kwargs)
        fold = fold_and_close if asked.own else fold_once
        return await fold(asked.loaded, asked.options, asked.summarizer)

    acompact.__qualname__ = acompact.__name__
    return acompact


compact = _now(_prepared)
acompact = _async(_prepared)


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

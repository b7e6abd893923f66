"""One-off calls on a list of messages, without a store: `foldline.compact` and `foldline.convert`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, ParamSpec

import msgspec

from foldline.arguments import check, check_writer
from foldline.catalogue import Catalogue, ModelInfo
from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.core.view_items import native_items
from foldline.dialects import get
from foldline.folding import Done, FoldOptions, fold_and_close, fold_now, fold_once, repairs
from foldline.loading import Loaded, from_messages
from foldline.summarizers.base import Summarizer
from foldline.summarizers.named import summarizer_for

P = ParamSpec("P")


class _FoldCall(NamedTuple):
    """The checked arguments of a call; `own`: the summariser was created for it, and is closed after it."""

    loaded: Loaded
    options: FoldOptions
    summarizer: Summarizer
    own: bool


def _prepare(
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
) -> _FoldCall:
    """Fit a list of native messages into a budget; needs no model, key or network unless one is named.

    `messages` are native messages of any dialect (dicts or SDK objects; for OpenAI's Responses: items),
    `target` is the budget in tokens (default: what `policy` leaves usable of `window`, or of the model's).
    `system` and `tools` count but are not changed. `instructions` tell the summary what to focus on. A valid
    list that fits is returned unchanged. `summarizer` writes the summary, or `model` (`provider:model`) if
    its key is in the environment; otherwise code alone does, and the receipt says why. `policy`, `window` and
    the model's limits default to the settings files. `compact` blocks a running event loop: await `acompact`
    there, which leaves a given `summarizer` open. Raises FloorExceeded if the budget cannot be met,
    DialectError for a value that is not a message, InputError for an argument of the wrong type.
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
    current = settings()
    info = current.model_info(model, window)
    loaded = from_messages(messages, counter, dialect=dialect)
    loaded.system, loaded.tools = system, tools
    options = FoldOptions(
        current.find_policy(policy), info, target=target, instructions=instructions, counter=counter
    )
    if summarizer is not None:
        return _FoldCall(loaded, options, summarizer, own=False)
    summarizer = choose_summarizer(model, info, options.resolved_policy, current.catalogue(), counter)
    return _FoldCall(loaded, options, summarizer, own=True)


def _as_sync(prepare: Callable[P, _FoldCall]) -> Callable[P, Done]:
    @functools.wraps(prepare, assigned=("__doc__",))
    def compact(*args: P.args, **kwargs: P.kwargs) -> Done:
        call = prepare(*args, **kwargs)
        return fold_now(call.loaded, call.options, call.summarizer)

    compact.__qualname__ = compact.__name__  # pickle finds it by this name
    return compact


def _as_async(prepare: Callable[P, _FoldCall]) -> Callable[P, Coroutine[Any, Any, Done]]:
    @functools.wraps(prepare, assigned=("__doc__",))
    async def acompact(*args: P.args, **kwargs: P.kwargs) -> Done:
        call = prepare(*args, **kwargs)
        fold = fold_and_close if call.own else fold_once
        return await fold(call.loaded, call.options, call.summarizer)

    acompact.__qualname__ = acompact.__name__
    return acompact


compact = _as_sync(_prepare)
acompact = _as_async(_prepare)


def choose_summarizer(
    model: str | None, info: ModelInfo, policy: Policy, catalogue: Catalogue, counter: Counter = OFFLINE
) -> Summarizer:
    """Return the summariser for a call with a `model`; `info` is the catalogue entry of the model in use.

    `policy` is resolved for the model in use; its `summary_model` is always called. Without `model` no other
    model is called: a model from the settings or from a file only sets the window. Raises InputError for a
    model that neither a provider nor the catalogue knows.
    """
    if model is None:
        info = catalogue.look_up(None)
    else:
        check_writer(model, known=catalogue.look_up(model).known)
    return summarizer_for(info, policy, catalogue=catalogue, counter=counter)


class Converted(msgspec.Struct, frozen=True):
    """Messages of another dialect, ready to send.

    `system` is the system prompt if that dialect takes it separately. `warnings` list what the dialect could
    not represent, and what was left out, moved or added to make the list valid.
    """

    messages: list[Any]
    dialect: str
    system: Any = None
    warnings: tuple[str, ...] = ()


def convert(messages: Sequence[Any], to: str, *, dialect: str | None = None, system: Any = None) -> Converted:
    """Write a list of native messages in the dialect `to`; nothing is shortened.

    `messages` are dicts or SDK objects in `dialect` (default: detected); `system` is their separate system
    prompt. Messages that are already in that dialect are returned unchanged. Raises DialectError for a value
    that is not a message, InputError for an unknown dialect.
    """
    check(to=to, dialect=dialect, system=system)
    target = get(to)
    loaded = from_messages(messages, OFFLINE, dialect=dialect)
    view = ViewState(loaded.entries, counter=OFFLINE)
    leading = [] if system is None else [(get(loaded.dialect).decode_system(system), ())]
    rendered = target.render([*leading, *native_items(view.view())], whole=True)
    warnings = (*loaded.warnings, *repairs(loaded, view), *rendered.warnings)
    return Converted(rendered.messages, to, rendered.system, warnings)

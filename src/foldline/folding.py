"""Fit a list of messages into a budget, without a store: `foldline.compact`."""

from __future__ import annotations

import time
from collections.abc import Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from foldline.catalogue import Catalogue
from foldline.core.compact.plan import plan
from foldline.core.decide.ask import Ask, Nothing
from foldline.core.decide.policy import Policy, usable_of
from foldline.core.log.entries import Compacted, Entry, Pruned, Receipt, Said
from foldline.core.log.log import chained
from foldline.core.log.messages import Text
from foldline.core.measure.tokens import OFFLINE, Counter, text_tokens, tools_tokens
from foldline.core.measure.window import Floor, Window
from foldline.core.view import Made, ViewState, native_items
from foldline.dialects import get
from foldline.dialects.dialect_of import join_system
from foldline.errors import InputError
from foldline.executor import execute, run_sync
from foldline.loading import Loaded, from_messages
from foldline.policies import policy as find_policy
from foldline.summarizers.base import Summarizer
from foldline.summarizers.model import ModelSummarizer
from foldline.summarizers.named import summarizer_for
from foldline.waiting import run_waiting


class Done(msgspec.Struct):
    """A folded list. Token figures are Foldline's own count, `system` and `tools` included.

    `messages` are in `dialect`, ready to send; `system` is what the dialect wants beside them. `cut` is
    {"first_kept": index in the input, or the entry id, "split": whether inside a turn}, `summary` the
    checkpoint's text and `ledger` its facts, None where nothing had to be folded.
    """

    messages: list[Any]
    dialect: str
    view_tokens: int
    receipt: Receipt
    cut: dict[str, Any] | None = None
    summary: str | None = None
    ledger: dict[str, Any] | None = None
    system: Any = None
    warnings: tuple[str, ...] = ()
    boundary: Compacted | Pruned | None = None


def compact(
    messages: Sequence[Any],
    target: int | None = None,
    policy: str | Policy = "foldline",
    *,
    instructions: str | None = None,
    model: str | None = None,
    system: Any = None,
    tools: Any = None,
    window: int | Window | None = None,
    dialect: str | None = None,
    counter: Counter = OFFLINE,
) -> Done:
    """Fit a list of native messages into a budget; no model, key or network is needed, unless one is named.

    `messages` are native messages of any dialect (dicts or SDK objects; of OpenAI's Responses: items), `target`
    the budget in tokens (default: what `policy` leaves usable of `window`, or of the model's). `system` and
    `tools` count but are not changed. `instructions` say what to look at first. A valid list that fits comes
    back unchanged. `model` (`provider:model`) writes the summary where its key is in the environment; else code
    alone does, and the receipt says why. Inside a running event loop it stands still meanwhile: await `acompact`.
    Raises FloorExceeded where the budget cannot be met, DialectError for what is no message.
    """
    rules = policy if isinstance(policy, Policy) else find_policy(policy)
    written = summarizer_for(model, rules, counter=counter, window=window_for(model, window))
    work = acompact(
        messages,
        target,
        rules,
        instructions=instructions,
        model=model,
        system=system,
        tools=tools,
        window=window,
        dialect=dialect,
        counter=counter,
        summarizer=written,
    )
    return run_waiting(closing(work, written)) if isinstance(written, ModelSummarizer) else run_sync(work)


async def acompact(
    messages: Sequence[Any],
    target: int | None = None,
    policy: str | Policy = "foldline",
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
    """Fit a list of native messages into a budget; see `compact`. A `summarizer` given stands for `model`'s."""
    started = time.perf_counter()
    loaded = from_messages(messages, counter, dialect=dialect)
    loaded.system, loaded.tools = system, tools
    rules = policy if isinstance(policy, Policy) else find_policy(policy)
    limits = window_for(model, window)
    ask = Ask(
        policy=rules,
        window=limits,
        reason="target",
        target=budget(target, rules, limits),
        instructions=instructions,
        apart=apart(system, tools, counter),
        now=now(),
        recall=False,
    )
    if model and target is None and window is None and not Catalogue().look_up(model).known:
        loaded.warnings.append(
            f"no limits are known for {model}: {limits.context:,} tokens are assumed; give target= or window="
        )
    valid = not loaded.repaired and not get(loaded.dialect).validate(messages, system)
    fold = ViewState(loaded.entries, counter=counter)
    size = ask.apart_tokens + fold.tokens
    if valid and size <= (ask.target or 0):
        done = unchanged(loaded, fold, ask, started)
        return msgspec.structs.replace(done, messages=list(messages), warnings=tuple(loaded.warnings))
    written = summarizer or summarizer_for(model, rules, counter=counter, window=limits)
    work = fit(loaded, fold, ask, counter=counter, summarizer=written, started=started)
    return await (work if summarizer is not None else closing(work, written))


async def closing(work: Coroutine[Any, Any, Done], summarizer: Summarizer) -> Done:
    """Do some work, then close the connections of a summariser that was made for it."""
    try:
        return await work
    finally:
        if isinstance(summarizer, ModelSummarizer):
            await summarizer.close()


async def fit(
    loaded: Loaded, fold: ViewState, ask: Ask, *, counter: Counter, summarizer: Summarizer, started: float
) -> Done:
    """Fold loaded entries and render what comes out; `started` is `time.perf_counter()` at the beginning."""
    outcome = await execute(plan(fold, ask, counter), summarizer)
    if isinstance(outcome, Nothing) and outcome.why != "fits":
        raise InputError(f"nothing could be folded ({outcome.why}) {outcome.detail}".strip())
    entries: list[Entry] = list(loaded.entries)
    boundary: Compacted | Pruned | None = None
    if not isinstance(outcome, Nothing):
        boundary = chained(outcome, entries[-1].id if entries else None)
        entries.append(boundary)
        fold = ViewState(entries, counter=counter)
    return _done(loaded, boundary, fold, ask, started)


def _done(
    loaded: Loaded, boundary: Compacted | Pruned | None, fold: ViewState, ask: Ask, started: float
) -> Done:
    rendered = get(loaded.dialect).render(native_items(fold.view()), whole=True)
    tokens = ask.apart_tokens + fold.tokens
    receipt = boundary.receipt if boundary is not None else _idle_receipt(fold, ask)
    left_out = dict(receipt.dropped)
    if loaded.orphans:
        left_out["orphans"] = [{"index": index, "call_id": call} for index, call in loaded.orphans]
    cut = None
    if isinstance(boundary, Compacted):
        cut = {"first_kept": loaded.index.get(boundary.first_kept or ""), "split": _split(fold)}
        receipt = msgspec.structs.replace(receipt, first_kept=cut["first_kept"])
    receipt = msgspec.structs.replace(
        receipt,
        dropped=left_out,
        duration_ms=_ms(started),
        tokens_after=tokens,
        messages_after=len(rendered.messages),
    )
    return Done(
        messages=rendered.messages,
        dialect=loaded.dialect,
        view_tokens=tokens,
        receipt=receipt,
        cut=cut,
        summary=boundary.checkpoint.summary if isinstance(boundary, Compacted) else None,
        ledger=boundary.ledger if isinstance(boundary, Compacted) else None,
        system=join_system(loaded.system, rendered.system),
        warnings=(*loaded.warnings, *_repairs(loaded, fold), *rendered.warnings),
        boundary=boundary,
    )


def _repairs(loaded: Loaded, fold: ViewState) -> list[str]:
    """Say what of the input was left out, moved or made so that the list can be sent."""
    blank = [str(loaded.index[entry.id]) for entry in fold.kept if _says_nothing(entry)]
    orphans = [f"{call!r} (message {index})" for index, call in loaded.orphans]
    unanswered = [repr(call) for item in fold.view() if isinstance(item, Made) for call in _answered(item)]
    told = {
        "messages that say nothing, left out": blank,
        "results that answer no call, left out": orphans,
        "calls without a result, answered by one that says so": unanswered,
    }
    order = [loaded.index[entry.id] for entry in loaded.entries if isinstance(entry, Said)]
    moved = loaded.repaired and order != sorted(order)
    return [
        *(f"{what} ({len(which)}): {_some(which)}" for what, which in told.items() if which),
        *(["results that came late, put behind their calls"] if moved else []),
    ]


def _says_nothing(entry: Said) -> bool:
    return all(isinstance(part, Text) and not part.text.strip() for part in entry.message.parts)


def _some(names: Sequence[str], most: int = 5) -> str:
    return ", ".join([*names[:most], *(["…"] if len(names) > most else [])])


def _answered(item: Made) -> list[str]:
    return [result.call_id for result in item.message.results] if item.kind == "unanswered" else []


def _split(fold: ViewState) -> bool:
    before = fold.kept[: fold.fresh_from]
    return bool(before) and not before[0].message.is_prompt


def unchanged(loaded: Loaded, fold: ViewState, ask: Ask, started: float) -> Done:
    """Return loaded messages that fit as they are."""
    return _done(loaded, None, fold, ask, started)


def _idle_receipt(fold: ViewState, ask: Ask) -> Receipt:
    tokens, count = ask.apart_tokens + fold.tokens, len(fold.view())
    return Receipt(
        reason=ask.reason,
        created_at=ask.now,
        tokens_before=tokens,
        tokens_after=tokens,
        messages_before=count,
        messages_after=count,
        policy=ask.policy.name,
    )


def _ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def now() -> str:
    """Return the time as receipts write it: ISO 8601, UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def window_for(model: str | None, window: int | Window | None, catalogue: Catalogue | None = None) -> Window:
    """Return the limits to work with: those given, or the model's in the catalogue; raises InputError."""
    if isinstance(window, Window):
        return window
    if window is not None:
        check_tokens("window", window)
    known = (catalogue or Catalogue()).window_of(model) if model else Window(context=200_000)
    return msgspec.structs.replace(known, context=window, input=None) if window else known


def budget(target: int | None, policy: Policy, window: Window) -> int:
    """Return the budget in tokens: the target, or what the policy leaves usable of the window."""
    if target is not None:
        check_tokens("target", target)
    return target if target is not None else usable_of(policy, window)


def check_tokens(name: str, value: object) -> None:
    """Raise InputError unless a value is a number of tokens that something fits into."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name} = {value!r}: give a whole number of tokens, such as {name}=32_000")
    if value <= 0:
        raise InputError(f"a {name} of {value} tokens holds nothing: give a positive number")


def apart(system: Any, tools: Any, counter: Counter) -> Floor:
    """Return the tokens of a system prompt (text or blocks) and tool definitions given apart."""
    text = (
        system if isinstance(system, str) else "" if system is None else msgspec.json.encode(system).decode()
    )
    return Floor(
        system=text_tokens(text, counter) if text else 0, tools=tools_tokens(tools, counter) if tools else 0
    )


def as_dict(done: Done) -> Mapping[str, Any]:
    """Return a folded list as `foldline compact --json` prints it."""
    return {
        "messages": done.messages,
        "dialect": done.dialect,
        "view_tokens": done.view_tokens,
        "cut": done.cut,
        "summary": done.summary,
        "ledger": done.ledger,
        "receipt": receipt_dict(done.receipt),
        **({} if done.system is None else {"system": done.system}),
    }


def receipt_dict(receipt: Receipt) -> dict[str, Any]:
    """Return a receipt with every key present, as JSON writes it."""
    return {name: msgspec.to_builtins(getattr(receipt, name)) for name in receipt.__struct_fields__}

"""Fold a loaded list of messages once, without a store."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec

from foldline.catalogue import ModelInfo
from foldline.core.carried.instructions import on_compacting
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.plan import plan
from foldline.core.cut.edits import summary_of
from foldline.core.decide.ask import FoldRange, FoldRequest, Nothing
from foldline.core.decide.policy import Policy, usable_of
from foldline.core.decide.presets import resolve
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.codec import encode_utf8
from foldline.core.log.entries import Compacted, Pruned, Receipt, Said
from foldline.core.log.log import chained
from foldline.core.log.messages import Text
from foldline.core.measure.tokens import OFFLINE, Counter, text_tokens, tools_tokens
from foldline.core.measure.window import Floor
from foldline.core.view import ViewState
from foldline.core.view_items import AddedItem, native_items
from foldline.dialects import get
from foldline.dialects.base import join_system, read_system
from foldline.dialects.cache_marks import within_marks
from foldline.dialects.edits import Rendering
from foldline.dialects.in_turn import applies_template, in_turn
from foldline.errors import InputError
from foldline.executor import execute, run_sync
from foldline.images import scaled
from foldline.loading import Loaded
from foldline.summarizers.base import Summarizer
from foldline.summarizers.model import ModelSummarizer
from foldline.summarizers.offline import OfflineSummarizer
from foldline.waiting import run_waiting

SLIM_SHARE: Final = 5  # `slim` folds to a fifth of the budget


class FoldOptions(msgspec.Struct, frozen=True):
    """How to fold: the policy, the model, and the target in tokens.

    `target` None: the usable part of the model's window under the policy. `dialect` is the output dialect
    (None: the input's). `overhead` is the tokens of the system prompt and tools (None: those of the loaded
    ones). `number` counts the session's compactions from 1; `recall`: folded messages can be recalled; `now`
    is ISO 8601 UTC (None: the clock's). `chosen` is a range to fold, whatever its size.
    """

    policy: Policy
    model: ModelInfo
    target: int | None = None
    instructions: str | None = None
    dialect: str | None = None
    counter: Counter = OFFLINE
    overhead: Floor | None = None
    number: int = 1
    recall: bool = False
    now: str | None = None
    chosen: FoldRange | None = None

    @property
    def resolved_policy(self) -> Policy:
        """The policy with its `per_model` and `limits` applied for the model."""
        return resolve(self.policy, self.model.name, self.model.window)

    @property
    def budget(self) -> int:
        """The tokens that the view may take."""
        return usable_of(self.resolved_policy, self.model.window) if self.target is None else self.target

    def slim(self) -> FoldOptions:
        """Return options that, without a target, leave an agent room for a long continuation."""
        return msgspec.structs.replace(self, target=self.target or self.budget // SLIM_SHARE)


class Done(msgspec.Struct):
    """A folded list. Token figures are Foldline's own count, `system` and `tools` included.

    `messages` are in `dialect`, ready to send; `system` is the system prompt where the dialect takes it
    separately. `cut` is {"first_kept": index in the input, or the entry id, "split": whether inside a turn},
    `summary` the checkpoint's text and `ledger` its facts; all None if nothing was folded.
    """

    messages: list[Any]
    dialect: str
    view_tokens: int
    receipt: Receipt
    cut: dict[str, Any] | None = None
    summary: str | None = None
    ledger: Ledger | None = None
    system: Any = None
    warnings: tuple[str, ...] = ()
    boundary: Compacted | Pruned | None = None


async def fold_once(loaded: Loaded, options: FoldOptions, summarizer: Summarizer | None = None) -> Done:
    """Fold loaded messages into the budget of the options; valid messages that fit are returned unchanged.

    Without a `summarizer` code alone writes the checkpoint. Raises FloorExceeded if the budget cannot be met,
    InputError if nothing can be folded.
    """
    started = time.perf_counter()
    counter = options.counter
    loaded = msgspec.structs.replace(
        loaded,
        dialect=options.dialect or loaded.dialect,
        system_dialect=loaded.system_dialect or loaded.dialect,
    )
    request = _fold_request(loaded, options)
    view = ViewState(loaded.entries, counter=counter)
    if options.target is None and options.model.warning:
        loaded.warnings = [*loaded.warnings, options.model.warning]
    result = _unchanged(loaded, view, request)
    if result is None:
        steps = plan(CompactionInput(view, request, counter, scale=scaled))
        try:
            outcome = await execute(steps, summarizer or OfflineSummarizer(counter))
        except InputError as error:
            if (text := _with_indices(str(error), loaded)) == str(error):
                raise
            raise InputError(text) from None
        if isinstance(outcome, Nothing):
            if outcome.why != "fits":
                raise InputError(f"nothing could be folded ({outcome.why}) {outcome.detail}".strip())
            result = _result(loaded, None, view, request)
        else:
            boundary = chained(outcome, loaded.entries[-1].id if loaded.entries else None)
            view = ViewState([*loaded.entries, boundary], counter=counter)
            result = _result(loaded, boundary, view, request)
    if applies_template(options.model.name):
        result.messages = in_turn(result.messages, result.dialect)
    result.messages = within_marks(result.messages, result.system, loaded.tools)
    elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
    result.receipt = msgspec.structs.replace(result.receipt, duration_ms=elapsed_ms)
    return result


def fold_now(loaded: Loaded, options: FoldOptions, summarizer: Summarizer | None = None) -> Done:
    """Fold once from synchronous code; see `fold_once`. Closes a model's connections at the end."""
    if summarizer is None or isinstance(summarizer, OfflineSummarizer):
        return run_sync(fold_once(loaded, options, summarizer))
    return run_waiting(fold_and_close(loaded, options, summarizer))


async def fold_and_close(loaded: Loaded, options: FoldOptions, summarizer: Summarizer) -> Done:
    """Fold once, then close the connections of a summariser that calls a model."""
    try:
        return await fold_once(loaded, options, summarizer)
    finally:
        if isinstance(summarizer, ModelSummarizer):
            await summarizer.close()


def _fold_request(loaded: Loaded, options: FoldOptions) -> FoldRequest:
    overhead = options.overhead
    if overhead is None:
        overhead = overhead_of(loaded.system, loaded.tools, options.counter)
    return FoldRequest(
        policy=options.resolved_policy,
        window=options.model.window,
        reason="target" if options.chosen is None else "manual",
        target=options.budget if options.chosen is None else None,
        chosen=options.chosen,
        instructions=options.instructions,
        overhead=overhead,
        now=now() if options.now is None else options.now,
        number=options.number,
        recall=options.recall,
        project=on_compacting(text_of(loaded.system)),
    )


def _unchanged(loaded: Loaded, view: ViewState, request: FoldRequest) -> Done | None:
    """Return the loaded messages unchanged if they fit and are valid; otherwise None."""
    fits = request.overhead_tokens + view.tokens <= request.usable
    if loaded.repaired or request.chosen is not None or not fits:
        return None
    if loaded.given is not None:
        if get(loaded.dialect).validate(loaded.given, loaded.system):
            return None
        result = _result(loaded, None, view, request)
        return msgspec.structs.replace(result, messages=list(loaded.given), warnings=tuple(loaded.warnings))
    result = _result(loaded, None, view, request)
    return None if get(result.dialect).validate(result.messages, result.system) else result


def _result(
    loaded: Loaded, boundary: Compacted | Pruned | None, view: ViewState, request: FoldRequest
) -> Done:
    system_message = _system_to_render(loaded)
    rendered = get(loaded.dialect).render([*system_message, *native_items(view.view())], whole=True)
    system = rendered.system
    if not system_message:
        system = join_system(loaded.system, system, loaded.dialect)
    tokens = request.overhead_tokens + view.tokens
    receipt = boundary.receipt if boundary is not None else _idle_receipt(view, request)
    left_out = dict(receipt.dropped)
    if loaded.orphans:
        left_out["orphans"] = [{"index": index, "call_id": call} for index, call in loaded.orphans]
    cut = None
    if isinstance(boundary, Compacted):
        before = view.kept[: view.fresh_from]
        split = bool(before) and not before[0].message.is_prompt  # the cut is inside a turn
        cut = {"first_kept": loaded.index.get(boundary.first_kept or ""), "split": split}
        receipt = msgspec.structs.replace(receipt, first_kept=cut["first_kept"])
    receipt = msgspec.structs.replace(
        receipt,
        dropped=left_out,
        tokens_after=tokens,
        messages_after=len(rendered.messages),
        notes=tuple(_with_indices(note, loaded) for note in receipt.notes),
    )
    return Done(
        messages=rendered.messages,
        dialect=loaded.dialect,
        view_tokens=tokens,
        receipt=receipt,
        cut=cut,
        summary=(summary_of(boundary) or None) if boundary is not None else None,
        ledger=msgspec.convert(boundary.ledger, Ledger) if isinstance(boundary, Compacted) else None,
        system=system,
        warnings=(*loaded.warnings, *repairs(loaded, view), *rendered.warnings),
        boundary=boundary,
    )


def _with_indices(text: str, loaded: Loaded) -> str:
    """Replace the ids of entries in a text by the indices of their messages in the input."""
    for entry, index in loaded.index.items():
        if entry in text:
            for reference in (f"entry {entry!r}", f"entry {entry}", entry):
                text = text.replace(reference, f"message {index}")
    return text


def _system_to_render(loaded: Loaded) -> Rendering:
    """Return the separate system prompt as a first message to render if its dialect changes."""
    if not loaded.system or loaded.system_dialect == loaded.dialect:
        return []
    message = read_system(loaded.system, loaded.system_dialect)
    return [] if message is None else [(message, ())]


def _idle_receipt(view: ViewState, request: FoldRequest) -> Receipt:
    tokens, count = request.overhead_tokens + view.tokens, len(view.view())
    return Receipt(
        reason=request.reason,
        created_at=request.now,
        tokens_before=tokens,
        tokens_after=tokens,
        messages_before=count,
        messages_after=count,
        policy=request.policy.name,
    )


def repairs(loaded: Loaded, view: ViewState) -> list[str]:
    """Describe the messages that were left out, moved or added to make the list valid."""
    blank = [str(loaded.index[entry.id]) for entry in view.kept if _is_blank(entry)]
    orphans = [f"{call!r} (message {index})" for index, call in loaded.orphans]
    unanswered = [
        repr(result.call_id)
        for item in view.view()
        if isinstance(item, AddedItem) and item.kind == "unanswered"
        for result in item.message.results
    ]
    repaired = {
        "blank messages, left out": blank,
        "results without a call, left out": orphans,
        "calls without a result, answered by a note": unanswered,
    }
    indices = [loaded.index[entry.id] for entry in loaded.entries if isinstance(entry, Said)]
    moved = loaded.repaired and indices != sorted(indices)
    return [
        *(f"{repair} ({len(names)}): {_shortened(names)}" for repair, names in repaired.items() if names),
        *(["late results, moved behind their calls"] if moved else []),
    ]


def _is_blank(entry: Said) -> bool:
    return all(isinstance(part, Text) and not part.text.strip() for part in entry.message.parts)


def _shortened(names: Sequence[str], most: int = 5) -> str:
    return ", ".join([*names[:most], *(["…"] if len(names) > most else [])])


def now() -> str:
    """Return the current time for a receipt: ISO 8601, UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def overhead_of(system: Any, tools: Any, counter: Counter) -> Floor:
    """Count the tokens of a separate system prompt (text or blocks) and of tool definitions."""
    text = system if isinstance(system, str) else "" if system is None else encode_utf8(system).decode()
    return Floor(
        system=text_tokens(text, counter) if text else 0, tools=tools_tokens(tools, counter) if tools else 0
    )


def text_of(system: Any) -> str:
    """Return the text of a system prompt, which may be a text, blocks or messages."""
    if isinstance(system, str):
        return system
    if isinstance(system, list | tuple):
        return "\n\n".join(map(text_of, cast("Sequence[Any]", system)))
    if isinstance(system, Mapping):
        fields = cast("Mapping[str, Any]", system)
        return text_of(next((fields[name] for name in ("text", "content", "parts") if name in fields), ""))
    return ""


def as_dict(result: Done) -> Mapping[str, Any]:
    """Return a folded list in the form that `foldline compact --json` prints; its receipt has every key."""
    receipt = {name: msgspec.to_builtins(getattr(result.receipt, name)) for name in Receipt.__struct_fields__}
    return {
        "messages": result.messages,
        "dialect": result.dialect,
        "view_tokens": result.view_tokens,
        "cut": result.cut,
        "summary": result.summary,
        "ledger": msgspec.to_builtins(result.ledger),
        "receipt": {**receipt, "constraints": receipt["constraints"] or {}},
        **({} if result.system is None else {"system": result.system}),
    }

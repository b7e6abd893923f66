"""The documented rules of a list of Responses items, one name each; see docs/dialects.md.

Here each item is checked against those before it; by itself it is checked by its form (`form.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from foldline.core.log.opaque import names_call
from foldline.dialects.responses.items import (
    CALLS,
    KINDS,
    OUTPUTS,
    Item,
    answered_id,
    is_call,
    is_output,
    kind_of,
)
from foldline.dialects.values import Problem


class _ItemCheck:
    """One pass over a list; `open` maps the calls that wait for their output to (place, type)."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.index = -1
        self.open: dict[str, tuple[int, str]] = {}
        self.seen: dict[str, str] = {}  # every call id so far -> the type of its call
        self.answered: set[str] = set()
        self.ids: set[str] = set()
        self.programs: set[str] = set()
        self.references = False  # a program may be given as a reference
        # references without an output, and whether it is sure that they are calls
        self.stored: list[tuple[int, str, bool]] = []
        self.reasoning: int | None = None  # the index of reasoning whose next item is not seen yet

    def say(self, rule: str, text: str, index: int | None = None) -> None:
        self.problems.append(Problem(self.index if index is None else index, rule, text))


def check(problems: list[Problem], bodies: Sequence[tuple[int, Item]], last: int) -> None:
    """Add every rule that items, each with its index, break; `last` is that of the end of the list."""
    found = _ItemCheck(problems)
    for found.index, item in bodies:
        if kind_of(item) in KINDS:
            _place(found, item, last=found.index == last)
    _led_to(found, None)
    _close(found)


def _place(check: _ItemCheck, item: Item, *, last: bool) -> None:
    """Check an item against those before it."""
    kind = str(kind_of(item))
    _led_to(check, item)
    _ids(check, kind, item)
    if kind == "item_reference":
        _refer(check, str(item.get("id")))
    elif kind == "message" and item.get("role") == "user":
        _close(check)
    elif kind == "compaction_trigger" and not last:
        check.say("trigger-last", "a compaction_trigger must be the last item")
    elif is_call(item):
        _asks(check, kind, item)
    elif is_output(item):
        _answers(check, kind, item)
    else:
        _program(check, kind, item)


def _led_to(check: _ItemCheck, item: Item | None) -> None:
    """Check that reasoning comes right before what the model thought, said or called next."""
    kind = kind_of(item) if item is not None else None
    if check.reasoning is not None and not _is_models(kind, item):
        check.say("reasoning-last", "no item of the model follows this reasoning", check.reasoning)
    check.reasoning = check.index if kind == "reasoning" else None


def _is_models(kind: str | None, item: Item | None) -> bool:
    if kind is None or item is None or is_output(item):
        return False
    if kind == "message":
        return item.get("role") == "assistant"
    return kind not in {
        "additional_tools",
        "configuration_update",
        "compaction_trigger",
        "function_call_output",
    }


def _ids(check: _ItemCheck, kind: str, item: Item) -> None:
    item_id = item.get("id")
    if not isinstance(item_id, str) or kind in {"item_reference", "local_shell_call_output"}:
        return
    if item_id in check.ids:
        check.say("item-duplicate", f"two items have the id {item_id!r}")
    check.ids.add(item_id)


def _refer(check: _ItemCheck, item_id: str) -> None:
    check.references = True
    call = names_call(item_id)
    if call is not False:
        check.stored.append((check.index, item_id, bool(call)))


def _asks(check: _ItemCheck, kind: str, item: Item) -> None:
    call_id = item.get(CALLS[kind].id)
    if not isinstance(call_id, str) or not call_id:
        return
    if call_id in check.seen:
        check.say("call-duplicate", f"two calls have the id {call_id!r}")
        return
    check.seen[call_id] = kind
    check.open[call_id] = (check.index, kind)


def _answers(check: _ItemCheck, kind: str, item: Item) -> None:
    call_id = answered_id(item)
    if not isinstance(call_id, str) or not call_id:
        return
    if call_id in check.open:
        _, call = check.open.pop(call_id)
        if OUTPUTS[kind] != call:
            check.say("result-kind", f"a {call} is answered by a {CALLS[call].output}, not by a {kind}")
        check.answered.add(call_id)
    elif call_id in check.answered:
        check.say("result-duplicate", f"call {call_id!r} already has an output")
    elif check.stored:  # a referenced item may be the call that an output answers
        check.stored.remove(next((one for one in check.stored if one[2]), check.stored[0]))
        check.answered.add(call_id)
    else:
        check.say("result-orphan", f"no call {call_id!r} waits for an output here")


def _program(check: _ItemCheck, kind: str, item: Item) -> None:
    if kind == "program":
        check.programs.add(str(item.get("call_id")))
    elif kind == "program_output" and str(item.get("call_id")) not in check.programs and not check.references:
        check.say("program-orphan", f"no program {item.get('call_id')!r} before its output")


def _close(check: _ItemCheck) -> None:
    """Report calls that have no output before the next user message, or none at all."""
    for call_id, (index, _) in check.open.items():
        check.say("result-missing", f"no output for call {call_id!r} before the next user message", index)
    for index, item_id, surely in check.stored:
        if surely:
            check.say("result-missing", f"no output for the call that {item_id!r} refers to", index)
    check.open, check.stored = {}, []

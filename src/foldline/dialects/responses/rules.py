"""The documented rules of lists of Responses items; see docs/dialects.md.

Items are checked against earlier ones; `form.py` checks single items.
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
    is_models,
    is_output,
    kind_of,
    own_id,
)
from foldline.dialects.values import Problem


class _ListCheck:
    """One pass over a list of items."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._index = -1
        self._open: dict[str, tuple[int, str]] = {}  # calls without an output -> (index, type)
        self._calls: set[str] = set()
        self._answered: set[str] = set()
        self._ids: set[str] = set()
        self._programs: set[str] = set()
        self._has_references = False  # a program may be a reference
        self._stored: list[tuple[int, str, bool]] = []  # references without an output; True: certainly a call
        self._reasoning: int | None = None  # index of reasoning right before the next item

    def item(self, index: int, item: Item, *, last: bool) -> None:
        """Check an item against those before it."""
        self._index = index
        kind = str(kind_of(item))
        self._check_after_reasoning(item)
        self._check_id(item)
        if kind == "item_reference":
            self._check_reference(str(item.get("id")))
        elif kind == "message" and item.get("role") == "user":
            self._report_missing()
        elif kind == "compaction_trigger" and not last:
            self._report("trigger-last", "a compaction_trigger must be the last item")
        elif is_call(item):
            self._check_call(kind, item)
        elif is_output(item):
            self._check_output(kind, item)
        elif kind == "program":
            self._programs.add(str(item.get("call_id")))
        elif kind == "program_output":
            known = str(item.get("call_id")) in self._programs
            if not known and not self._has_references:
                self._report("program-orphan", f"no program {item.get('call_id')!r} before its output")

    def finish(self) -> None:
        """Check the end of the list."""
        self._check_after_reasoning(None)
        self._report_missing()

    def _report(self, rule: str, text: str, index: int | None = None) -> None:
        self._problems.append(Problem(self._index if index is None else index, rule, text))

    def _check_after_reasoning(self, item: Item | None) -> None:
        """Check that an item of the model follows reasoning."""
        if self._reasoning is not None and (item is None or not is_models(item)):
            self._report("reasoning-last", "no item of the model follows this reasoning", self._reasoning)
        self._reasoning = self._index if item is not None and kind_of(item) == "reasoning" else None

    def _check_id(self, item: Item) -> None:
        if (item_id := own_id(item)) is None:
            return
        if item_id in self._ids:
            self._report("item-duplicate", f"two items have the id {item_id!r}")
        self._ids.add(item_id)

    def _check_reference(self, item_id: str) -> None:
        self._has_references = True
        call = names_call(item_id)
        if call is not False:
            self._stored.append((self._index, item_id, bool(call)))

    def _check_call(self, kind: str, item: Item) -> None:
        call_id = item.get(CALLS[kind].id)
        if not isinstance(call_id, str) or not call_id:
            return
        if call_id in self._calls:
            self._report("call-duplicate", f"two calls have the id {call_id!r}")
            return
        self._calls.add(call_id)
        self._open[call_id] = (self._index, kind)

    def _check_output(self, kind: str, item: Item) -> None:
        call_id = answered_id(item)
        if not isinstance(call_id, str) or not call_id:
            return
        if call_id in self._open:
            _, call = self._open.pop(call_id)
            if OUTPUTS[kind] != call:
                text = f"the output of a {call} must be a {CALLS[call].output}, not a {kind}"
                self._report("result-kind", text)
            self._answered.add(call_id)
        elif call_id in self._answered:
            self._report("result-duplicate", f"call {call_id!r} already has an output")
        elif self._stored:  # a reference may be the call of this output
            self._stored.remove(next((stored for stored in self._stored if stored[2]), self._stored[0]))
            self._answered.add(call_id)
        else:
            self._report("result-orphan", f"no open call {call_id!r} before this output")

    def _report_missing(self) -> None:
        """Report calls without an output before the next user message or the end."""
        for call_id, (index, _) in self._open.items():
            text = f"no output for call {call_id!r} before the next user message"
            self._report("result-missing", text, index)
        for index, item_id, is_certain in self._stored:
            if is_certain:
                self._report("result-missing", f"no output for the call that {item_id!r} refers to", index)
        self._open, self._stored = {}, []


def check(problems: list[Problem], bodies: Sequence[tuple[int, Item]], last: int) -> None:
    """Add a problem for each rule that items (with their indexes) break; `last`: last index of the list."""
    list_check = _ListCheck(problems)
    for index, item in bodies:
        if kind_of(item) in KINDS:
            list_check.item(index, item, last=index == last)
    list_check.finish()

"""Drop what the API refuses in a complete request, though each item in it is as received."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from foldline.dialects.responses.items import Item, kind_of, role_of
from foldline.dialects.values import Losses


def drop_refused(items: Sequence[Item], losses: Losses) -> list[Item]:
    """Return the items without those that the API refuses in a request; `losses` counts each kind.

    Dropped are reasoning that nothing follows, outputs of folded programs, items given twice, and a
    compaction trigger that is not the last item.
    """
    kept: list[Item] = []
    programs: set[str] = set()
    seen: set[str] = set()
    for number, item in enumerate(items):
        kind = kind_of(item)
        if kind == "compaction_trigger" and number < len(items) - 1:
            losses.add("compaction triggers left out")
        elif kind == "program_output" and item.get("call_id") not in programs:
            losses.add("outputs of folded programs left out")
        elif (one := _once(item, seen, losses)) is not None:
            if kind == "program":
                programs.add(str(item.get("call_id")))
            kept.append(_called(one, programs, losses))
    return _followed(kept, losses)


def _once(item: Item, seen: set[str], losses: Losses) -> Item | None:
    """Return a repeated item without its id; None if it is worth nothing without one."""
    item_id = item.get("id")
    if not isinstance(item_id, str) or kind_of(item) in {"item_reference", "local_shell_call_output"}:
        return item
    if item_id not in seen:
        seen.add(item_id)
        return item
    losses.add("repeated item ids left out")
    if kind_of(item) in {"message", "function_call", "custom_tool_call"} or role_of(item) == "tool":
        return {key: value for key, value in item.items() if key != "id"}
    return None


def _called(item: Item, programs: set[str], losses: Losses) -> Item:
    """Return an item without its caller, if that is a folded program."""
    value = item.get("caller")
    caller = cast("Item", value) if isinstance(value, dict) else {}
    if caller.get("type") != "program" or caller.get("caller_id") in programs:
        return item
    losses.add("callers that are folded left out")
    return {key: value for key, value in item.items() if key != "caller"}


def _followed(items: Sequence[Item], losses: Losses) -> list[Item]:
    """Return the items without reasoning that nothing follows."""
    kept: list[Item] = []
    follows = False
    for item in reversed(items):
        if kind_of(item) == "reasoning" and not follows:
            losses.add("reasoning that nothing follows left out")
            continue
        follows = role_of(item) == "assistant"
        kept.append(item)
    return kept[::-1]

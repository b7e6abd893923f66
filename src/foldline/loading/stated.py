"""Facts that another agent's file states beside a summary, in lists of its own.

GenCode: `keyDecisions`, `filesModified`, `toolsUsed`. klaude-code: `details` with `read_files` and
`modified_files`. pi: `details` with `readFiles` and `modifiedFiles`.
"""

from __future__ import annotations

from typing import Any, cast

from foldline.core.ledger.facts.kinds import FileFact, Item, Ledger, ToolFact
from foldline.core.ledger.table import merge
from foldline.core.secrets.derived import redact_facts

_READ, _MODIFIED = ("read_files", "readFiles"), ("modified_files", "modifiedFiles")
_NOTABLE = 3  # uses of a tool that a ledger keeps


def with_stated(ledger: Ledger, told: dict[str, Any]) -> Ledger:
    """Return a ledger with the facts that a file states and its messages do not show; no entry is cited."""
    files = {fact.path for fact in ledger.files}
    tools = {fact.name for fact in ledger.tools}
    items = {item.text for item in ledger.items}
    stated = Ledger(
        files=tuple(fact for fact in _files(told) if fact.path not in files),
        tools=tuple(fact for fact in _tools(told) if fact.name not in tools),
        items=tuple(item for item in _decisions(told) if item.text not in items),
    )
    return ledger if stated == Ledger() else merge(redact_facts(stated), ledger)


def _files(told: dict[str, Any]) -> list[FileFact]:
    details = told.get("details")
    lists = cast("dict[str, Any]", details) if isinstance(details, dict) else {}
    read = [path for key in _READ for path in _texts(lists.get(key))]
    changed = [path for key in _MODIFIED for path in _texts(lists.get(key))]
    found = dict.fromkeys(read, "read")
    found |= dict.fromkeys([*changed, *_texts(told.get("filesModified"))], "modified")
    return [FileFact(path, status) for path, status in found.items()]


def _decisions(told: dict[str, Any]) -> list[Item]:
    return [Item("summary", f"Decided: {text}") for text in _texts(told.get("keyDecisions"))]


def _tools(told: dict[str, Any]) -> list[ToolFact]:
    found: list[ToolFact] = []
    listed = told.get("toolsUsed")
    for one in cast("list[Any]", listed) if isinstance(listed, list) else []:
        use = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        name, count = use.get("tool"), use.get("count")
        if isinstance(name, str) and name:
            uses = count if isinstance(count, int) and count > 0 else 1
            found.append(ToolFact(name, uses, tuple(_texts(use.get("notableUses"))[:_NOTABLE])))
    return found


def _texts(value: Any) -> list[str]:
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return list(dict.fromkeys(text.strip() for text in listed if isinstance(text, str) and text.strip()))


def absent_messages(told: dict[str, Any]) -> int:
    """Return how many folded messages are in no file any more, as a reader noted it."""
    count = told.get("messages_absent")
    return count if isinstance(count, int) and count > 0 else 0

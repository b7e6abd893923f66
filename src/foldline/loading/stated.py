"""Facts that another agent's file states beside a summary, in lists of its own.

GenCode: `keyDecisions`, `filesModified`, `toolsUsed`. klaude-code: `details` with `read_files` and
`modified_files`. pi: `details` with `readFiles` and `modifiedFiles`.
"""

from __future__ import annotations

from typing import Any

from foldline.core.ledger.facts.kinds import FileFact, Item, Ledger, ToolFact
from foldline.core.ledger.table import merge
from foldline.core.secrets.derived import redact_facts
from foldline.dialects.payload import items_of
from foldline.transcripts.lines import Row, text_or

_READ, _MODIFIED = ("read_files", "readFiles"), ("modified_files", "modifiedFiles")
_NOTABLE = 3  # uses of a tool that a ledger keeps


def with_stated(ledger: Ledger, told: dict[str, Any]) -> Ledger:
    """Return a ledger with the facts that a file states and its messages do not show; no entry is cited."""
    said = Row(told)
    files = {fact.path for fact in ledger.files}
    tools = {fact.name for fact in ledger.tools}
    known = {item.text for item in ledger.items}
    decided = [Item("summary", f"Decided: {text}") for text in _texts(said, "keyDecisions")]
    stated = Ledger(
        files=tuple(fact for fact in _files(said) if fact.path not in files),
        tools=tuple(fact for fact in _tools(said) if fact.name not in tools),
        items=tuple(item for item in decided if item.text not in known),
    )
    return ledger if stated == Ledger() else merge(redact_facts(stated), ledger)


def _files(said: Row) -> list[FileFact]:
    details = said.inner("details")
    found = dict.fromkeys(_texts(details, *_READ), "read")
    found |= dict.fromkeys([*_texts(details, *_MODIFIED), *_texts(said, "filesModified")], "modified")
    return [FileFact(path, status) for path, status in found.items()]


def _tools(said: Row) -> list[ToolFact]:
    return [
        ToolFact(use["tool"], use.count("count") or 1, tuple(_texts(use, "notableUses")[:_NOTABLE]))
        for use in said.rows("toolsUsed")
        if use.text("tool")
    ]


def _texts(said: Row, *keys: str) -> list[str]:
    texts = [text_or(one).strip() for key in keys for one in items_of(said.get(key))]
    return list(dict.fromkeys(text for text in texts if text))


def absent_messages(told: dict[str, Any]) -> int:
    """Return how many folded messages are in no file any more, as a reader noted it."""
    return Row(told).count("messages_absent") or 0

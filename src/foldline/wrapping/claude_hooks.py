"""Answers to the hooks of Claude Code's plugin: a compaction by Foldline, and the user's rules after another.

Claude Code sends the rows of a transcript: text, calls and results, without thinking and images. The answer
refers to rows that the view keeps whole by index, so that Claude Code keeps its own messages; the checkpoint
and shortened messages are new rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec

from foldline.compaction import choose_summarizer
from foldline.config import settings
from foldline.core.log.entries import Entry, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.secrets.redact import redact
from foldline.core.view import ViewState
from foldline.core.view_items import Item, MessageItem, native_items
from foldline.dialects import ANTHROPIC, get
from foldline.errors import FloorExceeded, InputError
from foldline.folding import Done, FoldOptions, fold_now
from foldline.loading import Loaded, from_messages, from_stream
from foldline.session.rules import rules_of
from foldline.transcripts import open_transcript
from foldline.wrapping.statusline import keep, record_of, rules_held

LEAST: Final = 4_000  # tokens: the smallest target of a fold
SHRINK: Final = 3  # a session is folded to a third of its size, or less
ROOM: Final = 8_000  # characters of rules that are added: Claude Code cuts longer contexts
HEAD: Final = "The user's rules in this session, word for word (by Foldline). They still hold:"


class _Call(msgspec.Struct):
    id: str = msgspec.field(name="tool_use_id")
    tool: str
    input: dict[str, Any] = {}


class _Result(msgspec.Struct):
    call: str = msgspec.field(name="tool_use_id")
    text: str | None = ""
    is_error: bool | None = msgspec.field(name="isError", default=False)


class _Row(msgspec.Struct):
    """A message of a transcript as Claude Code sends it to a hook."""

    role: Literal["user", "assistant"]
    text: str | None = ""
    calls: list[_Call] | None = msgspec.field(name="toolUses", default=None)
    results: list[_Result] | None = msgspec.field(name="toolResults", default=None)

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The row's content as Anthropic's blocks; none if it has only thinking."""
        blocks: list[dict[str, Any]] = []
        for result in self.results or ():
            block = {"type": "tool_result", "tool_use_id": result.call, "content": result.text or ""}
            blocks.append({**block, "is_error": True} if result.is_error else block)
        if self.text and self.text.strip():
            blocks.append({"type": "text", "text": self.text})
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.tool, "input": call.input}
            for call in self.calls or ()
        ]
        return blocks


class CompactionEvent(msgspec.Struct):
    """A compaction that Claude Code is about to make; `agent` is set for that of a sub-agent."""

    messages: list[_Row]
    trigger: str | None = ""
    instructions: str | None = None
    session: str | None = None
    agent: str | None = None
    model: str | None = None
    window: int | None = None


def fold(event: CompactionEvent) -> dict[str, Any]:
    """Return the rows of the folded session as `messages`, an index for each that is kept, and a line `told`.

    If everything fits already, return `skip` to a user who asked. Raises FoldlineError if nothing can be
    folded.
    """
    places = [place for place, row in enumerate(event.messages) if row.blocks]
    payloads = [{"role": row.role, "content": row.blocks} for row in event.messages if row.blocks]
    loaded = from_messages(payloads, OFFLINE, dialect=ANTHROPIC)
    result = _fold(loaded, event, record_of(event.session).folds + 1)
    if result.boundary is None:
        reason = f"{result.view_tokens:,} tokens fit already"
        if event.trigger == "manual":
            return {"skip": f"Foldline: {reason}"}
        raise InputError(reason)
    entries = [*loaded.entries, result.boundary]
    before, after, rules = result.receipt.tokens_before, result.view_tokens, len(rules_of(entries).standing)
    record = record_of(event.session)  # a hook of a sub-agent may have changed it meanwhile
    record = record._replace(folds=record.folds + 1, saved=record.saved + before - after)
    if event.agent is None:  # the rules of the record are the session's
        record = record._replace(rules=rules, told=True)
    keep(event.session, record)
    told = f"{before:,} tokens -> {after:,}, {rules_held(rules)}"
    return {"messages": _rows(entries, loaded, places), "told": told}


def _fold(loaded: Loaded, event: CompactionEvent, number: int) -> Done:
    """Fold well below the window and the present size, so that the next compaction is far away."""
    current = settings()
    info = current.model_info(None, event.window, recorded=event.model)
    policy = msgspec.structs.replace(current.find_policy(None), enable_pruning=False)  # always a checkpoint
    options = FoldOptions(policy, info, instructions=event.instructions or None, number=number).slim()
    summarizer = choose_summarizer(None, info, options.resolved_policy, current.catalogue())
    size = sum(entry.tokens for entry in loaded.entries if isinstance(entry, Said))
    small = msgspec.structs.replace(options, target=min(options.budget, max(LEAST, size // SHRINK)))
    try:
        return fold_now(loaded, small, summarizer)
    except FloorExceeded:
        return fold_now(loaded, options, summarizer)


def _rows(entries: Sequence[Entry], loaded: Loaded, places: Sequence[int]) -> list[Any]:
    """Return the view: the index of each row that it keeps whole, new rows for the rest."""
    sizes = Counter(loaded.index.values())  # the number of entries of each row
    items = ViewState(entries, counter=OFFLINE).view()
    rows: list[Any] = []
    changed: list[Item] = []
    for index, shown in groupby(items, lambda item: _index(item, loaded)):
        run = list(shown)
        if index >= 0 and len(run) == sizes[index]:
            rows += _new_rows(changed)
            changed = []
            # rows without content are thinking, which belongs to the next row
            rows += range(places[index - 1] + 1 if index else places[index], places[index] + 1)
        else:
            changed += run
    return rows + _new_rows(changed)


def _index(item: Item, loaded: Loaded) -> int:
    """Return the index of the message that an item shows unchanged; -1 for none."""
    return loaded.index.get(item.entry.id, -1) if isinstance(item, MessageItem) and not item.edits else -1


def _new_rows(items: Sequence[Item]) -> list[dict[str, Any]]:
    messages = get(ANTHROPIC).render(native_items(items)).messages if items else []
    return [msgspec.to_builtins(_row(message["role"], message["content"])) for message in messages]


def _row(role: Literal["user", "assistant"], content: Any) -> _Row:
    """Return an Anthropic message as a row."""
    calls: list[_Call] = []
    results: list[_Result] = []
    for block in () if isinstance(content, str) else content:
        if block["type"] == "tool_use":
            calls.append(_Call(block["id"], block["name"], block["input"]))
        elif block["type"] == "tool_result":
            text = _text(block.get("content") or "")
            results.append(_Result(block["tool_use_id"], text, bool(block.get("is_error"))))
    return _Row(role, _text(content), calls, results)


def _text(content: str | Sequence[dict[str, Any]]) -> str:
    """Return the text of a message's or a result's content."""
    if isinstance(content, str):
        return content
    return "\n\n".join(block["text"] for block in content if block["type"] == "text")


# ---- rules after a compaction of Claude Code's own


def rules_put_back(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the user's rules as context for a session that Claude Code has compacted by itself.

    None for another start of a session, after a checkpoint that has the rules, and without rules. Raises
    FoldlineError and OSError if the transcript cannot be read.
    """
    if event.get("source") != "compact":
        return None
    session = event.get("session_id")
    record = record_of(session)
    if record.told:
        keep(session, record._replace(told=False))
        return None
    path = Path(cast("str", event.get("transcript_path")))
    with open_transcript(path) as stream:
        rules = rules_of(from_stream(stream, str(path)).entries).standing
    keep(session, record._replace(rules=len(rules)))
    if not rules:
        return None
    lines, left = [HEAD], ROOM
    for fact in rules:
        line = f"- {redact(fact.told)}"
        left -= len(line)
        if left < 0:
            lines.append(f"({len(rules)} in all: user_rules of the MCP server foldline lists them)")
            break
        lines.append(line)
    context = {"hookEventName": "SessionStart", "additionalContext": "\n".join(lines)}
    return {"hookSpecificOutput": context}

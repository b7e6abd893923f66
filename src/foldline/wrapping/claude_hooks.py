"""What the hooks of Claude Code's plugin ask for: a compaction by Foldline, and the user's rules put back.

A compaction comes as the rows of a transcript: text, calls and results, without thinking and images. What the
view keeps whole is named by its place among them, so that Claude Code keeps its own messages; the checkpoint,
and what a fold shortened, are rows of ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec

from foldline.compaction import asked_summarizer
from foldline.config import settings
from foldline.core.log.entries import Entry, Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.secrets.redact import redact
from foldline.core.view import Item, MessageItem, ViewState, native_items
from foldline.dialects import ANTHROPIC, get
from foldline.errors import FloorExceeded, InputError
from foldline.folding import Done, FoldOptions, fold_now
from foldline.loading import Loaded, from_messages, from_stream
from foldline.session.rules import rules_of
from foldline.transcripts import open_transcript
from foldline.wrapping.statusline import keep, record_of, rules_held

LEAST: Final = 4_000  # tokens to which a session is folded at least
SHRINK: Final = 3  # to a third of what it is, or less
ROOM: Final = 8_000  # characters of rules that are put back: of more, Claude Code shows a beginning
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
    """A message of a transcript as Claude Code hands it to a hook."""

    role: Literal["user", "assistant"]
    text: str | None = ""
    calls: list[_Call] | None = msgspec.field(name="toolUses", default=None)
    results: list[_Result] | None = msgspec.field(name="toolResults", default=None)

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The row's content in Anthropic's form; none for one that has only thinking."""
        made: list[dict[str, Any]] = []
        for one in self.results or ():
            block = {"type": "tool_result", "tool_use_id": one.call, "content": one.text or ""}
            made.append({**block, "is_error": True} if one.is_error else block)
        if self.text and self.text.strip():
            made.append({"type": "text", "text": self.text})
        made += [
            {"type": "tool_use", "id": one.id, "name": one.tool, "input": one.input}
            for one in self.calls or ()
        ]
        return made


class CompactionEvent(msgspec.Struct):
    """A compaction that Claude Code is about to make: who asked for it, of what. `agent` is a sub-agent."""

    messages: list[_Row]
    trigger: str | None = ""
    instructions: str | None = None
    session: str | None = None
    agent: str | None = None
    model: str | None = None
    window: int | None = None


def fold(event: CompactionEvent) -> dict[str, Any]:
    """Return the rows to go on with, and a line on it: `messages`, a number for each that is kept, `told`.

    Where everything has room already, `skip` for a user who asked. Raises FoldlineError where nothing can be
    folded.
    """
    places = [place for place, row in enumerate(event.messages) if row.blocks]
    payloads = [{"role": row.role, "content": row.blocks} for row in event.messages if row.blocks]
    loaded = from_messages(payloads, OFFLINE, dialect=ANTHROPIC)
    record = record_of(event.session)
    done = _folded(loaded, event, record.folds + 1)
    if done.boundary is None:
        why = f"{done.view_tokens:,} tokens have room already"
        if event.trigger == "manual":
            return {"skip": f"Foldline: {why}"}
        raise InputError(why)
    entries = [*loaded.entries, done.boundary]
    before, after, rules = done.receipt.tokens_before, done.view_tokens, len(rules_of(entries).standing)
    record = record._replace(folds=record.folds + 1, saved=record.saved + before - after)
    if event.agent is None:  # the rules of the record are the session's
        record = record._replace(rules=rules, told=True)
    keep(event.session, record)
    told = f"{before:,} tokens -> {after:,}, {rules_held(rules)}"
    return {"messages": _rows(entries, loaded, places), "told": told}


def _folded(loaded: Loaded, event: CompactionEvent, number: int) -> Done:
    """Fold to what leaves an agent room for long, and well below what there is: somebody wants it smaller."""
    known = settings()
    info = known.model_info(None, event.window, recorded=event.model)
    policy = msgspec.structs.replace(known.find_policy(None), enable_pruning=False)  # a checkpoint, always
    options = FoldOptions(policy, info, instructions=event.instructions or None, number=number).slim()
    summarizer = asked_summarizer(None, info, options.resolved_policy, known.catalogue())
    size = sum(entry.tokens for entry in loaded.entries if isinstance(entry, Said))
    small = msgspec.structs.replace(options, target=min(options.budget, max(LEAST, size // SHRINK)))
    try:
        return fold_now(loaded, small, summarizer)
    except FloorExceeded:
        return fold_now(loaded, options, summarizer)


def _rows(entries: Sequence[Entry], loaded: Loaded, places: Sequence[int]) -> list[Any]:
    """Return the view: the place of a row that it keeps whole, else a row."""
    whole: dict[int, int] = {}  # of how many entries a row consists
    for index in loaded.index.values():
        whole[index] = whole.get(index, 0) + 1
    items = ViewState(entries, counter=OFFLINE).view()
    kept = [_index(item, loaded) for item in items]
    rows: list[Any] = []
    made: list[Item] = []
    at = 0
    while at < len(items):
        index = kept[at]
        count = whole.get(index, 1)
        if index >= 0 and kept[at : at + count] == [index] * count:
            rows += _made(made)
            made = []
            # rows without content are thinking, which belongs to what follows
            rows += range(places[index - 1] + 1 if index else places[index], places[index] + 1)
            at += count
        else:
            made.append(items[at])
            at += 1
    return rows + _made(made)


def _index(item: Item, loaded: Loaded) -> int:
    """Return which message an item is as received; -1 for none."""
    return loaded.index.get(item.entry.id, -1) if isinstance(item, MessageItem) and not item.edits else -1


def _made(items: Sequence[Item]) -> list[dict[str, Any]]:
    messages = get(ANTHROPIC).render(native_items(items)).messages if items else []
    return [_row(message["role"], message["content"]) for message in messages]


def _row(role: str, content: Any) -> dict[str, Any]:
    """Return a message of Anthropic's form as a row."""
    blocks: list[dict[str, Any]] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else content
    )
    row: dict[str, Any] = {"role": role, "text": _text(blocks), "toolUses": [], "toolResults": []}
    for block in blocks:
        if block["type"] == "tool_use":
            call = {"tool_use_id": block["id"], "tool": block["name"], "input": block["input"]}
            row["toolUses"].append(call)
        elif block["type"] == "tool_result":
            text = block.get("content") or ""
            text = text if isinstance(text, str) else _text(text)
            is_error = bool(block.get("is_error"))
            row["toolResults"].append(
                {"tool_use_id": block["tool_use_id"], "text": text, "isError": is_error}
            )
    return row


def _text(blocks: Sequence[dict[str, Any]]) -> str:
    return "\n\n".join(block["text"] for block in blocks if block["type"] == "text")


# ---- rules put back


def rules_put_back(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the user's rules as context for a session that Claude Code has compacted by itself.

    None where there is nothing to say: another beginning, a checkpoint that has them, no rule. Raises
    FoldlineError and OSError where the transcript cannot be read.
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
            lines.append(f"(of {len(rules)}; user_rules of the MCP server foldline lists them all)")
            break
        lines.append(line)
    context = {"hookEventName": "SessionStart", "additionalContext": "\n".join(lines)}
    return {"hookSpecificOutput": context}

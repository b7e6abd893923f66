"""Claude Code's session files: a tree by uuid, replies over several lines, sub-agents and bookkeeping between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from foldline import dialects
from foldline.core.log.messages import Message
from foldline.errors import DialectError
from foldline.transcripts.base import About, Folded, Heard, Record, Warned
from foldline.transcripts.claude_code import messages as written
from foldline.transcripts.claude_code.index import Index, preserved_head
from foldline.transcripts.injected import is_injected
from foldline.transcripts.lines import Row, rows
from foldline.transcripts.source import path_of
from foldline.transcripts.values import count_or_none, items, mapping, moment, text_or

_SESSION = ("sessionId", "cwd", "version", "gitBranch", "agentId")
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}


def read_claude_code(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read the newest path of a Claude Code file; messages are `anthropic` payloads, sub-agents' left out.

    The lines of one reply (same `message.id`) are one message, as are the results of one batch. A
    `Heard.key` is the uuid of the message's first line.
    """
    start = stream.tell()
    index = Index()
    for item in rows(stream):
        if isinstance(item, Row):
            index.add(item)
    index.finish()
    stream.seek(start)
    yield About("format", {"format": "claude-code", "dialect": "anthropic"})
    yield from index.warnings
    teller = _Teller(index, path_of(stream))
    for item in rows(stream):
        if isinstance(item, Warned):
            yield item
        else:
            yield from teller.take(item)
    yield from teller.end()
    if index.branches.get("branches"):
        yield About("branches", index.branches)
    if index.sidechain_messages:
        yield About("sidechains", {"messages": index.sidechain_messages})


class _Teller:
    """Turns lines into records; holds back at most one reply with its results."""

    def __init__(self, index: Index, path: Path | None) -> None:
        self._index = index
        self._path = path
        self._session_told = False
        self._model = ""
        self._reply: list[Row] = []  # lines of a reply, of which more are to come
        self._reply_left = 0
        self._behind: list[Row] = []  # what came between them
        self._calls: set[str] = set()  # of the reply told last
        self._results: list[Row] = []  # answers to it, to be told as one message
        self._boundary: Row | None = None
        self._stands_in: dict[str, str] = {}  # a line's key -> the key of the message that it is a part of
        self._silent: list[int] = []  # lines without a message; each stands for the next one

    def take(self, row: Row) -> Iterator[Record]:
        """Take the next line of the file; yield what is complete by it."""
        if row.number not in self._index.keys:
            yield from _beside(row)
            return
        if not self._session_told and text_or(row.value.get("sessionId")):
            self._session_told = True
            yield About("session", {k: row.value[k] for k in _SESSION if k in row.value}, row.number)
        if row.value.get("type") == "assistant":
            yield from self._take_reply(row)
        elif self._reply and not _closes_reply(row):
            self._behind.append(row)
        else:
            yield from self._end_reply()
            yield from self._tell(row)

    def end(self) -> Iterator[Record]:
        """Yield what was held back."""
        yield from self._end_reply()
        yield from self._end_results()
        yield from self._end_boundary()

    def _take_reply(self, row: Row) -> Iterator[Record]:
        reply = written.message_id(row.value)
        if not self._reply or not reply or written.message_id(self._reply[0].value) != reply:
            yield from self._end_reply()
            self._reply_left = self._index.reply_lines.get(reply, 1)
        self._reply.append(row)
        self._reply_left -= 1
        if self._reply_left <= 0:
            yield from self._end_reply()

    def _end_reply(self) -> Iterator[Record]:
        """Tell the reply held back, then what came between its lines."""
        if not self._reply:
            return
        reply, behind, self._reply, self._behind = self._reply, self._behind, [], []
        yield from self._end_results()
        yield from self._end_boundary()
        values = [row.value for row in reply]
        self._calls = written.call_ids(values)
        model = written.model(values[-1])
        if model and model != self._model:
            self._model = model
            yield About("model", {"model": model}, reply[0].number)
        yield self._heard(
            reply, "assistant", usage=written.usage(values[-1]), model=model, stop=written.stop(values)
        )
        for row in behind:
            yield from self._tell(row)

    def _tell(self, row: Row) -> Iterator[Record]:
        """Tell a line that is no reply."""
        kind = row.value.get("type")
        if kind != "user":
            self._silent.append(row.number)
        if kind == "user":
            yield from self._tell_user(row)
        elif kind == "attachment":
            yield from self._tell_attachment(row)
        elif kind == "system":
            yield from self._tell_system(row)

    def _tell_user(self, row: Row) -> Iterator[Record]:
        answers = written.result_ids(row.value)
        yield from self._stored(row)
        if answers and self._calls.issuperset(answers):
            if self._results and not _only_results(self._results[-1]):
                yield from self._end_results()
            self._results.append(row)
            return
        yield from self._end_results()
        if row.value.get("isCompactSummary") is True:
            yield from self._tell_summary(row)
            return
        yield from self._end_boundary()
        heard = self._heard([row], "user")
        if isinstance(heard, Heard):
            injected = row.value.get("isMeta") is True or is_injected(heard.message.text)
            heard = _injected(heard, not answers and injected and not _has_media(heard.message))
        yield heard

    def _stored(self, row: Row) -> Iterator[About]:
        """Results that the model saw the beginning of: where all of each stands, and where it is found here."""
        for call, file in written.stored_beside(row.value):
            beside = self._path.with_suffix("") / "tool-results" / Path(file).name if self._path else None
            found = next((str(path) for path in (Path(file), beside) if path and path.is_file()), None)
            yield About("stored_beside", {"call": call, "file": file, "found": found}, row.number)

    def _tell_summary(self, row: Row) -> Iterator[Record]:
        """Tell a compaction: its summary, with what the boundary line before it says."""
        boundary, self._boundary = self._boundary, None
        heard = self._heard([row], "user")
        if isinstance(heard, Warned):
            yield heard
            return
        told = boundary.value if boundary else {}
        tokens = count_or_none(mapping(told.get("compactMetadata")).get("preTokens"))
        head = preserved_head(told)
        kept = self._stands_in.get(head, head) if self._index.has(head) else None
        yield Folded(heard.message.text, kept, tokens, at=heard.at, line=row.number)

    def _tell_attachment(self, row: Row) -> Iterator[Record]:
        attachment = mapping(row.value.get("attachment"))
        told = written.attached(attachment)
        if told is None:
            yield About("attachment", attachment, row.number)
            return
        yield from self._end_results()
        content, typed = told
        line = Row(row.number, {**row.value, "message": {"role": "user", "content": content}})
        heard = self._heard([line], "user")
        yield _injected(heard, not typed) if isinstance(heard, Heard) else heard

    def _tell_system(self, row: Row) -> Iterator[Record]:
        subtype = text_or(row.value.get("subtype"), "system")
        if subtype == "compact_boundary":
            yield from self._end_results()
            yield from self._end_boundary()
            self._boundary = row
        elif subtype == "microcompact_boundary":
            yield About(subtype, mapping(row.value.get("microcompactMetadata")), row.number)
        elif text_or(row.value.get("content")):
            yield About(subtype, {"content": row.value["content"]}, row.number)

    def _end_results(self) -> Iterator[Record]:
        if self._results:
            results, self._results = self._results, []
            yield self._heard(results, "user")

    def _end_boundary(self) -> Iterator[Record]:
        """A boundary that no summary followed."""
        if self._boundary:
            boundary, self._boundary = self._boundary, None
            yield About("boundary", mapping(boundary.value.get("compactMetadata")), boundary.number)

    def _heard(self, lines: list[Row], role: str, **known: Any) -> Heard | Warned:
        """Make one message from its lines."""
        first = lines[0]
        try:
            payload = written.merged([row.value for row in lines], role)
            message = dialects.get("anthropic").decode(payload)
        except (DialectError, RecursionError) as error:
            reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
            return Warned(first.number, f"not a message: {reason} (left out)")
        key = self._index.keys[first.number]
        parts = [number for number in self._silent if number < first.number]
        self._silent = [number for number in self._silent if number > first.number]
        parts += [line.number for line in lines[1:]]
        self._stands_in.update((self._index.keys[number], key) for number in parts)
        return Heard(
            msgspec.structs.replace(message, **known),
            at=moment(lines[-1].value.get("timestamp")),
            key=key,
            parent=text_or(first.value.get("parentUuid")) or None,
            line=first.number,
        )


def _closes_reply(row: Row) -> bool:
    """Whether a line cannot stand between the lines of one reply: what the user or a compaction says."""
    kind = row.value.get("type")
    return (kind == "user" and not written.result_ids(row.value)) or row.value.get(
        "subtype"
    ) == "compact_boundary"


def _only_results(row: Row) -> bool:
    blocks = items(mapping(row.value.get("message")).get("content"))
    return all(mapping(block).get("type") == "tool_result" for block in blocks)


def _has_media(message: Message) -> bool:
    """Whether there is more in a message than text: pasted images are the user's own."""
    return any(part.__struct_config__.tag == "media" for part in message.parts)


def _injected(heard: Heard, flag: bool) -> Heard:
    return msgspec.structs.replace(heard, message=msgspec.structs.replace(heard.message, injected=flag))


def _beside(row: Row) -> Iterator[Record]:
    """Lines outside the tree that say something about the session."""
    kind = text_or(row.value.get("type"))
    if kind in _TITLES and text_or(row.value.get(_TITLES[kind])):
        yield About("title", {"title": row.value[_TITLES[kind]]}, row.number)
    elif kind == "queue-operation" and text_or(row.value.get("content")):
        yield About(
            "queued", {k: row.value[k] for k in ("operation", "content") if k in row.value}, row.number
        )

"""Detect the format of a session file from its content: its agent's name, or the shape of its lines."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

from foldline.errors import FormatError
from foldline.transcripts.aider import BEGINS
from foldline.transcripts.forms.lists import form_of
from foldline.transcripts.klaude import is_klaude
from foldline.transcripts.lines import Unreadable, items, mapping, parse, text_or
from foldline.transcripts.markdown_text import Fence, mark, prose
from foldline.transcripts.records import WarningRecord

FORMATS = (
    "json", "jsonl", "foldline", "plain", "pi", "claude-code", "codex", "copilot-cli", "gemini-cli",
    "opencode", "klaude-code", "coop", "gencode", "moldable", "aider", "markdown",
)  # fmt: skip
"""The formats that `read` knows: JSON lists and objects, JSON lines, Foldline's own, and those of agents."""

_MAGIC = {
    b"SQLite format 3\0": "an SQLite database; name it with --store",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\x28\xb5\x2f\xfd": "a zstd archive; unpack it first",
    b"BZh": "a bzip2 archive; unpack it first",
    b"\xfd7zXZ": "an xz archive; unpack it first",
    b"\x7fELF": "a program",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}
_CLAUDE_TYPES = {
    "user", "assistant", "system", "summary", "progress", "attachment", "file-history-snapshot",
    "queue-operation", "ai-title", "custom-title", "last-prompt", "agent-name", "mode", "permission-mode",
    "tag", "pr-link",
}  # fmt: skip
_PLAIN_ROLES = {"system", "user", "assistant", "tool", "summary", "boundary"}
_CODEX = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_COPILOT = re.compile(r"(session|system|user|assistant|tool|hook|permission|subagent|skill)\.[a-z_]+")
_OUR_MARKDOWN = re.compile(rb"# [^\n]*\n\nsession `[^`\n]*`")  # whatever its messages look like
_COOP = {"text", "image", "tool_request", "tool_result", "thinking"}
_AIDER_SAYS = ("> Aider v", "> Tokens: ")
_PASTED = 60_000  # bytes that one pasted message may fill
_METADATA_FIRST = re.compile(rb'\A\{\s*"metadata"\s*:\s*\{')
_CREATED = re.compile(rb'"createdAt"\s*:')
_PARTS = re.compile(rb'"parts"\s*:\s*\[')
_BEFORE_MESSAGES = {
    "gemini-cli": re.compile(rb'"projectHash"\s*:'),
    "opencode": re.compile(rb'\A\{\s*"info"\s*:\s*\{'),
}


def sniff(head: bytes, name: str = "") -> str:
    """Name the format of a session file from its first bytes (unpacked; whole lines if possible).

    Returns one of `FORMATS`. Raises FormatError for an empty file, binary data or anything else.
    """
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            raise FormatError(f"not a session file, but {what}", where=name)
    if not text.strip(b"\0 \t\r\n"):
        raise FormatError("the file is empty" if not text else "the file holds only NUL bytes", where=name)
    if text[:1] == b"[":
        return "json"
    if _OUR_MARKDOWN.match(text):
        return "markdown"
    listing = text.split(b"\n")
    kinds = [] if _spread(listing[0].strip()) else [kind for kind in map(_kind_of_line, listing) if kind]
    if kinds:
        return _decide(kinds, name)
    if document := _kind_of_document(text):
        return document
    if _binary(text):
        raise FormatError("not a session file, but binary data", where=name)
    if chat := _of_text(text):
        return chat
    raise FormatError(
        "not a session file: it does not start with a JSON message, a list or a known transcript line",
        where=name,
        line=1,
    )


def _spread(first: bytes) -> bool:
    """Return whether the first line opens a JSON object of several lines."""
    return first.startswith(b"{") and first.endswith((b"{", b"[", b","))


def _kind_of_document(text: bytes) -> str:
    """Return the format of a multi-line JSON object, from what stands before its messages."""
    before = text.partition(b'"messages"')[0]
    for kind, pattern in _BEFORE_MESSAGES.items():
        if text[:1] == b"{" and pattern.search(before):
            return kind
    named = _of_document(text) if text[:1] == b"{" else ""
    return named or ("json" if text[:1] == b"{" and (b'"messages"' in text or b'"contents"' in text) else "")


def _decide(kinds: list[str], name: str) -> str:
    """Return the format that the first clear line names; an ambiguous line waits for a clearer one."""
    sure = [kind for kind in kinds if kind != "unknown"]
    if not sure:
        raise FormatError(
            "JSON lines without messages: a message needs role and content, or a known transcript's form",
            where=name,
            line=1,
        )
    kind = "plain" if sure[0] == "meta" else next((kind for kind in sure if kind != "header"), "jsonl")
    return "plain" if kind == "meta" else kind


def _kind_of_line(line: bytes) -> str:
    """Return what a line looks like: a format, meta, header, unknown, or "" (not readable)."""
    body = line.strip()
    if not body.startswith(b"{"):
        return ""
    try:
        value, _ = parse(body)
    except Unreadable:
        return ""
    return _kind_of(value)


def _kind_of(value: dict[str, Any]) -> str:
    """Return the format of one JSON object."""
    kind, role = text_or(value.get("type")), text_or(value.get("role"))
    if value.get("format") == "foldline":
        return "foldline"
    if "projectHash" in value and "sessionId" in value:
        return "gemini-cli"
    if isinstance(value.get("messages"), list):
        return "opencode" if isinstance(value.get("info"), dict) else _of_object(value) or "json"
    if isinstance(value.get("contents"), list):
        return "json"
    if isinstance(value.get("meta"), dict) and not role:
        return "meta"
    if kind == "session" and ("cwd" in value or "version" in value or "id" in value):
        return "pi"
    if _codex(value, kind):
        return "codex"
    if _COPILOT.fullmatch(kind) and isinstance(value.get("data"), dict):
        return "copilot-cli"
    if not role and (_claude(value, kind) or _pi(value, kind)):
        return "claude-code" if _claude(value, kind) else "pi"
    if agent := _of_line(value):
        return agent
    if role in _PLAIN_ROLES and "content" not in value and ("text" in value or "calls" in value):
        return "plain"
    if role or form_of(value) is not None:
        return "jsonl"
    return "header" if "system" in value or "tools" in value or "dialect" in value else "unknown"


def _codex(value: dict[str, Any], kind: str) -> bool:
    """Return whether a line is Codex's: wrapped, or the header of an older file, which has no type."""
    if kind in _CODEX and isinstance(value.get("payload"), dict):
        return True
    old = {"id", "timestamp"} <= value.keys() and ("instructions" in value or "git" in value)
    return old and not kind and "role" not in value


def _claude(value: dict[str, Any], kind: str) -> bool:
    """Return whether a line is Claude Code's."""
    return kind in _CLAUDE_TYPES and bool(
        {"uuid", "parentUuid", "sessionId", "leafUuid", "messageId", "snapshot"} & value.keys()
    )


def _pi(value: dict[str, Any], kind: str) -> bool:
    """Return whether a line is pi's, even in a file that lost its header."""
    return (kind == "message" and isinstance(value.get("message"), dict)) or (
        kind == "compaction" and "summary" in value
    )


def _binary(text: bytes) -> bool:
    """Return whether the bytes are not text: NULs, or one control character in fifty."""
    sample = text[:4096]
    strange = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in sample)
    return b"\0" in sample or strange * 50 > len(sample)


# ---- agents that do not name themselves in their files


def _of_line(value: dict[str, Any]) -> str:
    """Name the agent that wrote a JSON line ("": some other)."""
    return "klaude-code" if is_klaude(value) else "coop" if _is_coop(value) else ""


def _of_object(value: dict[str, Any]) -> str:
    """Name the agent that wrote a JSON object with `messages` ("": some other)."""
    if isinstance(value.get("metadata"), dict) and text_or(value["metadata"].get("id")):
        return "gencode"
    first = mapping(next(iter(items(value.get("messages"))), None))
    if isinstance(value.get("compaction"), dict) or ("createdAt" in value and "parts" in first):
        return "moldable"
    return ""


def _of_document(text: bytes) -> str:
    """Name the agent that wrote a multi-line JSON object, from its beginning ("": some other)."""
    before, _, after = text.partition(b'"messages"')
    if _METADATA_FIRST.match(text) and (after or b'"messageCount"' in text):
        return "gencode"
    return "moldable" if after and _CREATED.search(before) and _PARTS.search(text) else ""


def _is_coop(value: dict[str, Any]) -> bool:
    """Return whether a JSON line is one of coop's messages."""
    blocks = [mapping(block) for block in items(value.get("content"))]
    return (
        value.get("role") in ("user", "assistant")
        and isinstance(value.get("id"), str)
        and isinstance(value.get("created"), str)
        and isinstance(value.get("content"), list)
        and all(text_or(block.get("type")) in _COOP for block in blocks)
    )


def _of_text(text: bytes) -> str:
    """Name the format of a plain text chat, from its beginning ("": none).

    Markdown needs a user's mark and another speaker's; a long beginning may be all the user's pasted text.
    """
    fence, speakers, typed, shown = Fence(), set[str](), False, False
    for words in prose(BytesIO(text)):
        if isinstance(words, WarningRecord):
            continue
        if words.text.startswith(BEGINS):
            return "aider"
        if fence.take(words):
            continue
        typed = typed or words.text.startswith("#### ")
        shown = shown or words.text.startswith(_AIDER_SAYS)
        if found := mark(words.text):
            speakers.add(found.role)
    if typed and shown:
        return "aider"
    several = len(speakers) > 1 or len(text) >= _PASTED
    return "markdown" if "user" in speakers and several else ""

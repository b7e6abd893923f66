"""Detect the format of a session file from its content."""

from __future__ import annotations

import re
from typing import Any

from foldline.errors import FormatError
from foldline.transcripts import agent_shapes as shapes
from foldline.transcripts.forms.lists import form_of
from foldline.transcripts.shared.lines import Unreadable, parse
from foldline.transcripts.shared.values import text_or

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
    if chat := shapes.of_text(text):
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
    for kind, mark in _BEFORE_MESSAGES.items():
        if text[:1] == b"{" and mark.search(before):
            return kind
    named = shapes.of_document(text) if text[:1] == b"{" else ""
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
        return "opencode" if isinstance(value.get("info"), dict) else shapes.of_object(value) or "json"
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
    if agent := shapes.of_line(value):
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

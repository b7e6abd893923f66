"""Detect the format of a session file from its content: a format name, or the shape of its lines."""

from __future__ import annotations

import re
from io import BytesIO

from foldline.errors import FormatError
from foldline.transcripts.aider import BEGINS
from foldline.transcripts.forms.lists import form_of
from foldline.transcripts.klaude import is_klaude
from foldline.transcripts.lines import Row, Unreadable, parse
from foldline.transcripts.markdown_text import Fence, read_mark, text_lines
from foldline.transcripts.records import WarningRecord

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
_CLAUDE_KEYS = {"uuid", "parentUuid", "sessionId", "leafUuid", "messageId", "snapshot"}
_PLAIN_ROLES = {"system", "user", "assistant", "tool", "summary", "boundary"}
_CODEX = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_COPILOT = re.compile(r"(session|system|user|assistant|tool|hook|permission|subagent|skill)\.[a-z_]+")
_OUR_MARKDOWN = re.compile(rb"# [^\n]*\n\nsession `[^`\n]*`")
_COOP = {"text", "image", "tool_request", "tool_result", "thinking"}
_AIDER_SAYS = ("> Aider v", "> Tokens: ")
_PASTED = 60_000  # bytes: one pasted message may be as long
_METADATA_FIRST = re.compile(rb'\A\{\s*"metadata"\s*:\s*\{')
_CREATED = re.compile(rb'"createdAt"\s*:')
_PARTS = re.compile(rb'"parts"\s*:\s*\[')
_INFO_FIRST = re.compile(rb'\A\{\s*"info"\s*:\s*\{')
_PROJECT = re.compile(rb'"projectHash"\s*:')


def sniff(head: bytes, name: str = "") -> str:
    """Name the format of a session file from its first bytes (unpacked; whole lines if possible).

    Raises FormatError for an empty file, binary data or an unknown format.
    """
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            raise FormatError(f"not a session file, but {kind}", where=name)
    if not text.strip(b"\0 \t\r\n"):
        raise FormatError("the file is empty" if not text else "the file holds only NUL bytes", where=name)
    if text[:1] == b"[":
        return "json"
    if _OUR_MARKDOWN.match(text):
        return "markdown"
    first_lines = text.split(b"\n")
    is_pretty_printed = first_lines[0].startswith(b"{") and first_lines[0].rstrip().endswith(
        (b"{", b"[", b",")
    )
    kinds = [] if is_pretty_printed else [kind for kind in map(_kind_of_line, first_lines) if kind]
    if kinds:
        return _decide(kinds, name)
    if document := _kind_of_document(text) if text[:1] == b"{" else "":
        return document
    if _binary(text):
        raise FormatError("not a session file, but binary data", where=name)
    if format_ := _format_of_text(text):
        return format_
    raise FormatError(
        "not a session file: it does not start with a JSON message, a list or a line of a known transcript",
        where=name,
        line=1,
    )


def _binary(text: bytes) -> bool:
    """Return whether the bytes are not text: NULs, or one control character in fifty."""
    sample = text[:4096]
    strange = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in sample)
    return b"\0" in sample or strange * 50 > len(sample)


def _decide(kinds: list[str], name: str) -> str:
    """Return the format of the first unambiguous line."""
    clear = [kind for kind in kinds if kind != "unknown"]
    if not clear:
        raise FormatError(
            "JSON lines without messages: a message needs role and content, or a known transcript's form",
            where=name,
            line=1,
        )
    kind = "meta" if clear[0] == "meta" else next((kind for kind in clear if kind != "header"), "jsonl")
    return "plain" if kind == "meta" else kind


def _kind_of_line(line: bytes) -> str:
    """Return the kind of a line: a format, meta, header, unknown, or "" (not readable)."""
    try:
        value = parse(line.strip())[0] if line.lstrip().startswith(b"{") else None
    except Unreadable:
        return ""
    return _kind_of(Row(value)) if isinstance(value, dict) else ""


def _kind_of(row: Row) -> str:
    """Return the format of one JSON object."""
    kind, role = row.text("type"), row.text("role")
    if row.get("format") == "foldline":
        return "foldline"
    if "projectHash" in row and "sessionId" in row:
        return "gemini-cli"
    if isinstance(row.get("messages"), list):
        return _format_of_object(row)
    if isinstance(row.get("contents"), list):
        return "json"
    if isinstance(row.get("meta"), dict) and not role:
        return "meta"
    agents = {
        "pi": kind == "session" and not row.keys().isdisjoint(("cwd", "version", "id")),
        "codex": _is_codex(row, kind),
        "copilot-cli": bool(_COPILOT.fullmatch(kind)) and isinstance(row.get("data"), dict),
        "claude-code": not role and kind in _CLAUDE_TYPES and not row.keys().isdisjoint(_CLAUDE_KEYS),
        "klaude-code": is_klaude(row),
        "coop": _is_coop(row),
    }
    if agent := next((agent for agent, fits in agents.items() if fits), ""):
        return agent
    if not role and _is_pi(row, kind):
        return "pi"
    if role in _PLAIN_ROLES and "content" not in row and ("text" in row or "calls" in row):
        return "plain"
    if role or form_of(row) is not None:
        return "jsonl"
    return "header" if not row.keys().isdisjoint(("system", "tools", "dialect")) else "unknown"


def _is_codex(row: Row, kind: str) -> bool:
    """Return whether a line is Codex's: with a payload, or the header of an older file, without a type."""
    if kind in _CODEX and isinstance(row.get("payload"), dict):
        return True
    is_old_header = row.keys() >= {"id", "timestamp"} and ("instructions" in row or "git" in row)
    return is_old_header and not kind and "role" not in row


def _is_pi(row: Row, kind: str) -> bool:
    """Return whether a line is pi's, even in a file that lost its header."""
    is_message = kind == "message" and isinstance(row.get("message"), dict)
    return is_message or (kind == "compaction" and "summary" in row)


def _is_coop(row: Row) -> bool:
    """Return whether a JSON line is one of coop's messages."""
    types = {"id": str, "created": str, "content": list}
    return (
        row.get("role") in ("user", "assistant")
        and all(isinstance(row.get(key), of) for key, of in types.items())
        and all(block.text("type") in _COOP for block in row.rows("content"))
    )


# ---- documents, by the whole value or its beginning


def _format_of_object(row: Row) -> str:
    """Return the format of a JSON object with `messages`."""
    if isinstance(row.get("info"), dict):
        return "opencode"
    if row.inner("metadata").text("id"):
        return "gencode"
    first = next(iter(row.rows("messages")), Row())
    if isinstance(row.get("compaction"), dict) or ("createdAt" in row and "parts" in first):
        return "moldable"
    return "json"


def _kind_of_document(text: bytes) -> str:
    """Return the format of a multi-line JSON object from what precedes its messages ("": unknown)."""
    before, _, after = text.partition(b'"messages"')
    if _PROJECT.search(before):
        return "gemini-cli"
    if _INFO_FIRST.search(before):
        return "opencode"
    if _METADATA_FIRST.match(text) and (after or b'"messageCount"' in text):
        return "gencode"
    if after and _CREATED.search(before) and _PARTS.search(text):
        return "moldable"
    return "json" if after or b'"contents"' in text else ""


# ---- plain text


def _format_of_text(text: bytes) -> str:
    """Name the format of a plain text chat from its beginning ("": unknown).

    Markdown needs marks of a user and another speaker; a long beginning may all be the user's pasted text.
    """
    fence, speakers, has_typed_lines, has_aider_lines = Fence(), set[str](), False, False
    for line in text_lines(BytesIO(text)):
        if isinstance(line, WarningRecord):
            continue
        if line.text.startswith(BEGINS):
            return "aider"
        if fence.take(line):
            continue
        has_typed_lines = has_typed_lines or line.text.startswith("#### ")
        has_aider_lines = has_aider_lines or line.text.startswith(_AIDER_SAYS)
        if speaker_mark := read_mark(line.text):
            speakers.add(speaker_mark.role)
    if has_typed_lines and has_aider_lines:
        return "aider"
    enough = len(speakers) > 1 or len(text) >= _PASTED
    return "markdown" if "user" in speakers and enough else ""

"""Read Codex's items as `openai-responses` payloads, and the contents of Codex's compactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from foldline import dialects
from foldline.core.log.codec import encode
from foldline.core.log.messages import Usage
from foldline.dialects import OPENAI_RESPONSES
from foldline.dialects.payload import fields_of
from foldline.transcripts.lines import Row
from foldline.transcripts.payloads import decode_rows, is_from_program, mark_failed, usage_of
from foldline.transcripts.records import MessageRecord, WarningRecord

USERS_KEPT = 20_000  # tokens of user messages kept by a compaction without a list (codex-rs, compact.rs)
BYTES_A_TOKEN = 4  # Codex's own estimate

USAGE = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")

SEALED = (
    "Codex compacted the conversation here. The summary is encrypted: it follows this as it came, and only "
    "OpenAI's servers can read it."
)
COMPACTIONS = ("compaction", "compaction_summary", "context_compaction")
_SERVERS = (
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
)  # fmt: skip
_OWN_KEYS = ("timestamp", "internal_chat_message_metadata_passthrough")  # Codex's, which the API refuses
_NOT_SENT = ("ghost_snapshot", "other")


def item_of(row: Row) -> Row:
    """Return the item on a line: its payload, or in older files the whole line."""
    return row.inner("payload") if "payload" in row else row


def is_sendable(item: Row) -> bool:
    """Return whether the API accepts an item in a request; some need an id or encrypted content."""
    kind = item.text("type")
    if kind == "reasoning":
        return bool(item.get("id") or item.get("encrypted_content"))
    return kind not in _NOT_SENT and (kind not in _SERVERS or bool(item.get("id")))


def has_content(item: Row) -> bool:
    """Return whether an item that cannot be sent has any content."""
    return item.get("type") != "reasoning" or bool(item.get("summary") or item.get("content"))


def message_records(
    rows: Sequence[Row], key: str = "", **fields: Any
) -> Iterator[MessageRecord | WarningRecord]:
    """Yield the message on these lines: one item, or the items of one reply; see `decode_rows`."""
    decoded = yield from decode_rows(dialects.get(OPENAI_RESPONSES), rows, _sendable)
    if decoded is None:
        return
    message, valid_rows = decoded
    if is_from_program(message):
        fields["injected"] = True
    if message.role == "assistant":
        fields["stop"] = "tools" if message.calls else "end"
    if any(_failed(item_of(row)) for row in valid_rows):
        message = mark_failed(message)
    message, line = msgspec.structs.replace(message, **fields), valid_rows[0].line
    yield MessageRecord(message, at=valid_rows[-1].time("timestamp"), key=key or str(line), line=line)


def _sendable(row: Row) -> dict[str, Any]:
    """Return an item as a request needs it: without Codex's nulls, an output of the old form as text."""
    item = item_of(row)
    fields = {key: value for key, value in item.without(*_OWN_KEYS).items() if value is not None}
    if isinstance(item.get("output"), dict):
        fields["output"] = item.inner("output").text("content")
    return fields


def _failed(item: Row) -> bool:
    """Return whether a tool failed: the old form has a flag, patches have an exit code in their JSON."""
    if isinstance(item.get("output"), dict):
        return item.inner("output").get("success") is False
    output = item.text("output")
    if item.get("type") != "custom_tool_call_output" or not output.startswith("{"):
        return False
    try:
        fields = Row(fields_of(msgspec.json.decode(output)))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return bool(fields.inner("metadata").get("exit_code"))


def usage(tokens: Row) -> Usage | None:
    """Read a usage; input includes cached tokens, output reasoning. None if nothing was counted."""
    result = usage_of(tokens, USAGE, inclusive=True)
    return result if result.total else None


def texts(item: Row) -> str:
    """Return the text of a message item."""
    content = item.get("content")
    return (
        content if isinstance(content, str) else "\n".join(part.text("text") for part in item.rows("content"))
    )


class Prompts:
    """Index of the user's messages by text, to match the list in a compaction with them."""

    def __init__(self) -> None:
        self._by_text: dict[bytes, list[str]] = {}
        self._own: list[tuple[str, int]] = []  # key and estimated tokens of the user's own messages

    def add(self, item: Row, key: str, *, injected: bool) -> None:
        """Note a message with role user."""
        self._by_text.setdefault(_digest(item), []).append(key)
        if not injected:
            self._own.append((key, len(texts(item).encode("utf-8", "surrogatepass")) // BYTES_A_TOKEN))

    def find(self, item: Row, taken: Sequence[str]) -> str | None:
        """Return the key of the newest message with the same text that is not in `taken`."""
        return next((key for key in reversed(self._by_text.get(_digest(item), [])) if key not in taken), None)

    def newest(self) -> list[str]:
        """Return the keys of the newest messages that a compaction without a list keeps, in order."""
        kept: list[str] = []
        left = USERS_KEPT
        for key, tokens in reversed(self._own):
            left -= tokens
            if left < 0:
                break
            kept.append(key)
        return kept[::-1]


def _digest(item: Row) -> bytes:
    return sha256(encode(texts(item))).digest()[:16]


def kept_items(payload: Row, prompts: Prompts) -> tuple[str, list[str], list[Row]]:
    """Return what a compaction kept: the summary, the keys of quoted messages, and encrypted items.

    Text that is nowhere else in the file is appended to the summary; the summary is not repeated.
    """
    message = payload.text("message").strip()
    if not isinstance(payload.get("replacement_history"), list):
        return message, prompts.newest(), []
    quoted: list[str] = []
    sealed: list[Row] = []
    extra_texts: list[str] = []
    for item in reversed(payload.rows("replacement_history")):
        kind, role, text = item.text("type", "message"), item.text("role"), texts(item).strip()
        key = prompts.find(item, quoted) if kind == "message" and role == "user" else None
        if key:
            quoted.append(key)
        elif kind in COMPACTIONS:
            sealed.append(item)
        elif kind != "message" or not text or (message and message in text):
            continue
        elif role in ("user", "assistant"):
            extra_texts.append(f"[{role.capitalize()}, kept by Codex]: {text}")
    opening = message or (SEALED if sealed else "")
    return "\n\n".join([*([opening] if opening else []), *extra_texts[::-1]]), quoted[::-1], sealed[::-1]

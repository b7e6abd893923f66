"""Codex's items as `openai-responses` payloads, and what Codex's compactions kept of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from foldline import dialects
from foldline.core.log.codec import encode
from foldline.core.log.messages import Message, Usage
from foldline.dialects.responses.items import role_of
from foldline.errors import DialectError
from foldline.transcripts.lines import Row, items, mapping, moment, text_or
from foldline.transcripts.payloads import is_programs, mark_failed, usage_of
from foldline.transcripts.records import MessageRecord, WarningRecord, reason_of

USERS_KEPT = 20_000
"""Tokens of the newest user messages that a compaction without its own list keeps (codex-rs, compact.rs)."""

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


def item_of(value: dict[str, Any]) -> dict[str, Any]:
    """Return the item on a line: its payload, or the whole line in older files without a wrapper."""
    return mapping(value.get("payload")) if "payload" in value else value


def is_said(item: dict[str, Any]) -> bool:
    """Return whether the API accepts an item back; some need an id or their encrypted content for that."""
    kind = text_or(item.get("type"))
    if kind == "reasoning":
        return bool(item.get("id") or item.get("encrypted_content"))
    return kind not in _NOT_SENT and (kind not in _SERVERS or bool(item.get("id")))


def says_something(item: dict[str, Any]) -> bool:
    """Return whether an item that is not sent has any content."""
    return item.get("type") != "reasoning" or bool(item.get("summary") or item.get("content"))


def is_models(item: dict[str, Any]) -> bool:
    """Return whether an item is the model's; consecutive ones are one reply."""
    try:
        return role_of(item) == "assistant"
    except DialectError:
        return False


def message_records(
    rows: Sequence[Row], key: str = "", **known: Any
) -> Iterator[MessageRecord | WarningRecord]:
    """Yield the message on these lines: one item, or the items of one reply.

    Each item that the dialect does not know becomes a warning with its line; the others stay a message.
    """
    message = _decoded(rows)
    if isinstance(message, str) and len(rows) > 1:
        bad = {row.number: why for row in rows if isinstance(why := _decoded([row]), str)}
        yield from (WarningRecord(line, f"not a message: {why} (left out)") for line, why in bad.items())
        rows = [row for row in rows if row.number not in bad]
        message = _decoded(rows) if rows else None
    if isinstance(message, str):
        yield WarningRecord(rows[0].number, f"not a message: {message} (left out)")
    elif message is not None:
        yield _record(rows, message, key, known)


def _decoded(rows: Sequence[Row]) -> Message | str:
    """Return the message, or why there is none."""
    payloads = [_sendable(item_of(row.value)) for row in rows]
    try:
        return dialects.get("openai-responses").decode(payloads if len(payloads) > 1 else payloads[0])
    except (DialectError, RecursionError) as error:
        return reason_of(error)


def _record(rows: Sequence[Row], message: Message, key: str, known: dict[str, Any]) -> MessageRecord:
    if is_programs(message):
        known = {**known, "injected": True}
    if message.role == "assistant":
        known = {**known, "stop": "tools" if message.calls else "end"}
    if any(_failed(item_of(row.value)) for row in rows):
        message = mark_failed(message)
    first = rows[0].number
    return MessageRecord(
        msgspec.structs.replace(message, **known),
        at=moment(rows[-1].value.get("timestamp")),
        key=key or str(first),
        line=first,
    )


def _sendable(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item in the form of a request: without Codex's nulls, an output of the old form as text."""
    sent = {key: value for key, value in item.items() if value is not None and key not in _OWN_KEYS}
    output = sent.get("output")
    if isinstance(output, dict):
        sent["output"] = text_or(mapping(sent["output"]).get("content"))
    return sent


def _failed(item: dict[str, Any]) -> bool:
    """Return whether a tool failed: the old form has a flag beside the text, patches say so in their JSON."""
    output = item.get("output")
    if isinstance(output, dict):
        return mapping(item["output"]).get("success") is False
    if item.get("type") != "custom_tool_call_output" or not text_or(output).startswith("{"):
        return False
    try:
        sent = mapping(msgspec.json.decode(text_or(output)))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return bool(mapping(sent.get("metadata")).get("exit_code"))


def usage(tokens: dict[str, Any]) -> Usage | None:
    """Read a usage; input includes cached tokens, output reasoning. None if nothing was counted."""
    found = usage_of(tokens, USAGE, inclusive=True)
    return found if found.total else None


def texts(item: dict[str, Any]) -> str:
    """Return the text of a message item."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(text_or(mapping(part).get("text")) for part in items(content))


class Prompts:
    """The user's messages by their text, so that a compaction's list can be matched with them."""

    def __init__(self) -> None:
        self._by_text: dict[bytes, list[str]] = {}
        self._own: list[tuple[str, int]] = []  # key and estimated tokens of the user's own messages

    def add(self, item: dict[str, Any], key: str, *, injected: bool) -> None:
        """Note a message with role user."""
        self._by_text.setdefault(_digest(item), []).append(key)
        if not injected:
            self._own.append((key, len(texts(item).encode("utf-8", "surrogatepass")) // BYTES_A_TOKEN))

    def find(self, item: dict[str, Any], taken: set[str]) -> str | None:
        """Return the key of the newest message with the same text that is not taken yet."""
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


def _digest(item: dict[str, Any]) -> bytes:
    return sha256(encode(texts(item))).digest()[:16]


class KeptItems(msgspec.Struct):
    """What a compaction left: the summary, the keys of messages kept word for word, and encrypted items."""

    summary: str
    quoted: list[str] = []
    sealed: list[dict[str, Any]] = []
    others: int = 0  # items that are neither


def kept_items(payload: dict[str, Any], prompts: Prompts) -> KeptItems:
    """Sort what a `compacted` line holds; text found nowhere else in the file joins the summary."""
    message = text_or(payload.get("message")).strip()
    listed = payload.get("replacement_history")
    if not isinstance(listed, list):
        return KeptItems(message, prompts.newest())
    found = KeptItems(message)
    words: list[str] = []
    for item in reversed([mapping(one) for one in items(listed)]):
        kind, role = text_or(item.get("type"), "message"), text_or(item.get("role"))
        key = prompts.find(item, set(found.quoted)) if kind == "message" and role == "user" else None
        if key:
            found.quoted.insert(0, key)
        elif kind in COMPACTIONS:
            found.sealed.insert(0, item)
        elif kind == "message" and role in ("user", "assistant"):
            words[:0] = _words(item, role, message)
        else:
            found.others += 1
    opening = [message or (SEALED if found.sealed else "")]
    found.summary = "\n\n".join(text for text in [*opening, *words] if text)
    return found


def _words(item: dict[str, Any], role: str, summary: str) -> Iterator[str]:
    """Yield a message that Codex kept but the log does not hold; the summary itself is not repeated."""
    text = texts(item).strip()
    if text and not (summary and summary in text):
        yield f"[{role.capitalize()}, kept by Codex]: {text}"

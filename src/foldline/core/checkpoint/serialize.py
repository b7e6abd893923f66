"""Entries as the text that a summariser reads.

One block a part, its label first, a blank line between blocks, all in `<conversation>`. Whatever stands
inside a block is data: a label or a tag of ours in it is escaped with a backslash, so no tool result and no
quoted transcript can speak as the user or close the conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from foldline.core.carried.summaries import with_summaries_told
from foldline.core.log.codec import text_in_utf8
from foldline.core.log.entries import Said
from foldline.core.log.messages import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.opaque import opened
from foldline.core.log.steps import is_step
from foldline.core.measure.media import media_label
from foldline.core.secrets.entries import clean_message

TAGS = (
    "conversation",
    "previous-summary",
    "summary",
    "analysis",
    "constraints",
    "focus",
    "goal",
    "kept",
    "project-focus",
    "standing-focus",
    "read-files",
    "modified-files",
)
_LABELS = {
    "system": "System",
    "developer": "Developer",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool result",
}
_GAP = r"[\s\u200b-\u200f\u2060\ufeff]*"  # also what cannot be seen
_LABEL = re.compile(
    rf"\[(?={_GAP}(?:system|developer|user|assistant(?:\s+thinking)?|harness|tool\s+(?:call|result))"
    rf"{_GAP}\]{_GAP}[:\uff1a])",
    re.IGNORECASE,
)
_TAG = re.compile(rf"<(?={_GAP}/?{_GAP}(?:{'|'.join(TAGS)}){_GAP}/?>)", re.IGNORECASE)
_DATA_URL = re.compile(
    r"data:([\w.+\-]{1,60}/[\w.+\-]{1,80})?(?:;[\w=.\-]{1,60}){0,3};base64,([A-Za-z0-9+/=_\-]{64,}+)"
)


def serialize(
    entries: Sequence[Said],
    *,
    result_cap: int,
    thinking: bool,
    redact: bool = True,
) -> str:
    """Write entries as the text a summariser reads.

    `result_cap` is the most characters of one tool result, and of one string in a call's arguments, that are
    shown: half from its head, half from its tail, with how much was left out between. `thinking` False leaves
    reasoning out; `redact` False leaves secrets in. The text is valid Unicode whatever the entries hold.
    """
    blocks: list[str] = []
    calls: dict[str, str] = {}
    batch = 0
    for entry in entries:
        message = opened(with_summaries_told(entry.message))
        if redact:  # before anything is shortened: half a key is a leak
            message = clean_message(message, {})
        batch = len(entry.message.calls) or batch
        for label, content in _blocks(message, calls, batch, result_cap, thinking=thinking):
            if content.strip():
                blocks.append(f"[{label}]: {neutral(content)}")
    return "\n\n".join(["<conversation>", *blocks, "</conversation>"])


def neutral(text: str) -> str:
    """Escape the labels and tags of this format in a text, and mend what is not valid Unicode.

    The result depends on the text alone; a text without them is returned as it is.
    """
    return _TAG.sub(r"\\<", _LABEL.sub(r"\\[", text_in_utf8(text)))


def shorten(text: str, cap: int) -> str:
    """Keep at most `cap` characters of a text, half from each end, and say how many were left out."""
    if len(text) <= cap:
        return text
    tail = max(cap, 0) // 2
    head = max(cap, 0) - tail
    left_out = f"[... {len(text) - head - tail:,} characters left out ...]"
    return "\n".join(part for part in (text[:head], left_out, text[len(text) - tail :]) if part)


def untold(part: Media | Opaque) -> str:
    """Name a part that has no text."""
    if isinstance(part, Opaque):
        return f"[{part.kind or 'block'} that only {part.dialect} reads]"
    return media_label(part)


def _blocks(
    message: Message, calls: dict[str, str], batch: int, cap: int, *, thinking: bool
) -> Iterator[tuple[str, str]]:
    """Yield the label and content of each part of a message; `calls` learns its calls, for later results."""
    label = "Harness" if message.injected and message.role == "user" else _LABELS[message.role]
    by = f"{' '.join(message.name.split())}: " if message.name else ""
    for part in message.parts:
        if is_step(part):
            continue
        if isinstance(part, Thinking):
            if thinking:
                yield "Assistant thinking", _named_data(part.text)
        elif isinstance(part, ToolCall):
            calls[part.id] = _named(part)
            yield "Tool call", _call(part, cap)
        elif isinstance(part, ToolResult):
            yield "Tool result", _result(part, calls.get(part.call_id, ""), batch, cap)
        else:
            text = _plain((part,))
            yield label, by + (shorten(text, cap) if message.role == "tool" else text)


def _named_data(text: str) -> str:
    """A text with its data URLs named."""
    return _DATA_URL.sub(lambda url: f"[data: {url[1] or 'text'}, {len(url[2]):,} characters]", text)


def _plain(parts: Iterable[Part]) -> str:
    """The texts of parts, media named."""
    return "\n".join(
        _named_data(part.text) if isinstance(part, Text) else untold(part)
        for part in parts
        if isinstance(part, Text | Media | Opaque)
    )


def _result(result: ToolResult, call: str, batch: int, cap: int) -> str:
    """A result's content, shortened; after a batch it names its call, after a failure it says so."""
    notes = [note for note in (call if batch > 1 else "", "failed" if result.is_error else "") if note]
    text = shorten(_plain(result.content), cap)
    text = text if text.strip() else "(nothing)"
    return f"({', '.join(notes)}) {text}" if notes else text


def _named(call: ToolCall) -> str:
    """A call in a few words: its name and the first string among its arguments."""
    given = call.arguments if isinstance(call.arguments, dict) else {}
    first = next((value for value in given.values() if isinstance(value, str) and value), "")
    words = " ".join(_named_data(first[:2_000]).split())
    return f"{call.name} {words[:60]}" if words else call.name


def _call(call: ToolCall, cap: int) -> str:
    """A call as `name(key="value", n=1)`; arguments that did not parse are left as received."""
    if isinstance(call.arguments, str):
        return f"{call.name}({shorten(_named_data(call.arguments), cap)})"
    shown = [f"{key}={_argument(value, cap)}" for key, value in call.arguments.items()]
    return f"{call.name}({', '.join(shown)})"


def _argument(value: object, cap: int) -> str:
    """An argument as JSON, shortened; line breaks stay escaped, so a call is one line."""
    if isinstance(value, str):
        return json.dumps(shorten(_named_data(value), cap), ensure_ascii=False)
    try:
        written = json.dumps(value, ensure_ascii=False, default=str)
    except (RecursionError, ValueError):
        written = "(nested too deeply)"
    return shorten(_named_data(written), cap)

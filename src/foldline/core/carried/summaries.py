"""Find summaries of earlier conversation: texts that agents insert, and blocks by a provider's server.

Whatever its role, such a text is the only record of what came before it. It is carried over folds, and
nothing in it is a request of the user. It is recognised by its opening; this module has all openings.

A server's block in a reply replaces all that came before it. A block with text (Anthropic) is a summary. A
sealed one (OpenAI) can only be sent back. A block with neither means that the server's compaction failed, and
replaces nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec

from foldline.core.log.entries import Carried, Said
from foldline.core.log.messages import Message, Opaque, Part, Text, ToolCall, ToolResult

CONTINUED = (
    r"This session is being continued from a previous conversation that ran out of context\."
    r"(?=\s*+\Z|\s++The (?:conversation is summarized below:|summary below covers the earlier portion of the "
    r"conversation\.))"
)
HAND_OVER = (
    r"Another language model started to solve this problem and produced a summary of its thinking process\."
)
_COMPACTED = r"The conversation history before this point was compacted into the following summary:"
_BRANCH = r"The following is a summary of a branch that this conversation (?:came back from|left):"
_MOVED = r"You are in the middle of a conversation that has been summarized\."

_OF_TALK = (
    r"(?:conversation|session|chat|talk|dialog(?:ue)?|discussion|history|messages|turns|context|earlier|"
    r"previous|prior|so far|to date)"
)
_OPENS = r"(?:(?:here(?:'s| is)|this is|below is|the following is)[ ])?(?:an?[ ]|the[ ]|our[ ]|your[ ])?"
_MARKUP = r"[#*_\[>\s]{0,8}"
_NAMED = rf"(?i:{_OPENS}(?:[a-z'-]{{2,14}}[ ]){{0,4}}?(?:summary|recap)\b)"
_TITLE = (  # the name is looked for first: most texts have none, and the words of talk may be far off
    rf"{_MARKUP}(?={_NAMED})(?=[^\n:\]]{{0,160}}\b(?i:{_OF_TALK})\b){_NAMED}[^\n:\].?!]{{0,100}}(?:[\]:*]|(?=\n))"
)
_BRACKET = (
    rf"\[(?=[^\]\n]{{0,160}}\b(?i:{_OF_TALK})\b)[^\]\n]{{0,80}}(?i:summar|compact|condens)[^\]\n]{{0,80}}\]"
)
_HAS_BEEN = (
    rf"(?i:(?:(?:the|your|our|previous|earlier|older)[ ]){{0,3}}{_OF_TALK}[^\n.:]{{0,60}}"
    r"(?:has been|have been|was|were) (?:summari[sz]ed|compacted|condensed|compressed))"
    r"[^\n:]{0,160}:(?=\s*\n)"
)
_TAG = r"(?i:(?:(?:conversation|context|previous|earlier|session|chat|history)[_-])?summary|state_snapshot)"

_CLOSED = {
    "pi": rf"(?:{_COMPACTED}|{_BRANCH})\s*<summary>.*?</summary>",
    "tag": rf"<(?P<tag>(?!(?i:summary)>){_TAG})>.*?</(?P=tag)>",
    "summary": r"<summary>.*?</summary>",
}
_TO_THE_END = {
    "claude-code": CONTINUED,
    "codex": HAND_OVER,
    "pi": _COMPACTED,
    "branch": _BRANCH,
    "deepagents": _MOVED,
    "title": _TITLE,
    "bracket": _BRACKET,
    "told": _HAS_BEEN,
}
_IN_PLAIN_WORDS = ("summary", "title", "bracket", "told")
"""Forms that people use too: in a user message they are a summary only if nothing was answered before."""
CLOSED = tuple(form for name, form in _CLOSED.items() if name not in _IN_PLAIN_WORDS)
"""Forms that have an end: what stands behind one is no part of it."""
TO_THE_END = tuple(form for name, form in _TO_THE_END.items() if name not in _IN_PLAIN_WORDS)
"""Openings of a summary that runs to the end of its text."""
IN_PLAIN_WORDS = tuple(form for name, form in _TO_THE_END.items() if name in _IN_PLAIN_WORDS)
"""The same, in words that people use too."""

ASKS_BACK = "What did we do so far?"
"""OpenCode's request for a summary, sent as the user; the answer is the summary."""

SERVER = "server"
"""The source of a summary by a provider's server, which replaces all that came before it."""

_FORMS = [
    (name, re.compile(rf"\s*+{form}", re.DOTALL), forms is _CLOSED)
    for forms in (_CLOSED, _TO_THE_END)
    for name, form in forms.items()
]
_LEAD_OF_HAND_OVER = re.compile(r"[^\n]{0,500}:(?=\s*\n)")
_LEAD_OF_CONTINUED = re.compile(r"\A\s*The (?:conversation is summarized below:|summary below [^\n]*\.)")
_LEAKED = re.compile(r"(?<!\s)\s*+CRITICAL: Respond with TEXT ONLY\.[^\n]*(?:\n(?!\s*\n)[^\n]*)*")
_GO_ON = re.compile(
    r"(?<=\n)[^\S\n]*(?:Please c|C)ontinue the conversation from where (?:we|it) left\b.*\Z", re.DOTALL
)
_INNER = re.compile(rf"<(?P<tag>{_TAG})>\n?(?P<text>.*?)\n?</(?P=tag)>", re.DOTALL)


class Found(NamedTuple):
    """A summary in a text: its form, where it ends, and its text without the framing."""

    form: str
    end: int
    text: str


def summary_in(text: str) -> Found | None:
    """Return the summary that a text begins with; None if there is none, or it is empty."""
    if not text or text.isspace():
        return None
    for name, form, closed in _FORMS:
        if (opening := form.match(text)) is not None:
            end = opening.end() if closed else len(text)
            body = _unframed(text[:end], opening.end(), closed=closed)
            return Found(name, end, body) if body else None
    return None


def _unframed(text: str, opened: int, *, closed: bool) -> str:
    """Return the text of a summary without the framing that a program added."""
    if closed:
        inner = _INNER.match(text, text.find("<"))
        return inner["text"].strip() if inner is not None else text.strip()
    rest = text[opened:]
    if re.match(rf"\s*{HAND_OVER}", text) and (lead := _LEAD_OF_HAND_OVER.match(rest)) is not None:
        rest = rest[lead.end() :]
    if re.match(rf"\s*{CONTINUED}", text):
        rest = _GO_ON.sub("", rest)
        rest = _LEAD_OF_CONTINUED.sub("", rest)
        rest = _LEAKED.sub("", rest, count=1)
    inner_block = _INNER.fullmatch(rest.strip())
    return (inner_block["text"] if inner_block is not None else re.sub(r"\A\*{0,2}:?", "", rest)).strip()


def earlier_summaries(entries: Iterable[Said], *, begun: bool = False) -> Iterator[Carried]:
    """Yield the summaries of earlier conversation in messages, oldest first; tool results never hold one.

    A message without an id is a summary as a whole, imported from another system's file. `begun`: the
    conversation began before these messages.
    """
    previous: Message | None = None
    for entry in entries:
        message = entry.message
        summaries = list(_in_message(entry, previous, begun=begun)) if message.role != "tool" else []
        yield from summaries
        previous, begun = message, begun or bool(summaries) or message.role in ("assistant", "tool")


def _in_message(entry: Said, previous: Message | None, *, begun: bool) -> Iterator[Carried]:
    message = entry.message
    requested = message.role == "assistant" and previous is not None and previous.text.strip() == ASKS_BACK
    if not entry.id or requested:
        if text := message.text.strip():
            yield Carried("summary", ("asked" if requested else "imported",), text, entry.id)
        return
    for part in message.parts:
        if server_text := text_of(part):
            yield Carried("summary", (SERVER,), server_text, entry.id)
        found = summary_in(part.text) if isinstance(part, Text) else None
        if found is None:
            continue
        ambiguous = message.role == "user" and found.form in _IN_PLAIN_WORDS
        if not (ambiguous and begun):  # a summary by the user replaces no other
            yield Carried(
                "summary", (f"user {found.form}" if ambiguous else found.form,), found.text, entry.id
            )


def is_summary(message: Message) -> bool:
    """Whether a message holds only summaries of earlier conversation."""
    texts = [part.text for part in message.parts if isinstance(part, Text) and part.text.strip()]
    has_others = any(not isinstance(part, Text) for part in message.parts)
    return bool(texts) and not has_others and all(_is_only_summary(text) for text in texts)


def _is_only_summary(text: str) -> bool:
    found = summary_in(text)
    return found is not None and not text[found.end :].strip()


def newest_summary(carried: Sequence[Carried]) -> Carried | None:
    """Return the newest summary among carried texts, or None."""
    return next((text for text in reversed(carried) if text.kind == "summary"), None)


# ---- blocks of a provider's server

TITLE: Final = "[Summary of the earlier conversation]"
KINDS: Final = ("compaction", "compaction_summary", "context_compaction")


def text_of(part: Part) -> str:
    """Return the summary in a server's compaction; "" for other parts and for sealed or failed ones."""
    data = _compaction_data(part)
    content = data.get("content")
    return content.strip() if isinstance(content, str) else ""


def is_sealed(part: Part) -> bool:
    """Whether a part is a compaction that only its provider can read."""
    data = _compaction_data(part)
    return "content" not in data and bool(data.get("encrypted_content"))


def place_of(message: Message) -> int | None:
    """Return the index of the newest server compaction in a message, or None."""
    return max(places_of(message), default=None)


def places_of(message: Message) -> list[int]:
    """Return the indices of the server compactions in a reply."""
    if message.role != "assistant":
        return []
    return [i for i, part in enumerate(message.parts) if text_of(part) or is_sealed(part)]


def said_before(message: Message) -> list[int]:
    """Return the parts of a reply that its newest compaction replaces; calls and results stay."""
    parts = message.parts[: place_of(message)]
    return [index for index, part in enumerate(parts) if not isinstance(part, ToolCall | ToolResult)]


def sealed_place(message: Message) -> int | None:
    """Return the index of a message's newest compaction if that is sealed, else None."""
    place = place_of(message)
    return place if place is not None and is_sealed(message.parts[place]) else None


def _compaction_data(part: Part) -> dict[str, Any]:
    if isinstance(part, Opaque) and part.kind in KINDS and isinstance(part.data, dict):
        return cast("dict[str, Any]", part.data)
    return {}


def with_summaries_told(message: Message) -> Message:
    """Return a message with its readable compactions as text, for readers that do not know such blocks."""
    if not any(map(text_of, message.parts)):
        return message
    parts = (Text(f"{TITLE}\n{text}") if (text := text_of(part)) else part for part in message.parts)
    return msgspec.structs.replace(message, parts=tuple(parts))

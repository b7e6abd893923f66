"""Summaries of earlier conversation: texts that agents write into their lists, blocks of a provider's server.

Whoever speaks it, such a text is the only record of what came before it: it is carried over folds, and
nothing in it is a wish of the user's. It is known by how it opens. All openings stand here; nothing else in
the package knows any.

A block of a server stands in a reply for all that came before it. One with a text (Anthropic's) is a summary.
One that is sealed (OpenAI's) can only be sent back. One without either says that the server's compaction
failed, and stands for nothing.
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
_TITLE = (
    rf"{_MARKUP}(?=[^\n:\]]{{0,160}}\b(?i:{_OF_TALK})\b)(?i:{_OPENS}(?:[a-z'-]{{2,14}}[ ]){{0,4}}?"
    r"(?:summary|recap)\b)[^\n:\].?!]{0,100}(?:[\]:*]|(?=\n))"
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
"""Forms that people use too: said by a user, one is a summary only where nothing was answered before it."""
CLOSED = tuple(form for name, form in _CLOSED.items() if name not in _IN_PLAIN_WORDS)
"""Forms that have an end: what stands behind one is no part of it."""
TO_THE_END = tuple(form for name, form in _TO_THE_END.items() if name not in _IN_PLAIN_WORDS)
"""Openings of a text that is a summary to its end."""
IN_PLAIN_WORDS = tuple(form for name, form in _TO_THE_END.items() if name in _IN_PLAIN_WORDS)
"""Openings of the same in words that people use too."""

ASKS_BACK = "What did we do so far?"
"""What OpenCode says for the user before it asks for a summary: the answer is one."""

SERVER = "server"
"""The source of a summary that a provider's server wrote: it stands for all that came before it."""

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
    """A summary in a text: its form, where it ends, and what it says without the words around it."""

    form: str
    end: int
    text: str


def summary_in(text: str) -> Found | None:
    """Return the summary that a text begins with; None where it begins with none, or with an empty one."""
    if not text or text.isspace():
        return None
    for name, form, closed in _FORMS:
        if (opening := form.match(text)) is not None:
            end = opening.end() if closed else len(text)
            said = _unframed(text[:end], opening.end(), closed=closed)
            return Found(name, end, said) if said else None
    return None


def _unframed(text: str, opened: int, *, closed: bool) -> str:
    """Return what a summary says, without the words that a program put around it."""
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
    whole = _INNER.fullmatch(rest.strip())
    return (whole["text"] if whole is not None else re.sub(r"\A\*{0,2}:?", "", rest)).strip()


def earlier_summaries(entries: Iterable[Said], *, begun: bool = False) -> Iterator[Carried]:
    """Yield the summaries of earlier conversation in messages, oldest first; no result of a tool holds one.

    A message without an id is one as a whole: the summary of another system, as its file holds it. `begun`:
    the conversation has begun before these messages.
    """
    before: Message | None = None
    for entry in entries:
        message = entry.message
        found = list(_in_message(entry, before, begun=begun)) if message.role != "tool" else []
        yield from found
        before, begun = message, begun or bool(found) or message.role in ("assistant", "tool")


def _in_message(entry: Said, before: Message | None, *, begun: bool) -> Iterator[Carried]:
    message = entry.message
    asked = message.role == "assistant" and before is not None and before.text.strip() == ASKS_BACK
    if not entry.id or asked:
        if text := message.text.strip():
            yield Carried("summary", ("asked" if asked else "imported",), text, entry.id)
        return
    for part in message.parts:
        if told := text_of(part):
            yield Carried("summary", (SERVER,), told, entry.id)
        found = summary_in(part.text) if isinstance(part, Text) else None
        if found is None:
            continue
        perhaps = message.role == "user" and found.form in _IN_PLAIN_WORDS
        if not (perhaps and begun):  # a user's own takes no other one's place
            yield Carried("summary", (f"user {found.form}" if perhaps else found.form,), found.text, entry.id)


def is_summary(message: Message) -> bool:
    """Whether a message is a summary of earlier conversation and nothing else."""
    texts = [part.text for part in message.parts if isinstance(part, Text) and part.text.strip()]
    others = any(not isinstance(part, Text) for part in message.parts)
    return bool(texts) and not others and all(_is_all(text) for text in texts)


def _is_all(text: str) -> bool:
    found = summary_in(text)
    return found is not None and not text[found.end :].strip()


def newest_summary(carried: Sequence[Carried]) -> Carried | None:
    """Return the newest summary of what is carried."""
    return next((one for one in reversed(carried) if one.kind == "summary"), None)


# ---- blocks of a provider's server

TITLE: Final = "[Summary of the earlier conversation]"
KINDS: Final = ("compaction", "compaction_summary", "context_compaction")


def text_of(part: Part) -> str:
    """Return the summary in a server's compaction; "" for any other part, and a sealed or failed one."""
    data = _data(part)
    content = data.get("content")
    return content.strip() if isinstance(content, str) else ""


def is_sealed(part: Part) -> bool:
    """Whether a part is a compaction that only its provider can read."""
    data = _data(part)
    return "content" not in data and bool(data.get("encrypted_content"))


def place_of(message: Message) -> int | None:
    """Return the index of the newest part that stands for what came before; None where there is none."""
    return max(places_of(message), default=None)


def places_of(message: Message) -> list[int]:
    """Return the indices of the parts of a reply that stand for what came before."""
    if message.role != "assistant":
        return []
    return [i for i, part in enumerate(message.parts) if text_of(part) or is_sealed(part)]


def said_before(message: Message) -> list[int]:
    """Return the parts of a reply that its newest compaction stands for: what was said before it."""
    parts = message.parts[: place_of(message)]
    return [index for index, part in enumerate(parts) if not isinstance(part, ToolCall | ToolResult)]


def sealed_place(message: Message) -> int | None:
    """Return the index of a message's newest sealed compaction, if that is its newest one."""
    place = place_of(message)
    return place if place is not None and is_sealed(message.parts[place]) else None


def _data(part: Part) -> dict[str, Any]:
    if isinstance(part, Opaque) and part.kind in KINDS and isinstance(part.data, dict):
        return cast("dict[str, Any]", part.data)
    return {}


def with_summaries_told(message: Message) -> Message:
    """Return a message with its readable compactions as text, for whoever does not know such blocks."""
    if not any(map(text_of, message.parts)):
        return message
    parts = (Text(f"{TITLE}\n{text}") if (text := text_of(part)) else part for part in message.parts)
    return msgspec.structs.replace(message, parts=tuple(parts))

"""The checkpoint as it appears in a view, and how a later fold without a log recognises it.

The whole message is wrapped in one versioned marker, the same for every policy. Its attributes say what
belongs to it: whether an acknowledgement follows and how many quoted user messages stand beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from foldline.core.carried.summaries import sealed_place
from foldline.core.checkpoint.serialize import shorten
from foldline.core.cut.elide import level
from foldline.core.decide.continuation import Continuation
from foldline.core.decide.policy import Policy
from foldline.core.log.entries import Carried, Checkpoint, Live, Pin
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import Counter, message_tokens
from foldline.core.secrets.redact import redact

VERSION = 1
_OPEN = re.compile(r'\A<foldline-checkpoint version="(\d+)" ack="([01])" quoted="(\d+)">\n')
_CLOSE = "\n</foldline-checkpoint>"
_SUMMARY, _SUMMARY_END = "<summary>\n", "\n</summary>"
_TAGS = (
    "foldline-checkpoint", "folded-range", "summary", "pinned", "live-state", "standing",
    "project-instructions", "earlier-summary", "kept-words",
)  # fmt: skip
RANGE_HEAD = "What was said here was folded. The work done, and what the user said, as a record:"
LIVE_HEAD = "State of the program around you when this checkpoint was made:"
LIVE_SHARE = 10  # live state takes at most usable / LIVE_SHARE
QUESTION_CAP = 600  # characters of an open question that the checkpoint quotes

_STANDS = {
    "question": "The user was asked this and has not answered. Do not go on before they do.",
    "calls": "The user was asked this through a tool and has not answered. Do not go on before they do.",
    "aborted": "The user stopped the last reply. Do not go on by yourself: wait for what they say.",
    "cut_off": "The last reply was cut off before its end. Go on from where the work stands.",
    "done": "What was asked for was done. Do not begin anything by yourself: wait for what the user says.",
}


class Recognised(msgspec.Struct, frozen=True):
    """A checkpoint of ours in a list of messages, uncounted: its index, and the indices of what it quotes.

    An acknowledgement, if it has one, is the next message. `more` says that other parts follow it in the same
    message: a dialect may join turns of one role.
    """

    index: int
    checkpoint: Checkpoint
    quoted: tuple[int, ...]
    more: bool


class Frame(msgspec.Struct, frozen=True):
    """The text around a summary in its checkpoint, in the words of a policy.

    `pins` are all pins; those that are `shown` (by entry id) are in the view anyway and are not quoted.
    `marks` are the words that the user marked, in the same way.
    `carried` are the instructions and earlier summaries that it quotes.
    `quoted` counts the user messages kept word for word with it, `number` the session's compactions from 1;
    `ack`: an acknowledgement follows. `standing` is the state of the session; it is recorded, and in the text
    too unless what is kept shows it (`told`).
    """

    policy: Policy
    pins: tuple[Pin, ...] = ()
    shown: frozenset[str] = frozenset()
    quoted: int = 0
    ack: bool = False
    number: int = 1
    live: tuple[Live, ...] = ()
    standing: Continuation | None = None
    told: bool = False
    carried: tuple[Carried, ...] = ()
    marks: tuple[Pin, ...] = ()


def checkpoint_text(summary: str, frame: Frame) -> str:
    """Return the text of the message that replaces what is folded."""
    policy = frame.policy
    version = f"Checkpoint {frame.number} of this conversation." if policy.versions else ""
    blocks = [
        version,
        policy.prefix.strip(),
        *_carried_blocks(frame.carried, "summary", "An earlier summary, on which this one builds:"),
        *_summary_blocks(summary, frame),
        *live_blocks(frame.live),
        "" if frame.told else standing_block(frame.standing),
        policy.suffix.strip(),
    ]
    body = "\n\n".join(block for block in blocks if block)
    head = f'<foldline-checkpoint version="{VERSION}" ack="{int(frame.ack)}" quoted="{frame.quoted}">'
    return f"{head}\n{body}{_CLOSE}"


def range_text(summary: str, frame: Frame) -> str:
    """Return the text of the message that replaces a range in the middle of a view; no fold reads it back."""
    body = "\n\n".join((RANGE_HEAD, *_summary_blocks(summary, frame)))
    return f"<folded-range>\n{body}\n</folded-range>"


def _summary_blocks(summary: str, frame: Frame) -> list[str]:
    """Return a summary with its instructions, pins and marks, word for word."""
    pinned, kept = (
        [_block(tag, "entry", pin.entry, pin.text) for pin in pins if pin.entry not in frame.shown]
        for tag, pins in (("pinned", frame.pins), ("kept-words", frame.marks))
    )
    return [
        f"<summary>\n{inert(summary).strip()}\n</summary>",
        *_carried_blocks(frame.carried, "instructions", "Instructions of the project, word for word:"),
        *(["Pinned by the user, word for word:", *pinned] if pinned else []),
        *(["Marked by the user to be kept, word for word:", *kept] if kept else []),
    ]


_CARRIED = (("instructions", "project-instructions"), ("summary", "earlier-summary"))


def _carried_blocks(carried: Sequence[Carried], kind: str, title: str) -> list[str]:
    """Return the texts of a kind, each in tags of its own, which alone are read back of a checkpoint."""
    tag = dict(_CARRIED)[kind]
    blocks = [
        _block(tag, "from", " | ".join(source.replace("|", "_") for source in one.sources), one.text)
        for one in carried
        if one.kind == kind
    ]
    return [title, *blocks] if blocks else []


def _block(tag: str, attribute: str, value: str, text: str) -> str:
    """Put a text between tags of ours, with one attribute."""
    value = re.sub(r'["\n]', "_", value)
    return f'<{tag} {attribute}="{value}">\n{inert(text)}\n</{tag}>'


def _blocks_in(text: str, tag: str, attribute: str) -> list[tuple[str, str]]:
    """Read the blocks of a tag back: the value of the attribute, and the text.

    Behind the last end of one nothing is looked for, so that openings without an end take no time each.
    """
    end = f"\n</{tag}>"
    closed = text[: text.rfind(end) + len(end)] if end in text else ""
    return re.findall(rf'<{tag} {attribute}="([^"\n]*)">\n(.*?){end}', closed, re.DOTALL)


def inert(text: str) -> str:
    """Break tags of ours inside quoted text, so that nothing quoted can end or start a checkpoint."""
    return re.sub(rf"<(/?)(?=(?:{'|'.join(_TAGS)})\b)", r"<\1 ", text)


def make_checkpoint(
    summary: str, frame: Frame, counter: Counter, *, like: Checkpoint | None = None
) -> Checkpoint:
    """Make the checkpoint of a summary; where one like it says the same, its tokens are not counted again."""
    policy, text = frame.policy, checkpoint_text(summary, frame)
    role = policy.summary_role
    same = like is not None and (like.text, like.role) == (text, role)
    return Checkpoint(
        text=text,
        summary=summary,
        role=role,
        ack=policy.ack if frame.ack else None,
        position=policy.summary_position,
        pins=frame.pins,
        tokens=like.tokens if like and same else message_tokens(as_message(text, role), counter),
        number=frame.number,
        live=frame.live,
        standing=msgspec.to_builtins(frame.standing) if frame.standing is not None else {},
        carried=frame.carried,
        marks=frame.marks,
    )


def requoted(text: str, quoted: int) -> str:
    """Return a checkpoint's text with the number of messages that are quoted with it now."""
    return _OPEN.sub(rf'<foldline-checkpoint version="\1" ack="\2" quoted="{quoted}">\n', text)


def as_message(text: str, role: str) -> Message:
    """Return a checkpoint's text as the message that a view adds."""
    return Message("system" if role == "system" else "user", (Text(text),))


def checkpoint_split_off(message: Message) -> Message:
    """Return a message with the checkpoint that it begins with as a part of its own.

    Where user and assistant must take turns, the next user message is joined to the same text.
    """
    first = next(iter(message.parts), None)
    if message.role != "user" or not isinstance(first, Text) or not _OPEN.match(first.text):
        return message
    end = first.text.find(_CLOSE) + len(_CLOSE)
    behind = first.text[end:].lstrip("\n")
    if end < len(_CLOSE) or not behind:
        return message
    parts = (Text(first.text[:end]), Text(behind), *message.parts[1:])
    return msgspec.structs.replace(message, parts=parts, native=None)


def recognise(messages: Sequence[Message]) -> Recognised | None:
    """Find a checkpoint of ours where a view renders one: after system messages and sealed compactions.

    Only user messages (those it quotes) may come before it. It is recognised nowhere else, so that a tool
    result or a later message that quotes a marker stays what it is.
    """
    start = 0
    while start < len(messages) and leads(messages[start]):
        if (found := _read(messages, start, start)) is not None:
            return found
        start += 1
    for index in range(start, len(messages)):
        message = messages[index]
        if message.role != "user" or message.results:
            return None
        if (found := _read(messages, index, start)) is not None:
            return found
    return None


def leads(message: Message) -> bool:
    """Whether a message at the head of a view stays there: instructions, and a sealed compaction."""
    return message.role in ("system", "developer") or sealed_place(message) is not None


def _read(messages: Sequence[Message], index: int, first: int) -> Recognised | None:
    first_part = next(iter(messages[index].parts), None)
    text = first_part.text if isinstance(first_part, Text) else ""
    head = _OPEN.match(text)
    begin, end = text.find(_SUMMARY) + len(_SUMMARY), text.rfind(_SUMMARY_END)
    if head is None or not len(_SUMMARY) <= begin <= end or not text.endswith(_CLOSE):
        return None
    if int(head[1]) > VERSION:
        return None
    behind = text[end:]
    quoted = int(head[3])
    after = index - first >= quoted > 0
    follows = messages[index + 1 : index + 3]  # an acknowledgement, which is never the last message
    ack = head[2] == "1" and len(follows) == 2 and follows[0].role == "assistant" and not follows[0].calls
    first_quoted = index - quoted if after else index + 1 + int(ack)
    checkpoint = Checkpoint(
        text=text,
        summary=text[begin:end],
        role=messages[index].role,
        ack=follows[0].text if ack else None,
        position="after" if after else "before",
        pins=tuple(Pin(*found) for found in _blocks_in(behind, "pinned", "entry")),
        live=tuple(Live(*found) for found in _blocks_in(behind, "live-state", "name")),
        carried=tuple(
            Carried(kind, tuple(sources.split(" | ")), body)
            for kind, tag in _CARRIED
            for sources, body in _blocks_in(text, tag, "from")
        ),
        marks=tuple(Pin(*found) for found in _blocks_in(behind, "kept-words", "entry")),
    )
    quotes = tuple(range(first_quoted, min(first_quoted + quoted, len(messages))))
    return Recognised(index, checkpoint, quotes, more=len(messages[index].parts) > 1)


# ---- live state: what a program says of itself (todos, open files, sub-agents)


def live_blocks(live: Sequence[Live]) -> list[str]:
    """Return the blocks of a checkpoint that hold live state; none where there is none."""
    blocks = [_block("live-state", "name", one.name, one.text.strip()) for one in live]
    return [LIVE_HEAD, *blocks] if blocks else []


def standing_block(standing: Continuation | None) -> str:
    """Say whose turn it is, where no message that is kept shows it; "" where nothing needs to be said."""
    told = _STANDS.get((standing.because or standing.state) if standing is not None else "", "")
    if standing is None or not told:
        return ""
    asked = inert(" ".join(standing.question.split()))
    quote = f"\n> {redact(asked)[:QUESTION_CAP]}" if asked else ""
    return f'<standing state="{standing.state}">\n{told}{quote}\n</standing>'


def fitted(live: Sequence[Live], usable: int, counter: Counter) -> tuple[Live, ...]:
    """Return live state without secrets, in about a tenth of usable: the largest texts lose their middles."""
    clean = [Live(one.name, redact(one.text.strip())) for one in live if one.text.strip()]
    sizes = [counter.count(one.text) for one in clean]
    cap = level(sizes, max(usable // LIVE_SHARE, 1))
    return tuple(Live(one.name, _within(one.text, cap, counter)) for one in clean)


def _within(text: str, cap: int, counter: Counter) -> str:
    """Return a text in at most `cap` tokens: without its middle, or its end where a note of that is too long.

    What fits stays as it is, so that what was fitted once does.
    """
    size = counter.count(text)
    if size <= cap:
        return text
    room = len(text) * cap // size
    for tenths in (10, 8, 6):
        short = shorten(text, room * tenths // 10)
        if counter.count(short) <= cap:
            return short
    while room > 1 and counter.count(_begun(text, room)) > cap:
        room = room * 9 // 10
    return _begun(text, room)


def _begun(text: str, characters: int) -> str:
    return f"{text[:characters].rstrip()}…"

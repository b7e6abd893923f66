"""Whether a reply is a summary, and what of it is stored."""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal

import msgspec

from foldline.core.checkpoint import prompts
from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
from foldline.core.log.entries import Said
from foldline.core.log.messages import texts
from foldline.core.measure.tokens import Counter
from foldline.core.secrets.redact import redact

PREAMBLE = 400  # characters before the first heading that are dropped; more of them is no summary
SCRIPT_SAID, SCRIPT_LEAST = 0.5, 0.1  # shares of letters that are not Latin: the user's, and a summary's
COPIED = 0.8  # share of a reply that may be lines copied from the conversation

Rejection = Literal["stopped", "continuation", "empty", "headings", "too_large", "copy", "loop", "language"]


class Rejected(msgspec.Struct, frozen=True):
    """A rejected reply, with the reason in the words of the receipt and of the next request."""

    why: Rejection
    words: str


CONTINUATION: Final = Rejected("continuation", "a continuation of the conversation")


def check(
    reply: SummaryReply, request: SummaryRequest, headings: Sequence[str] | None = None, *, counter: Counter
) -> str | Rejected:
    """Return what of a reply is stored as a summary (invariant 7), or why it is none.

    `headings` (default: those of the request's family and kind) must all be in it. Wrappers such as code
    fences, `<summary>` and `<analysis>`, and a short remark before the first heading, are taken off.
    """
    wanted = prompts.headings(request.family, request.kind) if headings is None else tuple(headings)
    if reply.stop not in ("end", ""):
        return Rejected("stopped", _STOPS.get(reply.stop, f"the model stopped with {reply.stop!r}"))
    whole = unwrapped(redact(reply.text))
    text = _from_first_heading(whole, wanted)
    rejected = (
        (CONTINUATION if _MARKER.search(whole) else None)
        or _not_a_summary(text, wanted)
        or _wrong_size(text, request, counter)
        or _repeating(text, request.folded)
        or _other_script(text, request)
    )
    return rejected or text


_STOPS = {
    "length": "cut off by the output limit",
    "tools": "the model called a tool instead of writing a summary",
    "error": "the model's reply broke off with an error",
    "aborted": "the reply was cancelled",
}
_ASIDES = ("analysis", "think", "thinking", "scratchpad")
_WRAPPER = re.compile(r"<(summary|checkpoint)>", re.IGNORECASE)
_FENCE = re.compile(
    r"\A\s*(`{3,}|~{3,})[ \t]*+(?:markdown|md|text|txt|xml)?[ \t]*+\n(.*)\n\1\s*\Z", re.DOTALL
)


def unwrapped(text: str) -> str:
    """Take off what models wrap a summary in: reasoning, a code fence round the whole, summary tags."""
    text = _without_asides(text)
    for _ in range(3):
        before = text
        text = text.strip()
        if fence := _FENCE.match(text):
            text = fence[2]
        wrapper = _WRAPPER.search(text)
        if wrapper and len(text[: wrapper.start()].strip()) <= PREAMBLE:
            text = _inside(text, wrapper)
        if text == before:
            break
    return text.strip()


def _without_asides(text: str) -> str:
    """Take off reasoning: up to the tag that ends it, or to the summary; what never ends is none."""
    for tag in _ASIDES:
        lower = text.replace("\u0130", "I").lower()  # of the same length
        kept, done, closes = list[str](), 0, 0
        while (opens := lower.find(f"<{tag}>", done)) >= 0:
            behind = opens + len(tag) + 2
            closes = lower.find(f"</{tag}>", behind) if closes >= 0 else closes
            summary = lower.find("<summary>", behind, closes if closes >= 0 else len(lower))
            if max(closes, summary) < 0:
                break
            kept.append(text[done:opens])
            done = summary if summary >= 0 else closes + len(tag) + 3
        text = "".join((*kept, text[done:]))
    return text


def _inside(text: str, opening: re.Match[str]) -> str:
    """Return the content of a tag; all that follows it if it is not closed."""
    end = re.compile(f"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
    return text[opening.end() : end.start() if end else len(text)].strip()


def _headings_in(text: str, wanted: Sequence[str]) -> dict[str, int]:
    """Return where each wanted heading first occurs in a text; missing ones are left out."""
    found = {heading: _heading(heading).search(text) for heading in wanted}
    return {heading: match.start() for heading, match in found.items() if match is not None}


@lru_cache(maxsize=64)
def _heading(heading: str) -> re.Pattern[str]:
    """A line that is a heading: it may be numbered or bold, and where it is marked with # say more."""
    words = re.escape(heading).replace(r"\&", "(?:&|and)").replace(r"\ ", r"\s+")
    return re.compile(
        rf"^(?:[ \t>]*\#[ \t\#*_\d.)\-]*{words}(?:[\s:*_]*| [^\n]*)|[ \t>*_\d.)\-]*{words}[ \t:*_]*)$",
        re.IGNORECASE | re.MULTILINE,
    )


def _from_first_heading(text: str, wanted: Sequence[str]) -> str:
    first = min(_headings_in(text, wanted).values(), default=0)
    return text[first:].strip() if len(text[:first].strip()) <= PREAMBLE else text


_SPEECH = re.compile(r"(?:sorry|sure|okay|ok|of course|let me|i(?:['\u2019](?:m|ll))?)\b", re.IGNORECASE)
_MARKER = re.compile(
    r"^\[(?:user|assistant(?: thinking)?|harness|tool call|tool result)\]:|<\|[a-z_]{2,30}\|>|"
    r"^[ \t]*<(?:tool_call|function_calls?|tool_use|invoke)\b",
    re.IGNORECASE | re.MULTILINE,
)
_SPEAKER = re.compile(r"^(human|user|assistant|ai):\s", re.IGNORECASE | re.MULTILINE)


def _not_a_summary(text: str, wanted: Sequence[str]) -> Rejected | None:
    """Reject a text whose form shows that it is not a summary."""
    if not re.search(r"\w", text):
        return Rejected("empty", "empty")
    found = _headings_in(text, wanted)
    missing = [heading for heading in wanted if heading not in found]
    speakers = {name.lower() for name in _SPEAKER.findall(text)}
    both = bool(speakers & {"human", "user"} and speakers & {"assistant", "ai"})
    if both or ((missing or not wanted) and _SPEECH.match(text)):
        return CONTINUATION
    if missing:
        return Rejected("headings", f"without the headings {', '.join(missing)}")
    if wanted and len(text[: min(found.values())].strip()) > PREAMBLE:
        return CONTINUATION
    bare = re.sub(r"(?m)^[ \t]*#.*$|\(none\)|\W", "", text, flags=re.IGNORECASE)
    return Rejected("empty", "empty under its headings") if wanted and not bare else None


def _wrong_size(text: str, request: SummaryRequest, counter: Counter) -> Rejected | None:
    """Reject a text that is larger than what was asked for, or than what it sums up."""
    tokens = counter.count(text)
    if tokens > request.tokens:
        return Rejected("too_large", f"{tokens:,} tokens where {request.tokens:,} were asked for")
    given = sum(entry.tokens for entry in request.folded)
    if not given:
        given = sum(counter.count(said) for entry in request.folded for said in texts(entry.message))
    given += counter.count(request.previous) if request.previous else 0
    if tokens <= given:
        return None
    return Rejected("too_large", f"larger than its input ({tokens:,} tokens of {given:,})")


def _repeating(text: str, folded: Sequence[Said]) -> Rejected | None:
    """Reject a text that has run into a loop, or is a copy of what it should sum up.

    A short text may quote all it needs.
    """
    lines = [line.strip() for line in text.split("\n")]
    long = [line for line in lines if len(line) >= 12]
    most = max(Tally(long).values(), default=0)
    if most >= 8 and most * 3 > len(long):
        return Rejected("loop", "one line over and over")
    source = {line.strip() for entry in folded for said in texts(entry.message) for line in said.split("\n")}
    copied = sum(len(line) for line in long if line in source)
    too_many = len(text) >= 4 * PREAMBLE and copied > COPIED * sum(map(len, lines))
    return Rejected("copy", "a copy of the conversation") if too_many else None


def _other_script(text: str, request: SummaryRequest) -> Rejected | None:
    """Reject a text in Latin letters where the user writes in others; names and headings may be Latin."""
    said = "".join(item.text for item in request.ledger.items if item.kind == "user")
    if _foreign(said) < SCRIPT_SAID or _foreign(text) > SCRIPT_LEAST:
        return None
    return Rejected("language", "not in the language that the user writes in")


def _foreign(text: str) -> float:
    """The share of a text's letters that are not Latin."""
    letters = [letter for letter in text if letter.isalpha()]
    return sum(letter > "\u024f" for letter in letters) / max(1, len(letters))

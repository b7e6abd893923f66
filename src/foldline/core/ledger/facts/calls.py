"""Calls with their results, and whether they worked: what the kinds of fact are taken from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from foldline.core.cut.notes import UNANSWERED, error_in, is_cleared
from foldline.core.log.entries import Said
from foldline.core.log.messages import Text, ToolCall, ToolResult
from foldline.core.log.references import stored_calls

HEAD = 600
TAIL = 1500
"""Characters at the two ends of a result in which its verdict is looked for."""


class Use(msgspec.Struct, frozen=True):
    """One call: the entries it stands in, and its result if there is one.

    `passed` is what the result says about itself; None where it says nothing. `known` keeps what was
    worked out of the call already, since several kinds of fact ask the same of it.
    """

    entry: str
    call: ToolCall
    result: ToolResult | None = None
    answered_in: str = ""
    passed: bool | None = None
    known: dict[str, Any] = {}


_EXIT = re.compile(
    r"^\W{0,3}(?:exit(?:ed)? ?code:?|process exited with code|command exited with code|returncode:?|"
    r"exit status:?|<returncode>|exited with code:?)\s*(-?\d{1,10})\b",
    re.IGNORECASE | re.MULTILINE,
)
_NAMES_A_CODE = ("exit", "returncode")
_EXIT_WITHIN = re.compile(
    r"(?:\"exit_?code\"\s*:\s*|completed with exit code |finished with exit code |exit status |"
    r"returned non-zero exit status )(-?\d{1,10})\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\s*(?:<tool_use_error>|<error>|\[?error\]?\b\s*(?:\[\w+\])?:|error (?:executing|running|while|"
    r"applying|reading)|"
    r"failed to |could not |couldn't |cannot |can't |file not found|no such file|file does not exist|"
    r"path does not exist|permission denied|access denied|apply_patch verification failed|invalid (?:arg|"
    r"input|param|patch)|"
    r"string to replace not found|old_?string not found|unknown tool|tool .{1,60} not found|"
    r"command (?:aborted|timed out)|the user doesn't want|user (?:rejected|denied|declined|cancelled)|"
    r"\[?request interrupted|\[?tool (?:call )?(?:execution )?(?:was )?(?:interrupted|aborted|cancelled)|"
    r"enoent|eacces|traceback \(most recent call last\)|rejected by user)",
    re.IGNORECASE,
)


_REJECTED = re.compile(
    r"operation cancelled|doesn['’]t want to (?:proceed|take this action)|user (?:rejected|denied|declined|"
    r"cancelled)|rejected by (?:the )?user|"
    r"\[?request interrupted by user|tool use was rejected|<tool_use_error>sibling tool call|cancelled: "
    r"parallel tool call",
    re.IGNORECASE,
)


def ends(text: str) -> str:
    """Return the head and the tail of a result in whole lines: all of it where it is short."""
    if len(text) <= HEAD + TAIL:
        return text
    return f"{text[:HEAD]}\n{text[-TAIL:].partition(chr(10))[2]}"


_REJECTED_WORDS = (
    "cancelled",
    "t want to",
    "rejected",
    "denied",
    "declined",
    "interrupted",
    "sibling tool call",
)


def rejected(result: ToolResult) -> bool:
    """Whether a call never ran: a person said no, or it fell with the batch it came in."""
    head = result.text[:HEAD]
    return holds(head, _REJECTED_WORDS) and bool(_REJECTED.search(head))


def holds(text: str, words: Iterable[str]) -> bool:
    """Whether a text holds one of the words, given in lower case: much faster than a pattern of them."""
    lowered = text.lower()
    return any(word in lowered for word in words)


def exit_code(text: str) -> int | None:
    """Return the exit code that a result names at its head or tail, as the known agents write it."""
    parts = (text[:HEAD], text[-TAIL:]) if len(text) > HEAD else (text,)
    parts = tuple(part for part in parts if holds(part, _NAMES_A_CODE))
    for pattern in (_EXIT, _EXIT_WITHIN):
        for part in parts:
            found = [int(match.group(1)) for match in pattern.finditer(part)]
            if found:
                return next((code for code in found if code), 0)
    return None


def verdict(result: ToolResult) -> bool | None:
    """Say whether a call worked, from the flag, the exit code and the first words of its result."""
    if result.is_error:
        return False
    text = result.text
    code = exit_code(text)
    if code is not None:
        return code == 0
    return False if _REFUSED.match(text[:HEAD]) else None


def _as_it_was(result: ToolResult) -> ToolResult:
    """Return a result without the note that a blanked one has in its place: only its error is left."""
    if not is_cleared(result.text):
        return result
    error = error_in(result.text) if result.is_error else ""
    return msgspec.structs.replace(result, content=(Text(error),) if error else ())


def uses(entries: Sequence[Said]) -> tuple[Use, ...]:
    """Pair the calls of the entries with their results, in the order of the calls.

    A result answers the newest open call with its id; ids may repeat. That of a call which its provider keeps
    has one without a name.
    """
    found: list[Use] = []
    stored = 0  # calls that are not here so far
    waiting: dict[str, list[int]] = {}
    for entry in entries:
        stored += stored_calls(entry.message)
        for part in entry.message.parts:
            if isinstance(part, ToolResult) and stored and part.call_id not in waiting:
                waiting[part.call_id] = [len(found)]
                found.append(Use(entry.id, ToolCall(part.call_id, "stored call", {})))
                stored -= 1
            if isinstance(part, ToolCall):
                waiting.setdefault(part.id, []).append(len(found))
                found.append(Use(entry=entry.id, call=part))
            elif isinstance(part, ToolResult) and waiting.get(part.call_id) and part.text != UNANSWERED:
                index = waiting[part.call_id].pop()
                result = _as_it_was(part)
                found[index] = msgspec.structs.replace(
                    found[index], result=result, answered_in=entry.id, passed=verdict(result)
                )
    return tuple(found)


@lru_cache(maxsize=4_096)
def plain(key: str) -> str:
    """Reduce an argument's or a tool's name to its letters and digits, lower case."""
    return re.sub(r"[^a-z0-9]", "", key.lower())


def arguments(call: ToolCall) -> dict[str, Any]:
    """Return the call's arguments by plain key; a call that carries bare text has it under "input"."""
    if isinstance(call.arguments, str):
        return {"input": call.arguments}
    return by_plain_key(call.arguments)


def by_plain_key(row: Any) -> dict[str, Any]:
    """Return a JSON object with its keys made plain."""
    return {plain(str(key)): value for key, value in row.items()}


def as_list(value: Any) -> list[Any]:
    """Return a JSON list as it is, and of anything else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def rows_of(value: Any, most: int = 200) -> list[dict[str, Any]]:
    """Return the objects in a JSON list with their keys made plain, the first `most` of them."""
    return [by_plain_key(row) for row in as_list(value)[:most] if isinstance(row, dict)]


def strings(value: Any, depth: int = 4) -> Iterator[str]:
    """Yield the strings in a JSON value, to a depth."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, dict):
        for inner in value.values():  # pyright: ignore[reportUnknownVariableType]  JSON has no narrower type
            yield from strings(inner, depth - 1)
    elif depth and isinstance(value, list):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]
            yield from strings(inner, depth - 1)


# Arguments that hold what is written rather than what is addressed. A body also shows by its size.
_BODY = re.compile(
    r"(?i)^(?:old|new|content|contents|text|body|patch|input|prompt|todos?|plan|edits?|message|code|"
    r"explanation|description|instructions?|reasoning|thought|questions?|answers?|title|subject|summary)"
    r"(?:$|_|[A-Z])"
)
BODY_SIZE = 400  # characters from which an argument is a body, whatever it is called


def argument_texts(value: Any, *, body: bool = False) -> Iterator[tuple[bool, str]]:
    """Yield (is a body, text) for every value in a call's arguments; keys say what is a body."""
    if isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            inner = body or _BODY.match(str(key)) is not None  # pyright: ignore[reportUnknownArgumentType]
            yield from argument_texts(item, body=inner)
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from argument_texts(item, body=body)
    elif isinstance(value, str):
        yield body or "<<" in value or len(value) > BODY_SIZE, value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield body, str(value)

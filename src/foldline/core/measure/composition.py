"""Where the tokens of a history are: by role, kind, tool, file and turn; large, repeated, unpaired."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import pairwise
from typing import Any, Literal, cast

import msgspec

from foldline.core.log.codec import encode
from foldline.core.log.entries import Boundary, Compacted, Lifted, Reason, Said
from foldline.core.log.messages import Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.pairing import PairingProblem, pairs
from foldline.core.measure.tokens import MESSAGE_OVERHEAD, Counter, part_tokens

_PATH_KEYS = frozenset(
    {
        "path", "paths", "file", "files", "filepath", "filepaths", "filename", "targetfile", "notebookpath",
        "absolutepath", "relativepath", "relativeworkspacepath", "abspath", "documentpath",
    }
)  # fmt: skip
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_READ_CHARS = 400  # a call whose arguments are longer carries content, so it is no read
_LABEL_CHARS = 80


class Share(msgspec.Struct, frozen=True):
    """Tokens under one name, and how many messages, parts or calls they come from."""

    name: str
    tokens: int
    count: int


class Large(msgspec.Struct, frozen=True):
    """One message: its entry, its place in the input, what it is, its tokens."""

    entry: str
    index: int
    what: str
    tokens: int


class TurnSize(msgspec.Struct, frozen=True):
    """What a user's prompt set off: the prompt's place and opening words (turn 0: what came before any)."""

    entry: str
    index: int
    request: str
    tokens: int
    messages: int
    calls: int


class Repeat(msgspec.Struct, frozen=True):
    """A call repeated with the same arguments: `tokens` is what all its results but the newest take."""

    tool: str
    what: str
    times: int
    tokens: int


class BoundaryShown(msgspec.Struct, frozen=True):
    """A boundary; `first_kept` is the place of the first message that it kept (None: none of this list)."""

    entry: str
    kind: Literal["compacted", "pruned", "undone", "redone"]
    reason: Reason | Literal["imported", ""]
    tokens_before: int
    tokens_after: int
    first_kept: int | None


class Composition(msgspec.Struct, frozen=True):
    """Where the tokens are. Each of `by_role`, `by_kind` and `by_turn` adds up to `tokens`.

    Shares come largest first, turns in order.
    `by_tool` counts a tool's calls and results; `by_file` those of calls that name a file in their arguments,
    a call that names several counting for each.
    """

    tokens: int
    messages: int
    by_role: tuple[Share, ...]
    by_kind: tuple[Share, ...]
    by_tool: tuple[Share, ...]
    by_file: tuple[Share, ...]
    by_turn: tuple[TurnSize, ...]
    largest: tuple[Large, ...]
    repeated: tuple[Repeat, ...]
    boundaries: tuple[BoundaryShown, ...]
    problems: tuple[PairingProblem, ...]


def composition(
    said: Sequence[Said],
    *,
    counter: Counter,
    boundaries: Sequence[Boundary] = (),
    index: Mapping[str, int] | None = None,
    largest: int = 10,
) -> Composition:
    """Measure a history in one pass: tokens in `counter`'s count, the `largest` messages, problems found.

    `said` are the messages in order, `boundaries` what the log holds of them; `index` maps the ids of both to
    places in the input (default: places in `said`). Message framing counts as the kind "framing". Results
    count to role tool, whichever role carries them.
    """
    calls, problems = msgspec.structs.astuple(pairs(said))
    tally = _Tally(counter, calls)
    for number, entry in enumerate(said):
        tally.take(number, entry)
    if index is None:
        index = {entry.id: number for number, entry in enumerate(said)}
    places = [index[entry.id] for entry in said]
    return Composition(
        tokens=sum(tally.sizes),
        messages=len(said),
        by_role=_shares(tally.roles),
        by_kind=_shares(tally.kinds),
        by_tool=_shares(tally.tools),
        by_file=_shares(tally.files),
        by_turn=tuple(_turns(said, tally.sizes, places)),
        largest=tuple(_largest(said, tally.sizes, calls, places, largest)),
        repeated=tuple(_repeated(tally.made)),
        boundaries=tuple(_shown(boundaries, index)),
        problems=tuple(msgspec.structs.replace(one, index=places[one.index]) for one in problems),
    )


class _Sum(msgspec.Struct):
    tokens: int = 0
    count: int = 0


class _Made(msgspec.Struct):
    """The calls with one name and one set of arguments: their number, and the tokens of each result."""

    tool: str
    what: str
    times: int = 0
    results: list[int] = []


class _Tally:
    """Sums that grow message by message."""

    def __init__(self, counter: Counter, calls: dict[tuple[int, int], ToolCall]) -> None:
        self._counter = counter
        self._calls = calls
        self.sizes: list[int] = []
        self.roles: dict[str, _Sum] = {}
        self.kinds: dict[str, _Sum] = {}
        self.tools: dict[str, _Sum] = {}
        self.files: dict[str, _Sum] = {}
        self.made: dict[tuple[str, bytes], _Made] = {}

    def take(self, index: int, entry: Said) -> None:
        """Add a message."""
        message = entry.message
        _add(self.kinds, "framing", MESSAGE_OVERHEAD)
        _add(self.roles, _role(message), MESSAGE_OVERHEAD)
        total = MESSAGE_OVERHEAD
        for number, part in enumerate(message.parts):
            tokens = part_tokens(part, self._counter)
            total += tokens
            _add(self.kinds, _kind(part), tokens)
            _add(self.roles, "tool" if isinstance(part, ToolResult) else message.role, tokens, count=0)
            if isinstance(part, ToolCall):
                self._call(part, tokens)
            elif isinstance(part, ToolResult):
                self._result(self._calls.get((index, number)), tokens)
        self.sizes.append(total)

    def _call(self, call: ToolCall, tokens: int) -> None:
        _add(self.tools, call.name, tokens)
        for path in paths(call):
            _add(self.files, path, tokens)
        key = _read_key(call)
        if key is not None:
            self.made.setdefault(key, _Made(call.name, _label(call))).times += 1

    def _result(self, call: ToolCall | None, tokens: int) -> None:
        _add(self.tools, call.name if call else "(no call)", tokens, count=0 if call else 1)
        if call is None:
            return
        for path in paths(call):
            _add(self.files, path, tokens, count=0)
        key = _read_key(call)
        if key is not None:
            self.made[key].results.append(tokens)


def paths(call: ToolCall) -> Iterator[str]:
    """Yield the distinct files that a call's arguments name, by the arguments' names or a patch's lines."""
    found: dict[str, None] = {}
    for key, value in call.arguments.items() if isinstance(call.arguments, dict) else ():
        if re.sub(r"[_-]", "", key).lower() in _PATH_KEYS:
            for path in _listed(value):
                if isinstance(path, str) and path.strip("./ "):
                    found[path.strip().removeprefix("file://").removeprefix("./")] = None
    for text in _texts(call.arguments):
        if "*** Begin Patch" in text:
            found.update((path.strip(), None) for path in _PATCHED.findall(text))
    yield from found


def _texts(arguments: dict[str, Any] | str) -> Iterator[str]:
    values = [arguments] if isinstance(arguments, str) else list(arguments.values())
    for value in values:
        for text in _listed(value):
            if isinstance(text, str):
                yield text


def _listed(value: Any) -> list[Any]:
    """Return a value as a list: a list as it is, anything else as its only element."""
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _read_key(call: ToolCall) -> tuple[str, bytes] | None:
    """Return what makes two reads equal: tool and arguments; None if it names no file or has content."""
    if not isinstance(call.arguments, dict) or not any(paths(call)):
        return None
    written = encode(sorted(call.arguments.items()))
    return (call.name, written) if len(written) <= _READ_CHARS else None


def _role(message: Message) -> str:
    """Return the role that a message's framing counts to: tool if it holds only results."""
    only_results = bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)
    return "tool" if only_results else message.role


def _kind(part: Part) -> str:
    match part:
        case Text():
            return "text"
        case Thinking():
            return "thinking"
        case ToolCall():
            return "calls"
        case ToolResult():
            return "results"
        case _:
            return "media and other"


def _add(sums: dict[str, _Sum], name: str, tokens: int, count: int = 1) -> None:
    found = sums.setdefault(name, _Sum())
    found.tokens += tokens
    found.count += count


def _shares(sums: dict[str, _Sum]) -> tuple[Share, ...]:
    shares = (Share(name, found.tokens, found.count) for name, found in sums.items())
    return tuple(sorted(shares, key=lambda share: (-share.tokens, share.name)))


def _turns(said: Sequence[Said], sizes: Sequence[int], places: Sequence[int]) -> Iterator[TurnSize]:
    """Yield the turns; the first of several prompts in a row starts one."""
    starts = [
        index
        for index, entry in enumerate(said)
        if index == 0 or (entry.message.is_prompt and not said[index - 1].message.is_prompt)
    ]
    for start, end in pairwise([*starts, len(said)]):
        calls = sum(len(entry.message.calls) for entry in said[start:end])
        request = _opening(said[start].message.text) if said[start].message.is_prompt else ""
        yield TurnSize(said[start].id, places[start], request, sum(sizes[start:end]), end - start, calls)


def _largest(
    said: Sequence[Said],
    sizes: Sequence[int],
    calls: dict[tuple[int, int], ToolCall],
    places: Sequence[int],
    most: int,
) -> Iterator[Large]:
    for tokens, negated in nlargest(most, ((size, -index) for index, size in enumerate(sizes))):
        index = -negated
        yield Large(said[index].id, places[index], _what(said[index].message, index, calls), tokens)


def _what(message: Message, index: int, calls: dict[tuple[int, int], ToolCall]) -> str:
    """Describe a message in a few words."""
    answered = [calls[index, number] for number in range(len(message.parts)) if (index, number) in calls]
    if message.results and message.role != "assistant":
        shown = ", ".join(_label(call) for call in answered[:3]) or "its call is not here"
        return f"tool result: {shown}{', ...' if len(answered) > 3 else ''}"
    if message.calls and not message.text:
        return f"assistant: {', '.join(_label(call) for call in message.calls[:3])}"
    return f"{message.role}: {_opening(message.text)}"


def _label(call: ToolCall) -> str:
    """Describe a call in a few words: its name, and the file or the first short argument."""
    named = next(paths(call), None)
    if named is None and isinstance(call.arguments, dict):
        named = next(
            (value for value in call.arguments.values() if isinstance(value, str) and value.strip()), ""
        )
    return f"{call.name} {_opening(named or '')}".strip()


def _opening(text: str) -> str:
    """Return the beginning of a text, cut to fit a table."""
    line = " ".join(text[: _LABEL_CHARS * 8].split())
    return line if len(line) <= _LABEL_CHARS else line[: _LABEL_CHARS - 1] + "…"


def _repeated(made: dict[tuple[str, bytes], _Made]) -> Iterator[Repeat]:
    """Yield what was read more than once, the most wasteful first."""
    again = [found for found in made.values() if len(found.results) > 1]
    for found in sorted(again, key=lambda one: -sum(one.results[:-1])):
        yield Repeat(found.tool, found.what, found.times, sum(found.results[:-1]))


def _shown(boundaries: Sequence[Boundary], places: Mapping[str, int]) -> Iterator[BoundaryShown]:
    for boundary in boundaries:
        if isinstance(boundary, Lifted):
            kind = "undone" if boundary.lifted else "redone"
            yield BoundaryShown(boundary.id, kind, "", 0, 0, None)
            continue
        receipt = boundary.receipt
        kept = places.get(boundary.first_kept or "") if isinstance(boundary, Compacted) else None
        kind = "compacted" if isinstance(boundary, Compacted) else "pruned"
        yield BoundaryShown(
            boundary.id, kind, receipt.reason, receipt.tokens_before, receipt.tokens_after, kept
        )

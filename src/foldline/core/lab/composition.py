"""Where the tokens of a history are: by role, kind, tool, file and turn; the largest messages, problems."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import pairwise
from typing import Final, Literal

import msgspec

from foldline.core.cut.pairing import Place, calls_answered
from foldline.core.cut.prune import Read, label, one_line, read_of
from foldline.core.ledger.facts.uses import Use
from foldline.core.log.entries import Compacted, Reason, Said
from foldline.core.log.messages import Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.tokens import MESSAGE_OVERHEAD, Counter, part_tokens

ProblemKind = Literal["open", "unanswered", "orphan", "late", "answered_twice", "duplicate_id"]

_LABEL = 80  # characters of a message in a table
_KINDS: Final[dict[type[Part], str]] = {
    Text: "text",
    Thinking: "thinking",
    ToolCall: "calls",
    ToolResult: "results",
}


class Share(msgspec.Struct, frozen=True):
    """Tokens under one name, and how many messages, parts or calls they come from."""

    name: str
    tokens: int
    count: int


class Large(msgspec.Struct, frozen=True):
    """One message: its entry, its index in the input, a description, its tokens."""

    entry: str
    index: int
    what: str
    tokens: int


class TurnSize(msgspec.Struct, frozen=True):
    """A turn: the index and opening words of its prompt (the first may have none), and its size."""

    entry: str
    index: int
    request: str
    tokens: int
    messages: int
    calls: int


class Repeat(msgspec.Struct, frozen=True):
    """A file read again with the same arguments; `tokens` counts all results except the newest."""

    tool: str
    what: str
    times: int
    tokens: int


class BoundaryShown(msgspec.Struct, frozen=True):
    """A boundary; `first_kept` is the index of the first kept message (None: not in this list)."""

    entry: str
    kind: Literal["compacted"]
    reason: Reason | Literal["imported"]
    tokens_before: int
    tokens_after: int
    first_kept: int | None


class PairingProblem(msgspec.Struct, frozen=True):
    """A call or result that does not pair; `index` is the index of the message in the input.

    `kind` is open (a call of the newest turn without a result), unanswered (an earlier one), orphan (a result
    without a call), late (a prompt between the call and its result), answered_twice or duplicate_id (a call
    with the id of one that is still open).
    """

    kind: ProblemKind
    call_id: str
    tool: str
    index: int
    entry: str


class Composition(msgspec.Struct, frozen=True):
    """Where the tokens are. Each of `by_role`, `by_kind` and `by_turn` adds up to `tokens`.

    Shares are sorted by size, turns by order. `by_tool` counts a tool's calls and results; `by_file` those of
    calls that read or change a file; a call that touches several files counts for each.
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
    boundaries: Sequence[Compacted] = (),
    index: Mapping[str, int] | None = None,
    largest: int = 10,
) -> Composition:
    """Measure a history in one pass: tokens by `counter`, the `largest` messages, problems.

    `said` are the messages in order, `boundaries` those of the log. `index` maps the ids of both to indices
    in the input (default: in `said`). Message framing counts as the kind "framing"; results count as role
    tool, whatever role the message has.
    """
    tally = _Tally(said, counter)
    index = index or {entry.id: number for number, entry in enumerate(said)}
    newest = nlargest(largest, range(len(said)), key=lambda number: (tally.sizes[number], -number))
    return Composition(
        tokens=sum(tally.sizes),
        messages=len(said),
        by_role=tally.roles.shares(),
        by_kind=tally.kinds.shares(),
        by_tool=tally.tools.shares(),
        by_file=tally.files.shares(),
        by_turn=tuple(_turns(said, tally.sizes, index)),
        largest=tuple(
            Large(
                said[n].id, index[said[n].id], _describe(said[n].message, tally.answered[n]), tally.sizes[n]
            )
            for n in newest
        ),
        repeated=tuple(_repeated(tally.reads)),
        boundaries=tuple(_boundary_row(boundary, index) for boundary in boundaries),
        problems=tuple(_problems(said, index)),
    )


class _Sums:
    """Tokens and counts by name."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, int]] = {}

    def add(self, name: str, tokens: int, count: int = 1) -> None:
        before = self._found.get(name, (0, 0))
        self._found[name] = (before[0] + tokens, before[1] + count)

    def shares(self) -> tuple[Share, ...]:
        found = (Share(name, tokens, count) for name, (tokens, count) in self._found.items())
        return tuple(sorted(found, key=lambda share: (-share.tokens, share.name)))


class _Tally:
    """Sums over a history. A result counts to the newest call of its id before it."""

    def __init__(self, said: Sequence[Said], counter: Counter) -> None:
        self.sizes: list[int] = []
        self.answered: list[list[ToolCall]] = []  # by message: the calls that its results answer
        self.roles, self.kinds, self.tools, self.files = _Sums(), _Sums(), _Sums(), _Sums()
        self.reads: dict[Read, list[tuple[ToolCall, int]]] = defaultdict(list)  # with each result's tokens
        asked = calls_answered(entry.message for entry in said)
        uses: dict[Place, Use] = {}
        for at, entry in enumerate(said):
            message = entry.message
            bare = bool(message.parts) and len(message.results) == len(message.parts)
            self.kinds.add("framing", MESSAGE_OVERHEAD)
            self.roles.add("tool" if bare else message.role, MESSAGE_OVERHEAD)
            self.sizes.append(MESSAGE_OVERHEAD)
            self.answered.append([])
            for place, part in enumerate(message.parts):
                tokens = part_tokens(part, counter)
                self.sizes[-1] += tokens
                self.kinds.add(_KINDS.get(type(part), "media and other"), tokens)
                self.roles.add("tool" if isinstance(part, ToolResult) else message.role, tokens, 0)
                if isinstance(part, ToolCall):
                    use = uses[at, place] = Use(entry.id, part)
                    self._count(use, tokens, 1)
                elif isinstance(part, ToolResult) and (at, place) not in asked:
                    self.tools.add("(no call)", tokens)
                elif isinstance(part, ToolResult):
                    use = uses[asked[at, place]]
                    self._count(use, tokens, 0)
                    self.answered[-1].append(use.call)
                    if (read := read_of(use.call)) is not None:
                        self.reads[read].append((use.call, tokens))

    def _count(self, use: Use, tokens: int, calls: int) -> None:
        self.tools.add(use.call.name, tokens, calls)
        for path in dict.fromkeys(touch.path for touch in use.touches):
            self.files.add(path, tokens, calls)


def _turns(said: Sequence[Said], sizes: Sequence[int], places: Mapping[str, int]) -> Iterator[TurnSize]:
    """Yield the turns; the first of several prompts in a row starts one."""
    prompts = [entry.message.is_prompt for entry in said]
    starts = [n for n, prompt in enumerate(prompts) if n == 0 or (prompt and not prompts[n - 1])]
    for start, end in pairwise([*starts, len(said)]):
        first_entry = said[start]
        calls = sum(len(entry.message.calls) for entry in said[start:end])
        request = one_line(first_entry.message.text, _LABEL) if prompts[start] else ""
        yield TurnSize(
            first_entry.id, places[first_entry.id], request, sum(sizes[start:end]), end - start, calls
        )


def _describe(message: Message, answered: Sequence[ToolCall]) -> str:
    """Describe a message in a few words; `answered` are the calls of its results."""
    if message.results and message.role != "assistant":
        labels = ", ".join(map(label, answered[:3])) or "its call is not here"
        return f"tool result: {labels}{', ...' if len(answered) > 3 else ''}"
    if message.calls and not message.text:
        return f"assistant: {', '.join(map(label, message.calls[:3]))}"
    return f"{message.role}: {one_line(message.text, _LABEL)}"


def _repeated(reads: Mapping[Read, Sequence[tuple[ToolCall, int]]]) -> list[Repeat]:
    """Return the repeated reads, most wasteful first."""
    repeats: list[Repeat] = []
    for results in reads.values():
        if len(results) > 1:
            call, older_tokens = results[0][0], sum(tokens for _, tokens in results[:-1])
            repeats.append(Repeat(call.name, label(call), len(results), older_tokens))
    return sorted(repeats, key=lambda repeat: -repeat.tokens)


def _boundary_row(boundary: Compacted, places: Mapping[str, int]) -> BoundaryShown:
    receipt = boundary.receipt
    return BoundaryShown(
        entry=boundary.id,
        kind="compacted",
        reason=receipt.reason,
        tokens_before=receipt.tokens_before,
        tokens_after=receipt.tokens_after,
        first_kept=places.get(boundary.first_kept or ""),
    )


def _problems(said: Sequence[Said], places: Mapping[str, int]) -> list[PairingProblem]:
    """Return the calls and results that do not pair, in order; a result answers the newest call of its id."""
    problems: list[PairingProblem] = []

    def report(kind: ProblemKind, entry: Said, call_id: str, tool: str) -> None:
        problems.append(PairingProblem(kind, call_id, tool, places[entry.id], entry.id))

    waiting: dict[str, list[tuple[Said, ToolCall, int]]] = defaultdict(list)  # with the turn of the call
    answered: dict[str, str] = {}  # by id: the tool of the call that was answered last
    turn = 0
    for entry in said:
        turn_before, turn = turn, turn + entry.message.is_prompt
        for part in entry.message.parts:
            if isinstance(part, ToolCall):
                if waiting[part.id]:
                    report("duplicate_id", entry, part.id, part.name)
                waiting[part.id].append((entry, part, turn))
            elif isinstance(part, ToolResult) and waiting[part.call_id]:
                _, call, call_turn = waiting[part.call_id].pop()
                answered[call.id] = call.name
                if call_turn < turn_before:
                    report("late", entry, call.id, call.name)
            elif isinstance(part, ToolResult):
                kind = "answered_twice" if part.call_id in answered else "orphan"
                report(kind, entry, part.call_id, answered.get(part.call_id, ""))
    for entry, call, call_turn in (one for calls in waiting.values() for one in calls):
        report("open" if call_turn == turn else "unanswered", entry, call.id, call.name)
    return sorted(problems, key=lambda problem: problem.index)

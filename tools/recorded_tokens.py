"""Hold the tokens that agents recorded against Foldline's own count.

    python -m tools.recorded_tokens ../shared/data            printed
    python -m tools.recorded_tokens ../shared/data --save     increments and compactions into docs/results/README.md

Takes the folder of recorded sessions (`native/` and `sessions/` in it). What an agent counts holds what its file lacks
(system prompt, tools, reminders, encrypted thinking), so contexts cannot agree; increments can, since what stands in
every request cancels out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from tools.results import Table, save, shown

from foldline.core.measure.tokens import MESSAGE_OVERHEAD, OFFLINE, json_text, message_tokens
from foldline.transcripts import CompactionRecord, FactRecord, MessageRecord, read

LEAST = 50  # tokens of an increment from which on its relative error says something


class Step(msgspec.Struct):
    """What came between two counted replies: what the second prompt grew by, and our estimate of it."""

    recorded: int
    ours: int


class Count(msgspec.Struct):
    """What an agent counted, and what we count of the same."""

    recorded: int
    ours: int

    @property
    def ratio(self) -> float:
        """Theirs by ours."""
        return self.recorded / max(self.ours, 1)


class Session(msgspec.Struct):
    """The figures of one file; `fixed` is our count of the system prompt and tools that it holds."""

    name: str
    agent: str = ""
    fixed: int = 0
    contexts: list[Count] = []
    outputs: list[Count] = []
    steps: list[Step] = []
    messages: int = 0
    folds: list[Count] = []
    system: Count | None = (
        None  # the system prompt by itself, and all but it, where the agent tells them apart
    )
    conversation: Count | None = None


class Counter:
    """Follows the records of a file and counts the agent's view as it grows."""

    def __init__(self, name: str) -> None:
        self.found = Session(name)
        self._sizes: list[tuple[str, int]] = []  # key and tokens of what the agent's model sees
        self._all: dict[str, int] = {}  # key -> tokens of every message
        self._prompt: int | None = None  # of the newest counted reply
        self._since = 0  # our tokens of that reply and what followed
        self._output: int | None = None  # told beside the message
        self._system = 0  # our tokens of system messages

    def take(self, record: object) -> None:
        """Count the next record."""
        if isinstance(record, MessageRecord):
            self._heard(record)
        elif isinstance(record, CompactionRecord):
            self._folded(record)
        elif isinstance(record, FactRecord):
            self._about(record.kind, record.data)

    @property
    def size(self) -> int:
        """Our count of what the model sees."""
        return sum(tokens for _, tokens in self._sizes)

    def _about(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "format":
            self.found.agent = str(data["format"])
        elif kind == "session" and self.found.agent == "plain":
            self.found.agent = str(data.get("agent", "plain"))
        elif kind == "system":
            self.found.fixed += OFFLINE.count(str(data["system"]))
        elif kind == "tools":
            self.found.fixed += OFFLINE.count(json_text(data["tools"]))
        elif kind == "boundary" and isinstance(data.get("tokens_before"), int):
            self.found.folds.append(Count(data["tokens_before"], self.size + self.found.fixed))
        elif kind == "microcompact_boundary":
            self._prompt, self._since = None, 0
        elif kind == "usage" and isinstance(data.get("output"), int):
            self._output = data["output"]
        elif kind == "usage" and isinstance(data.get("conversationTokens"), int):
            self.found.system = Count(data["systemTokens"], self._system)
            self.found.conversation = Count(data["conversationTokens"], self.size - self._system)

    def _heard(self, record: MessageRecord) -> None:
        message = record.message
        self.found.messages += 1
        tokens = message_tokens(message, OFFLINE)
        usage = message.usage
        if usage is not None and usage.total:
            prompt = usage.input + usage.cache_read + usage.cache_write
            self._grown(prompt)
            self.found.contexts.append(Count(usage.total, self.size + tokens + self.found.fixed))
            self._prompt, self._since = prompt, 0
        output = usage.output if usage is not None and usage.total else self._output
        if message.role == "assistant" and output:
            self.found.outputs.append(Count(output, tokens - MESSAGE_OVERHEAD))
        self._output = None
        self._system += tokens if message.role == "system" else 0
        self._since += tokens
        self._sizes.append((record.key or "", tokens))
        self._all[record.key or ""] = tokens

    def _grown(self, prompt: int) -> None:
        if self._prompt is None:
            return
        self.found.steps.append(Step(prompt - self._prompt, self._since))

    def _folded(self, record: CompactionRecord) -> None:
        """What stays is the summary, what the agent quoted beside it, and all from its first kept message on."""
        if record.tokens_before:
            self.found.folds.append(Count(record.tokens_before, self.size + self.found.fixed))
        keys = [key for key, _ in self._sizes]
        begin = keys.index(record.first_kept) if record.first_kept in keys else len(keys)
        quoted = [(key, self._all[key]) for key in record.quoted if key in self._all]
        self._sizes = [("", OFFLINE.count(record.summary)), *quoted, *self._sizes[begin:]]
        self._prompt, self._since = None, 0


def counted(path: Path) -> Session:
    """Read a file and count it."""
    counter = Counter(path.name.removesuffix(".gz").removesuffix(".jsonl"))
    for record in read(path):
        counter.take(record)
    return counter.found


def error(recorded: float, ours: float) -> str:
    """By how much ours is off."""
    return f"{100 * (ours - recorded) / recorded:+.0f}%" if recorded else ""


def _median_error(pairs: Iterable[Count | Step]) -> str:
    found = [abs(one.ours - one.recorded) / one.recorded for one in pairs if one.recorded >= LEAST]
    return f"{100 * median(found):.0f}%" if found else ""


def table(title: str, head: str, rows: Iterable[str], *notes: str) -> Table:
    """Return a table of rows that are written with ` | ` between their cells."""
    return Table(tuple(head.split(" | ")), [tuple(row.split(" | ")) for row in rows], title, notes, left=2)


def increments(sessions: Iterable[Session]) -> Table:
    """What prompts grew by, against our estimate of what came in between."""
    head = "file | agent | increments | recorded | ours | error of the sum | median error of one | shrunk"

    def row(session: Session) -> str:
        recorded, ours = sum(s.recorded for s in session.steps), sum(s.ours for s in session.steps)
        shrunk = sum(step.recorded < 0 for step in session.steps)
        return (
            f"{session.name} | {session.agent} | {len(session.steps)} | {recorded:,} | {ours:,} | "
            f"{error(recorded, ours)} | {_median_error(session.steps)} | {shrunk}"
        )

    return table(
        "Increments: from the prompt of one counted reply to the next",
        head,
        (row(session) for session in sessions if session.steps),
    )


def contexts(sessions: Iterable[Session]) -> Table:
    """The largest context of each file."""
    head = "file | agent | largest recorded context | ours then | error | of ours, system prompt and tools"

    def row(session: Session) -> str:
        top = max(session.contexts, key=lambda count: count.recorded)
        return (
            f"{session.name} | {session.agent} | {top.recorded:,} | {top.ours:,} | "
            f"{error(top.recorded, top.ours)} | {session.fixed:,}"
        )

    return table(
        "Contexts: the largest of each file", head, (row(session) for session in sessions if session.contexts)
    )


def outputs(sessions: Iterable[Session]) -> Table:
    """What replies cost, against our estimate of them."""
    head = "file | agent | replies | recorded output | ours | error of the sum"

    def row(session: Session) -> str:
        recorded, ours = sum(c.recorded for c in session.outputs), sum(c.ours for c in session.outputs)
        return (
            f"{session.name} | {session.agent} | {len(session.outputs)} | {recorded:,} | {ours:,} | "
            f"{error(recorded, ours)}"
        )

    return table("Replies", head, (row(session) for session in sessions if session.outputs))


def apart(sessions: Iterable[Session]) -> Table:
    """System prompt and conversation, where an agent counted them by themselves."""
    head = "file | agent | recorded system prompt | ours | error | recorded conversation | ours | error"

    def row(session: Session, system: Count, said: Count) -> str:
        return (
            f"{session.name} | {session.agent} | {system.recorded:,} | {system.ours:,} | "
            f"{error(system.recorded, system.ours)} | {said.recorded:,} | {said.ours:,} | "
            f"{error(said.recorded, said.ours)}"
        )

    return table(
        "Parts, where an agent counted them by themselves",
        head,
        (row(s, s.system, s.conversation) for s in sessions if s.system and s.conversation),
    )


def folds(title: str, sessions: Iterable[Session]) -> Table:
    """The sizes that agents noted at their compactions, by agent."""
    by_agent: dict[str, list[Count]] = {}
    for session in sessions:
        by_agent.setdefault(session.agent, []).extend(session.folds)
    head = "agent | compactions with a size | recorded | ours | error of the sum | median of recorded / ours"

    def row(agent: str, counts: list[Count]) -> str:
        recorded, ours = sum(c.recorded for c in counts), sum(c.ours for c in counts)
        ratio = median(count.ratio for count in counts)
        return f"{agent} | {len(counts)} | {recorded:,} | {ours:,} | {error(recorded, ours)} | {ratio:.2f}"

    return table(title, head, (row(agent, counts) for agent, counts in sorted(by_agent.items()) if counts))


def main() -> None:
    """Count, then print or save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path)
    parser.add_argument(
        "--save", action="store_true", help="write docs/results/recorded.json and docs/results/README.md"
    )
    args = parser.parse_args()
    native = [counted(path) for path in sorted((args.root / "native").iterdir())]
    plain = [counted(path) for path in sorted((args.root / "sessions").glob("*/*.jsonl.gz"))]
    grown = increments(native)
    at_folds = [folds("Compactions, native files", native), folds("Compactions, plain form", plain)]
    if args.save:
        save("recorded", "python -m tools.recorded_tokens ../shared/data --save", [grown, *at_folds])
    else:
        print(shown([grown, contexts(native), apart(native), outputs(native), *at_folds]))


if __name__ == "__main__":
    main()

"""One record a call: its arguments and result, what it runs and touches, and what it did."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec

from foldline.core.cut.notes import UNANSWERED, error_in, is_cleared
from foldline.core.ledger.facts.commands import Step, Touch, arguments, command_in, folder_beside, steps
from foldline.core.ledger.facts.kinds import CommitFact
from foldline.core.ledger.facts.outcomes import RunEnd, worked
from foldline.core.ledger.facts.touches import touches
from foldline.core.log.entries import Said
from foldline.core.log.messages import Text, ToolCall, ToolResult
from foldline.core.log.opaque import stored_calls


class Action(msgspec.Struct, frozen=True):
    """What one call did: an item's kind, text and more; its command as shown, how it ended, its commit."""

    kind: str
    text: str
    command: str = ""
    run: RunEnd | None = None
    commit: CommitFact | None = None
    more: str = ""

    @property
    def file(self) -> str:
        """The one file that it read or changed; "" where it is none or several."""
        verb, _, rest = self.text.partition(" ")
        path = rest.partition(": ")[0] if verb in ("read", "edit", "write") else ""
        return "" if ", " in path or self.kind not in ("looked", "edit") else path.removesuffix(" (failed)")


class Use(msgspec.Struct, dict=True):
    """One call: its entries, and its result if there is one.

    `passed` is what the result says about itself, None where it says nothing; `done` what the call did, None
    for a list of steps: that is the plan.
    """

    entry: str
    call: ToolCall
    result: ToolResult | None = None
    answered_in: str = ""
    passed: bool | None = None
    done: Action | None = None

    @property
    def output(self) -> str:
        """The text of its result."""
        return self.result.text if self.result is not None else ""

    @cached_property
    def args(self) -> dict[str, Any]:
        """Its arguments by plain key."""
        return arguments(self.call)

    @cached_property
    def command(self) -> str | None:
        """The command line that it runs in a shell."""
        return command_in(self.call, self.args)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The simple commands that it runs, in the folder given with them."""
        return steps(self.command or "", folder_beside(self.args))

    @cached_property
    def touches(self) -> tuple[Touch, ...]:
        """What it does to files."""
        return tuple(touches(self.call, self.args, self.steps))

    @property
    def cites(self) -> tuple[str, ...]:
        """The entries of the call and its result."""
        return tuple(dict.fromkeys((self.entry, self.answered_in)))


def _as_it_was(result: ToolResult) -> ToolResult:
    """Return a result without the note that replaced it, if any: only its error is left."""
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
    waiting: dict[str, list[Use]] = {}
    for entry in entries:
        stored += stored_calls(entry.message)
        for part in entry.message.parts:
            if isinstance(part, ToolResult) and stored and part.call_id not in waiting:
                found.append(Use(entry.id, ToolCall(part.call_id, "stored call", {})))
                waiting[part.call_id] = [found[-1]]
                stored -= 1
            if isinstance(part, ToolCall):
                found.append(Use(entry.id, part))
                waiting.setdefault(part.id, []).append(found[-1])
            elif isinstance(part, ToolResult) and waiting.get(part.call_id) and part.text != UNANSWERED:
                use = waiting[part.call_id].pop()
                use.result, use.answered_in = _as_it_was(part), entry.id
                use.passed = worked(use.result)
    return tuple(found)

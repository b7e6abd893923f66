"""The plan or todo list as it was last written, from the arguments of the tool that keeps it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from foldline.core.ledger.facts.actions import steps_of
from foldline.core.ledger.facts.calls import Use, arguments, plain
from foldline.core.ledger.facts.kinds import Ledger, PlanStep
from foldline.core.ledger.facts.stretch import Stretch
from foldline.core.ledger.text.sentences import cut

CARRIED = 60  # steps from fold to fold
_NUMBERED_TOOL = re.compile(r"task|todo|plan")
_ID = ("taskid", "todoid", "id", "itemid")


def collect(found: Stretch) -> tuple[PlanStep, ...]:
    """Take the newest whole list, and the newest state of each numbered task."""
    whole: tuple[PlanStep, ...] = ()
    single: dict[str, PlanStep] = {}
    for use in found.calls:
        if listed := steps_of(arguments(use.call)):
            whole = tuple(PlanStep(text, state, use.entry) for text, state in listed)
        elif (step := _numbered(use)) is not None:
            single = _updated(single, step)
    return (*whole, *single.values())


def _numbered(use: Use) -> PlanStep | None:
    """Read one task from a call that creates or updates it: "#3 its subject", or "#3" alone."""
    if not _NUMBERED_TOOL.search(plain(use.call.name)) or use.result is None or use.passed is False:
        return None
    args: dict[str, Any] = arguments(use.call)
    number = next((str(args[key]) for key in _ID if isinstance(args.get(key), str | int)), "")
    subject = next((value for key in ("subject", "title") if isinstance(value := args.get(key), str)), "")
    if not number and subject:
        made = re.search(r"#(\w{1,12})\b", use.result.text[:300])
        number = made[1] if made else ""
    state = args.get("status") or args.get("state")
    if not 0 < len(number) <= 12 or not (subject or isinstance(state, str)):
        return None
    return PlanStep(
        cut(f"#{number} {subject}".strip(), 300), state if isinstance(state, str) else "pending", use.entry
    )


def _updated(known: dict[str, PlanStep], step: PlanStep) -> dict[str, PlanStep]:
    number, _, subject = step.text.partition(" ")
    old = known.get(number)
    text = step.text if subject or old is None else old.text
    return {**known, number: msgspec.structs.replace(step, text=text)}


def merge(old: Sequence[PlanStep], new: Sequence[PlanStep], _later: Ledger) -> tuple[PlanStep, ...]:
    """Return the newer list where there is one; tasks are updated by their number."""
    tasks = {step.text.partition(" ")[0]: step for step in old if step.text.startswith("#")}
    for step in new:
        if step.text.startswith("#"):
            tasks = _updated(tasks, step)
    whole = [step for step in new if not step.text.startswith("#")] or [
        step for step in old if not step.text.startswith("#")
    ]
    return (*whole, *tasks.values())


def bound(facts: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    """Return the steps that are carried to the next fold."""
    return tuple(facts[-CARRIED:])

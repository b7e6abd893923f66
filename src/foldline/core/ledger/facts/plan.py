"""The plan or todo list as it was last written, from the arguments of the tool that keeps it."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.core.ledger.facts.actions import Stretch, steps_of, task_of
from foldline.core.ledger.facts.calls import arguments
from foldline.core.ledger.facts.kinds import Ledger, PlanStep


def collect(found: Stretch) -> tuple[PlanStep, ...]:
    """Take the newest whole list, and the newest state of each numbered task."""
    whole: tuple[PlanStep, ...] = ()
    single: dict[str, PlanStep] = {}
    for use in found.calls:
        if listed := steps_of(arguments(use.call)):
            whole = tuple(PlanStep(text, state, use.entry) for text, state in listed)
        elif any(task := task_of(use) or ("", "")):
            single = _updated(single, PlanStep(*task, use.entry))
    return (*whole, *single.values())


def _updated(known: dict[str, PlanStep], step: PlanStep) -> dict[str, PlanStep]:
    """Put a task to those known; what an update does not say stays."""
    number, _, subject = step.text.partition(" ")
    old = known.get(number, PlanStep(number))
    new = PlanStep(step.text if subject else old.text, step.state or old.state or "pending", step.entry)
    return {**known, number: new}


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

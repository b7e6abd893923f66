"""What a summariser is asked and what it answers: values that cross the border between core and shell."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from foldline.core.decide.policy import Prompt
from foldline.core.ledger.facts import Ledger
from foldline.core.log.entries import Said
from foldline.core.log.messages import Usage

RequestKind = Literal["first", "update", "split_turn", "branch", "handoff", "display"]


class SummaryRequest(msgspec.Struct, frozen=True):
    """Everything a summariser may use; a model reads `system` and `prompt`, the offline one the rest.

    `folded` are the entries that leave the view (oldest first), `previous` the summary they follow,
    `ledger` the facts of all that is folded, earlier folds included; `tokens` is the most that the
    summary may take, in Foldline's own count. `system` and `prompt` are empty until `summary.worded` writes
    them, for which `family`, `result_cap` and `thinking` are taken from the policy.
    """

    kind: RequestKind
    system: str
    prompt: str
    folded: tuple[Said, ...]
    previous: str | None
    ledger: Ledger
    tokens: int
    instructions: str | None = None
    goal: str | None = None
    kept: tuple[Said, ...] = ()
    family: Prompt = "checkpoint"
    result_cap: int = 2_000
    thinking: bool = True


class SummaryReply(msgspec.Struct, frozen=True):
    """A summariser's answer: its text, why it stopped (end, length, error), what it cost."""

    text: str
    summarizer: str
    stop: str = "end"
    usage: Usage | None = None
    ledger: Ledger | None = None  # the ledger that the text was written from, where the summariser chose one
    detail: dict[str, Any] = {}

"""What a summariser is asked and what it answers: values that cross the border between core and shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from foldline.core.decide.policy import Prompt
from foldline.core.decide.price import Cache
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.log.entries import Said
from foldline.core.log.messages import Usage
from foldline.core.measure.window import Window

RequestKind = Literal["first", "update", "split_turn", "branch", "merge", "handoff", "display"]

WORDS_SHARE: Final = 0.3  # of a summary's tokens, the part that the user's words may take
FAILED: Final = "failed"  # the `stop` of a reply that says: no model could be asked


class Prefix(msgspec.Struct, frozen=True):
    """A session's own next request as it stood when a summary was wanted: the summary may be asked for in it.

    `messages`, `system` and `tools` are in the form of `dialect`. `tokens` is the size of all of it in
    Foldline's own count, `cache` what the provider's cache has of it, `window` what the session knows of its
    model's limits.
    """

    model: str
    dialect: str
    window: Window
    messages: list[Any] = []
    system: Any = None
    tools: Any = None
    tokens: int = 0
    cache: Cache = Cache()


class SummaryRequest(msgspec.Struct, frozen=True):
    """Everything a summariser may use; a model reads `system` and `prompt`, the offline one the rest.

    `folded` are the entries that leave the view (oldest first), `previous` the summary they follow, `ledger`
    the facts of all that is folded, earlier folds included; `tokens` is the most that the summary may take,
    in Foldline's own count. `system` and `prompt` are empty until `summary.worded` writes them, for which
    `family`, `result_cap` and `thinking` are taken from the policy. `kept` are the entries that follow the
    checkpoint in the view, `rejected` says why the reply before, the `attempt`-th, was no summary. `prefix`
    is the session's own next request (None: there is no session to ask in); `refused`: it was just refused as
    too large, so that nothing can be asked in it. `secrets` were taken out of `folded` and `kept`; the
    session's own messages still hold them. `always` is what the policy adds to every request, `project` what
    the project's instructions say of summaries; `instructions` are for this one. `on_text` is
    called with each piece of a model's text as it comes, before it is checked, and with None where it begins
    anew.
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
    attempt: int = 0
    rejected: str = ""
    refused: bool = False
    secrets: bool = False
    prefix: Prefix | None = None
    always: str = ""
    project: str = ""
    on_text: Callable[[str | None], None] | None = None

    @property
    def story_tokens(self) -> int:
        """The tokens for a model's text: a share is kept for the user's words."""
        said = sum(len(item.text) for item in self.ledger.items if item.kind == "user")
        return max(1, self.tokens - min(int(self.tokens * WORDS_SHARE), said // 3))

    @property
    def page_tokens(self) -> int:
        """The tokens for an offline checkpoint: two thirds of what it replaces, so that the fold gains."""
        stood = sum(entry.tokens for entry in self.folded) + len(self.previous or "") // 4
        rules = sum(len(fact.told) + 40 for fact in self.ledger.constraints) // 3
        beside = self.kind in ("branch", "merge", "handoff")  # it replaces nothing
        return self.tokens if beside or not stood else min(self.tokens, max(stood * 2 // 3, rules))


class SummaryReply(msgspec.Struct, frozen=True):
    """A summariser's answer: its text, why it stopped (end, length, error ...), what it cost.

    `stop` "failed" says that no model could be asked: nothing is tried again. `price` is in USD, None where
    it is not known. `notes` go into the receipt, `detail` is for whoever looks closer: model, form, attempts,
    chunks.
    """

    text: str
    summarizer: str
    stop: str = "end"
    usage: Usage | None = None
    price: float | None = None
    notes: tuple[str, ...] = ()
    ledger: Ledger | None = None  # the ledger that the text was written from, where the summariser chose one
    rules: tuple[ConstraintFact, ...] = ()  # standing constraints that the text recalled and code found
    detail: dict[str, Any] = {}

"""The report of a replay, with a row for each policy; and the sums of many reports."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foldline.core.decide.price import Price, cost
from foldline.core.lab.replay import Replay
from foldline.core.lab.retention import Scores, mean
from foldline.core.lab.tally import ReplayedTurn
from foldline.core.log.messages import Usage
from foldline.lab.checks import ViewChecks, ViewProblem
from foldline.lab.scored_cuts import ScoredCut

_NOT_SUMMED: Final = ("token_ratio", "apart_tokens")
MEASURES = tuple(name.replace("_", "-") for name in Scores.__struct_fields__)


class PolicyReport(msgspec.Struct, frozen=True):
    """A session under one policy: turns, totals, retention (None if it was not measured).

    `rounds` are the measurements of repeated folding, if it was measured; `problems` are in the order of the
    requests.
    """

    policy: str
    turns: tuple[dict[str, Any], ...]
    totals: dict[str, Any]
    retention: dict[str, Any] | None = None
    rounds: list[dict[str, Any]] | None = None
    problems: tuple[ViewProblem, ...] = ()


class SessionReport(msgspec.Struct, frozen=True):
    """A session under every requested policy; `window` in tokens."""

    session: str
    window: int
    policies: tuple[PolicyReport, ...]
    model: str | None = None
    note: str = ""
    warnings: tuple[str, ...] = ()


def as_json(reports: Sequence[SessionReport]) -> dict[str, Any]:
    """Return the reports as `foldline replay --json` prints them; `rounds` only if measured."""
    return {
        "sessions": [
            {
                "session": report.session,
                "window": report.window,
                "policies": [
                    {
                        "policy": policy.policy,
                        "turns": policy.turns,
                        "totals": policy.totals,
                        "retention": policy.retention,
                        **({"rounds": policy.rounds} if policy.rounds is not None else {}),
                    }
                    for policy in report.policies
                ],
            }
            for report in reports
        ]
    }


def policy_report(
    replay: Replay,
    price: Price | None,
    *,
    checks: ViewChecks,
    cuts: Sequence[ScoredCut] = (),
    rounds: list[dict[str, Any]] | None = None,
) -> PolicyReport:
    """Return the report of a replay, with prices in USD if the model's are known."""
    sums = replay.sums
    plain, cached = usages(sums.input_tokens, sums.cache_read, sums.output_tokens)
    totals: dict[str, Any] = {
        "input_tokens": sums.input_tokens,
        "output_tokens": sums.output_tokens,
        "cache_read_tokens": sums.cache_read,
        "calls": sums.calls,
        "turns": len(replay.turns),
        "price": priced(plain, price),
        "price_cached": priced(cached, price),
        "price_summaries": priced(sums.summaries, price),
        "compactions": sums.compactions,
        "prunes": sums.prunes,
        "overflows": sums.overflows,
        "fruitless": sums.fruitless,
        "refused": sums.refused,
        "invalid_views": checks.invalid,
        "peak": sums.peak,
        "compaction_seconds": round(sums.seconds, 3),
        "token_ratio": round(replay.scale.ratio, 4),
        "apart_tokens": replay.scale.overhead_tokens,
    }
    turns = tuple(_turn(turn, price) for turn in replay.turns)
    return PolicyReport(replay.policy.name, turns, totals, _retention(cuts), rounds, tuple(checks.problems))


def usages(sent: int, read: int, output: int) -> tuple[Usage, Usage]:
    """Return the usage without and with prompt caching, where all uncached input is written to the cache."""
    return Usage(input=sent, output=output), Usage(cache_read=read, cache_write=sent - read, output=output)


def priced(usage: Usage, price: Price | None) -> float | None:
    """Return the price of a usage in USD; None if the model's is unknown."""
    return round(cost(usage, price), 6) if price is not None else None


def _turn(turn: ReplayedTurn, price: Price | None) -> dict[str, Any]:
    plain, cached = usages(turn.input_tokens, turn.cache_read, turn.output_tokens)
    fields = msgspec.to_builtins(turn)
    fields["cache_read_tokens"] = fields.pop("cache_read")
    for optional in ("fills", "contexts"):
        if not fields[optional]:
            fields.pop(optional)
    return {**fields, "price": priced(plain, price), "price_cached": priced(cached, price)}


def _retention(cuts: Sequence[ScoredCut]) -> dict[str, Any] | None:
    """Return every cut, and the mean of cuts whose view fits the window; None without cuts."""
    if not cuts:
        return None
    scores = [cut.scores for cut in cuts if cut.scores is not None]
    return {**shares(mean(scores)), "cuts": [_cut(cut) for cut in cuts]}


def _cut(cut: ScoredCut) -> dict[str, Any]:
    fields = msgspec.to_builtins(cut)
    del fields["scores"]
    return {**fields, **shares(cut.scores or Scores())}


def shares(scores: Scores) -> dict[str, float | None]:
    """Return the five shares by their names."""
    values = {name.replace("_", "-"): getattr(scores, name) for name in Scores.__struct_fields__}
    return {name: None if value is None else round(value, 4) for name, value in values.items()}


class PolicySums:
    """The sums of one policy over several sessions."""

    def __init__(self) -> None:
        self._totals: dict[str, Any] = {}
        self._shares: dict[str, tuple[float, int]] = {}  # sum, sessions
        self._scored = False

    def add(self, report: PolicyReport) -> None:
        """Add a session's totals; of `peak`, keep the largest."""
        for name, value in report.totals.items():
            if name in _NOT_SUMMED:
                continue
            total = self._totals.setdefault(name, None)
            if value is not None:
                combine = max if name == "peak" else operator.add
                self._totals[name] = value if total is None else combine(total, value)
        if report.retention is None:
            return
        self._scored = True
        for name in MEASURES:
            share, (total, count) = report.retention[name], self._shares.get(name, (0.0, 0))
            if share is not None:
                self._shares[name] = (total + share, count + 1)

    def totals(self) -> dict[str, Any]:
        """Return the totals, with the names of a session's; None for totals that no session has."""
        return {name: round(value, 6) if value is not None else None for name, value in self._totals.items()}

    def retention(self) -> dict[str, Any] | None:
        """Return the mean of each measure over the sessions with a value; None without any retention."""
        if not self._scored:
            return None
        sums = {name: self._shares.get(name) for name in MEASURES}
        return {name: share[0] / share[1] if share else None for name, share in sums.items()}


class ReplaySums:
    """The sums of several sessions by policy."""

    def __init__(self) -> None:
        self.sessions = 0
        self.unpriced = 0
        self.policies: dict[str, PolicySums] = {}

    def add(self, report: SessionReport) -> None:
        """Add a session under all its policies."""
        self.sessions += 1
        self.unpriced += report.policies[0].totals["price"] is None
        for policy in report.policies:
            self.policies.setdefault(policy.policy, PolicySums()).add(policy)

"""Replay session files under several policies; each file is read and counted once for all policies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from foldline.catalogue import Catalogue
from foldline.config import settings
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.plan import Outcome, plan
from foldline.core.decide.policy import Policy
from foldline.core.decide.price import Price
from foldline.core.lab.replay import Replay
from foldline.core.lab.tally import Learner
from foldline.core.log.entries import Said
from foldline.core.measure.accounting import is_credible
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Floor, Window
from foldline.errors import FloorExceeded, InputError
from foldline.executor import execute, run_sync
from foldline.folding import overhead_of
from foldline.images import scaled
from foldline.lab.checks import StandingRules, ViewChecks
from foldline.lab.report import PolicyReport, SessionReport, policy_report
from foldline.lab.rounds import decay
from foldline.lab.runner import Failed, LocalPool
from foldline.lab.scored_cuts import Cuts, ScoredCut
from foldline.lab.sources import Step, steps
from foldline.summarizers.offline import OfflineSummarizer
from foldline.transcripts import CompactionRecord, FactRecord, MessageRecord, WarningRecord, read

HEAD_MESSAGES = 50  # messages in which the model's name is searched
EVERY = 20  # messages between two reports of progress


class ReplaySetup(msgspec.Struct, frozen=True):
    """The options of a replay: policies, window (None: the file's or its model's), and what else to measure.

    `cuts` are shares of a session at which retention is measured (empty: not at all); `rounds` is how often a
    growing session is folded (0: not at all); `fills` records the parts of the window; `checks` searches for
    lost rules and requests that are too large; `models` are a user's own limits and prices.
    """

    policies: tuple[Policy, ...]
    window: int | None = None
    model: str | None = None
    cuts: tuple[float, ...] = ()
    rounds: int = 0
    fills: bool = False
    checks: bool = False
    models: dict[str, dict[str, Any]] = {}


def replay_setup(
    policies: Iterable[Policy], window: int | None, model: str | None, **more: Any
) -> ReplaySetup:
    """Return the options of a replay, with defaults from the settings; `more` are fields of ReplaySetup."""
    current = settings()
    return ReplaySetup(
        tuple(policies), window or current.window, current.named_model(model), models=current.models, **more
    )


class SessionHead(msgspec.Struct):
    """Facts from the start of a session file, and the limits and prices of its model."""

    window: Window
    price: Price | None
    model: str | None = None
    dialect: str = "openai-chat"
    overhead: Floor = Floor()
    note: str = ""


def replay_file(file: str, setup: ReplaySetup, tick: Callable[[int], None] = lambda _: None) -> SessionReport:
    """Replay a session file under every requested policy; `tick` gets the number of messages so far.

    Raises FormatError for a file that cannot be read, InputError for one without messages.
    """
    head = _head(file, setup)
    cuts = Cuts.find(steps(read(file)), setup.cuts) if setup.cuts else None
    replays = SessionReplays(head, setup, cuts)
    for step in steps(read(file)):
        replays.take(step)
        if replays.messages % EVERY == 0:
            tick(replays.messages)
    if not replays.messages:
        raise InputError(f"{file}: no message in this file")
    warnings = [*replays.warnings, *(cuts.warnings if cuts is not None else ())]
    rounds = _rounds(file, head, setup)
    return SessionReport(
        file, head.window.context, replays.finish(rounds), head.model, head.note, tuple(warnings)
    )


def replay_many(
    files: Sequence[str], setup: ReplaySetup, jobs: int | None, tick: Callable[[int], None] = lambda _: None
) -> list[SessionReport | Failed]:
    """Replay files in `jobs` processes (default: one per core), and return the reports in file order.

    The largest files start first. `tick` gets the number of finished files, or of messages of a single file.
    An error of a single file is raised.
    """
    if len(files) == 1:
        return [replay_file(files[0], setup, tick)]
    reports: dict[str, SessionReport | Failed] = {}
    largest_first = sorted(set(files), key=_size, reverse=True)
    for file, report in LocalPool(jobs).each(largest_first, partial(replay_file, setup=setup)):
        reports[file] = report
        tick(len(reports))
    return [reports[file] for file in files]


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0


def _rounds(file: str, head: SessionHead, setup: ReplaySetup) -> dict[str, list[dict[str, Any]]]:
    if not setup.rounds:
        return {}
    entries = [step for step in steps(read(file)) if isinstance(step, Said)]
    folding = [policy for policy in setup.policies if policy.enabled]
    return decay(entries, folding, head.window, overhead=head.overhead, count=setup.rounds)


def _head(file: str, setup: ReplaySetup) -> SessionHead:
    """Read the start of a file: window, system prompt, tools and model, which only a reply may name."""
    facts: dict[str, Any] = {}
    count = 0
    for record in read(file):
        if isinstance(record, FactRecord):
            facts = {**record.data, **facts} if count else {**facts, **record.data}
        if isinstance(record, MessageRecord):
            count += 1
            if record.message.model:  # replies in Foldline's logs have the name
                facts.setdefault("model", record.message.model)
        if count > HEAD_MESSAGES or (count and "model" in facts):
            break
    catalogue = Catalogue(overrides=setup.models)
    model = setup.model or facts.get("model")
    context = setup.window or _positive(facts.get("window"))
    info = catalogue.look_up(model, context)
    return SessionHead(
        window=info.window,
        price=info.price,
        model=model,
        dialect=facts.get("dialect") or "openai-chat",
        overhead=overhead_of(facts.get("system"), facts.get("tools"), OFFLINE),
        note=str(facts.get("note") or ""),
    )


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


class SessionReplays:
    """All replays of one file, side by side."""

    def __init__(self, head: SessionHead, setup: ReplaySetup, cuts: Cuts | None = None) -> None:
        self.messages = 0
        self.warnings: list[str] = []
        self._head = head
        self._cuts = cuts
        self._learner = Learner(head.overhead)
        self._recorded = 0  # tokens of all messages, in our count
        self._summarizer = OfflineSummarizer()
        self._rules = StandingRules() if setup.checks else None
        self._runs = [
            _PolicyReplay(
                Replay(policy, head.window, OFFLINE, model=head.model, price=head.price, fills=setup.fills),
                ViewChecks(head.dialect, self._rules),
            )
            for policy in setup.policies
        ]

    def take(self, step: Step) -> None:
        """Take the next entry or record of the file."""
        if isinstance(step, Said):
            self._append(step)
        elif isinstance(step, CompactionRecord) or (isinstance(step, FactRecord) and step.kind == "boundary"):
            self._learner.folded()
        elif isinstance(step, WarningRecord):
            self.warnings.append(f"line {step.line}: {step.text}" if step.line else step.text)

    def _append(self, entry: Said) -> None:
        entry = self._without_false_usage(entry)
        self._learner.hear(entry.message, entry.tokens)
        cut = self._cuts.at(self.messages) if self._cuts is not None else None
        for run in self._runs:
            run.replay.scale = self._learner.scale
            if cut is not None:
                run.cuts.append(cut.scored(run.replay))
            self._compact(run, entry)
            if run.replay.asks(entry.message):
                run.checks.check_request(run.replay)
            run.replay.say(entry)
        if self._rules is not None:
            self._rules.read(entry)
        self.messages += 1

    def _without_false_usage(self, entry: Said) -> Said:
        """Return an entry without a usage that cannot be true, so that neither sizes nor prices use it."""
        usage, overhead = entry.message.usage, self._head.overhead
        sent = self._recorded + overhead.system + overhead.tools
        self._recorded += entry.tokens
        if usage is None or is_credible(usage, sent, self._head.window):
            return entry
        self.warnings.append(
            f"message {self.messages + 1}: its usage cannot be true ({usage.total - usage.output:,} tokens "
            f"of input, {usage.output:,} of output); an estimate replaces it"
        )
        return msgspec.structs.replace(entry, message=msgspec.structs.replace(entry.message, usage=None))

    def _compact(self, run: _PolicyReplay, entry: Said) -> None:
        while (ask := run.replay.due(entry.message, entry.at)) is not None:
            run.checks.check_validity(run.replay)
            started = time.perf_counter()
            outcome: Outcome | None = None
            try:
                compaction = plan(CompactionInput(run.replay.state, ask, OFFLINE, scale=scaled))
                outcome = run_sync(execute(compaction, self._summarizer))
            except FloorExceeded:
                pass  # counted as refused
            run.replay.settle(outcome, time.perf_counter() - started)
            run.checks.check_validity(run.replay)

    def finish(self, rounds: Mapping[str, list[dict[str, Any]]]) -> tuple[PolicyReport, ...]:
        """Return the report of each replay, with the rounds of its policy."""
        for run in self._runs:
            run.checks.check_validity(run.replay)
        return tuple(
            policy_report(
                run.replay,
                self._head.price,
                checks=run.checks,
                cuts=run.cuts,
                rounds=rounds.get(run.replay.policy.name),
            )
            for run in self._runs
        )


class _PolicyReplay(msgspec.Struct, frozen=True):
    """One replay, with its checks and scored cuts."""

    replay: Replay
    checks: ViewChecks
    cuts: list[ScoredCut] = []

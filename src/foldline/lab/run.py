"""Session files replayed under several policies: each read once, counted once, folded for each policy."""

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
from foldline.core.lab.sizes import Learner
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
from foldline.lab.steps import Step, steps
from foldline.summarizers.offline import OfflineSummarizer
from foldline.transcripts import CompactionRecord, FactRecord, MessageRecord, WarningRecord, read

HEARD = 50  # messages at most in which the model is looked for
EVERY = 20  # messages between two reports of progress


class ReplaySetup(msgspec.Struct, frozen=True):
    """How to replay: the policies, the window (None: the file's or its model's), and what else to measure.

    `cuts` are shares of a session at which retention is measured, none to leave it out; `rounds` how often
    the session is folded again as it grows, 0 for never; `fills` keeps what filled the window; `checks` looks
    for rules that are lost and requests that are too large; `models` are a user's own limits and prices.
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
    """Return how to replay: what is not given is as set; `more` is what else to measure."""
    known = settings()
    return ReplaySetup(
        tuple(policies), window or known.window, known.named_model(model), models=known.models, **more
    )


class SessionHead(msgspec.Struct):
    """What a file says of its session before the first message that counts."""

    window: Window
    price: Price | None
    model: str | None = None
    dialect: str = "openai-chat"
    overhead: Floor = Floor()
    note: str = ""


def replay_file(file: str, setup: ReplaySetup, tick: Callable[[int], None] = lambda _: None) -> SessionReport:
    """Replay a session file under every policy asked for; `tick` is told how many messages were taken.

    Raises FormatError for what cannot be read, InputError for a file without messages.
    """
    facts = _facts(file, setup)
    cuts = Cuts.of(steps(read(file)), setup.cuts) if setup.cuts else None
    replays = SessionReplays(facts, setup, cuts)
    for step in steps(read(file)):
        replays.take(step)
        if replays.said % EVERY == 0:
            tick(replays.said)
    if not replays.said:
        raise InputError(f"{file}: no message in this file")
    warnings = [*replays.warnings, *(cuts.warnings if cuts is not None else ())]
    decayed = _decayed(file, facts, setup)
    return SessionReport(
        file, facts.window.context, replays.finish(decayed), facts.model, facts.note, tuple(warnings)
    )


def replay_many(
    files: Sequence[str], setup: ReplaySetup, jobs: int | None, tick: Callable[[int], None] = lambda _: None
) -> list[SessionReport | Failed]:
    """Replay files over `jobs` processes (default: one per core), and return the reports in file order.

    The largest are begun first. `tick` gets the number of files done, or of messages of a single file. A
    single file that cannot be replayed raises its error.
    """
    if len(files) == 1:
        return [replay_file(files[0], setup, tick)]
    found: dict[str, SessionReport | Failed] = {}
    for file, report in LocalPool(jobs).each(sorted(set(files), key=_size), partial(_one, setup)):
        found[file] = report
        tick(len(found))
    return [found[file] for file in files]


def _one(setup: ReplaySetup, file: str) -> SessionReport:
    return replay_file(file, setup)


def _size(file: str) -> int:
    try:
        return -Path(file).stat().st_size
    except OSError:
        return 0


def _decayed(file: str, facts: SessionHead, setup: ReplaySetup) -> dict[str, list[dict[str, Any]]]:
    if not setup.rounds:
        return {}
    entries = [step for step in steps(read(file)) if isinstance(step, Said)]
    folding = [policy for policy in setup.policies if policy.enabled]
    return decay(entries, folding, facts.window, overhead=facts.overhead, count=setup.rounds)


def _facts(file: str, setup: ReplaySetup) -> SessionHead:
    """Read a file's beginning: its window, its system prompt and its model, which a reply may name first."""
    told: dict[str, Any] = {}
    heard = 0
    for record in read(file):
        if isinstance(record, FactRecord):
            told = {**record.data, **told} if heard else {**told, **record.data}
        if isinstance(record, MessageRecord):
            heard += 1
            if record.message.model:  # a reply of a log of ours names its own
                told.setdefault("model", record.message.model)
        if heard > HEARD or (heard and "model" in told):
            break
    catalogue = Catalogue(overrides=setup.models)
    model = setup.model or told.get("model")
    context = setup.window or _whole(told.get("window"))
    info = catalogue.look_up(model, context)
    return SessionHead(
        window=info.window,
        price=info.price,
        model=model,
        dialect=told.get("dialect") or "openai-chat",  # a session of ours may name none
        overhead=overhead_of(told.get("system"), told.get("tools"), OFFLINE),
        note=str(told.get("note") or ""),
    )


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


class SessionReplays:
    """All replays of one file, side by side."""

    def __init__(self, facts: SessionHead, setup: ReplaySetup, cuts: Cuts | None = None) -> None:
        self.said = 0
        self.warnings: list[str] = []
        self._facts = facts
        self._cuts = cuts
        self._learner = Learner(facts.overhead)
        self._recorded = 0  # tokens of all messages, in our count
        self._summarizer = OfflineSummarizer()
        self._rules = StandingRules() if setup.checks else None
        self._runs = [
            _PolicyReplay(
                Replay(
                    policy, facts.window, OFFLINE, model=facts.model, price=facts.price, fills=setup.fills
                ),
                ViewChecks(facts.dialect, self._rules),
            )
            for policy in setup.policies
        ]

    def take(self, step: Step) -> None:
        """Take the next thing that the file holds."""
        if isinstance(step, Said):
            self._say(step)
        elif isinstance(step, CompactionRecord) or (isinstance(step, FactRecord) and step.kind == "boundary"):
            self._learner.folded()
        elif isinstance(step, WarningRecord):
            self.warnings.append(f"line {step.line}: {step.text}" if step.line else step.text)

    def _say(self, entry: Said) -> None:
        entry = self._believed(entry)
        self._learner.hear(entry.message, entry.tokens)
        cut = self._cuts.at(self.said) if self._cuts is not None else None
        for run in self._runs:
            run.replay.scale = self._learner.scale
            if cut is not None:
                run.cuts.append(cut.scored(run.replay))
            self._compact(run, entry)
            if run.replay.asks(entry.message):
                run.checks.request(run.replay)
            run.replay.say(entry)
        if self._rules is not None:
            self._rules.hear(entry)
        self.said += 1

    def _believed(self, entry: Said) -> Said:
        """Return an entry without a usage that cannot be true: nothing is learnt from it, or priced by it."""
        usage, sent = (
            entry.message.usage,
            self._recorded + self._facts.overhead.system + self._facts.overhead.tools,
        )
        self._recorded += entry.tokens
        if usage is None or is_credible(usage, sent, self._facts.window):
            return entry
        self.warnings.append(
            f"message {self.said + 1}: its usage cannot be true ({usage.total - usage.output:,} tokens of "
            f"input, {usage.output:,} of output); it is estimated instead"
        )
        return msgspec.structs.replace(entry, message=msgspec.structs.replace(entry.message, usage=None))

    def _compact(self, run: _PolicyReplay, entry: Said) -> None:
        while (ask := run.replay.due(entry.message, entry.at)) is not None:
            run.checks.form(run.replay)
            started = time.perf_counter()
            outcome: Outcome | None = None
            try:
                asked = plan(CompactionInput(run.replay.state, ask, OFFLINE, scale=scaled))
                outcome = run_sync(execute(asked, self._summarizer))
            except FloorExceeded:
                pass  # counted as refused
            run.replay.settle(outcome, time.perf_counter() - started)
            run.checks.form(run.replay)

    def finish(self, rounds: Mapping[str, list[dict[str, Any]]]) -> tuple[PolicyReport, ...]:
        """Return what came of each replay, with the rounds of its policy."""
        for run in self._runs:
            run.checks.form(run.replay)
        return tuple(
            policy_report(
                run.replay,
                self._facts.price,
                checks=run.checks,
                cuts=run.cuts,
                rounds=rounds.get(run.replay.policy.name),
            )
            for run in self._runs
        )


class _PolicyReplay(msgspec.Struct, frozen=True):
    """One replay, and what is measured of it from outside."""

    replay: Replay
    checks: ViewChecks
    cuts: list[ScoredCut] = []

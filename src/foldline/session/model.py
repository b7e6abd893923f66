"""How a session is kept, and what it knows of its model: window, cache, prices, and its count against ours.

What was learnt is kept as notes of the log. One of each kind is written with each boundary, in the same
append; what came since is read from the entries that follow.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from foldline.catalogue import Catalogue, ModelInfo, learn, learned
from foldline.core.carried.instructions import on_compacting
from foldline.core.compact.fold_request import Sizer, fold_request, trigger_facts
from foldline.core.decide.ask import FoldRequest
from foldline.core.decide.policy import Policy, usable_of
from foldline.core.decide.presets import resolve
from foldline.core.decide.price import Cache, Economy
from foldline.core.decide.watch import TriggerFacts, Watch, WatchLimits
from foldline.core.log.entries import Entry, Noted, Reason, Said
from foldline.core.log.messages import Message, Usage
from foldline.core.measure.accounting import Calibration, is_credible, is_too_small, real_usage, update
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.tokens import OFFLINE, Counter, message_tokens
from foldline.core.measure.window import Floor, Window
from foldline.core.view import MessageItem, ViewState, item_tokens
from foldline.dialects import get, names
from foldline.dialects.in_turn import applies_template
from foldline.folding import now, overhead_of, text_of
from foldline.session.cursor import Cursor
from foldline.session.events import (
    Events,
    ModelChanged,
    PolicyChanged,
    WarningGiven,
    WarningKind,
    WindowLearnt,
)
from foldline.session.kept import KeptModel, kept_in

CALIBRATION = "calibration"  # the kind of note that keeps how the model's count differs from ours
WINDOW = "window"  # the kind of note that keeps a window which an overflow taught
IN_TURN = "in_turn"  # the kind of note that keeps that a model's template refused two messages of one role

log = logging.getLogger("foldline")


class Setup(msgspec.Struct, frozen=True):
    """How a session is kept: its model, its policy, and what is sent beside its messages.

    No threshold folds a `subagent`; an overflow does, as in any session. `rules` is the policy as it was
    named, before it was fitted to the model. `catalogue` knows the models that the session may change to.
    `given` are the model and the window that the opener named: what it did not name is what is stored.
    """

    policy: Policy
    info: ModelInfo
    dialect: str | None = None
    system: Any = None
    tools: Any = None
    overhead: Floor = Floor()
    counter: Counter = OFFLINE
    subagent: bool = False
    rules: Policy | None = None
    catalogue: Catalogue = Catalogue()
    given: KeptModel = KeptModel()

    @property
    def model(self) -> str | None:
        """The model's name as it was given."""
        return self.info.name

    @property
    def window(self) -> Window:
        """The model's limits, in tokens."""
        return self.info.window

    @property
    def limits(self) -> WatchLimits:
        """What decides when the session is compacted."""
        return WatchLimits(self.policy, self.window, self.model, self.subagent, self.info.known)


class SessionModel:
    """The limits that a session works with, kept in step with its log."""

    def __init__(self, cursor: Cursor, setup: Setup, events: Events, watch: Watch) -> None:
        self.calibrator = Calibrator(setup.model)
        self.follows = False  # goes on with the model that another process has noted since
        self._told_incredible = False
        self._learnt_turns = False
        self._kept: KeptModel | None = None  # the newest note of the path
        self._watch = watch
        self._cursor = cursor
        self._events = events
        self._use(setup)

    def _use(self, setup: Setup) -> None:
        self._setup = setup
        self._sizer = Sizer(setup.policy, setup.counter)
        self._watch.use(setup.limits)

    @property
    def setup(self) -> Setup:
        """How the session is kept."""
        return self._setup

    @setup.setter
    def setup(self, setup: Setup) -> None:
        self._use(setup)

    @property
    def in_turn(self) -> bool:
        """Whether user and assistant speak in turn in the view, as chat templates want it."""
        return self._learnt_turns or applies_template(self.setup.model)

    @property
    def overhead(self) -> int:
        """The tokens of the system prompt and the tools that are given apart."""
        return self.setup.overhead.system + self.setup.overhead.tools

    @property
    def compact_at(self) -> int | None:
        """The input in tokens past which the policy has the provider compact; None: never."""
        policy, window = self.setup.policy, self.setup.window
        amount = policy.provider_compaction if policy.enabled else None
        return amount.resolve(window, usable_of(policy, window)) if amount is not None else None

    @property
    def view_tokens(self) -> int:
        """The size of the view by Foldline's own count, system prompt and tools included."""
        return self.overhead + self._cursor.state.tokens

    @property
    def context_tokens(self) -> int:
        """The size of the next request: the newest reply's usage, and estimates of what came since."""
        return self._cursor.state.context_size(self.overhead, self.calibrator.ratio)

    def trigger_size(self, state: ViewState) -> int:
        """Return the size that the policy's triggers look at, in tokens."""
        return self._sizer.size(state, self.overhead, self.calibrator.ratio)

    def trigger_facts(self) -> TriggerFacts:
        """Return the view as it is, as what decides when to compact sees it."""
        setup, state, ratio = self.setup, self._cursor.state, self.calibrator.ratio
        ask = fold_request(state, setup.policy, setup.window, "threshold", overhead=setup.overhead, now="")
        return trigger_facts(state, ask, self._sizer, setup.counter, ratio=ratio, now=time.time())

    def ask(
        self,
        reason: Reason,
        instructions: str | None = None,
        target: int | None = None,
        *,
        share: float = 1.0,
    ) -> FoldRequest:
        """Return what is asked of a compaction of the view as it is.

        `share` is the part of the window to work with, where the provider counts more tokens than we do.
        """
        setup, state = self.setup, self._cursor.state
        return fold_request(
            state,
            setup.policy,
            setup.window,
            reason,
            instructions=instructions,
            target=target,
            overhead=setup.overhead,
            now=now(),
            ratio=self.calibrator.ratio,
            share=share,
            economy=economy_of(setup, state, time.time()),
            sizer=self._sizer,
            project=on_compacting(text_of(setup.system)),
        )

    # ---- learning

    def begin(self) -> None:
        """Take from the loaded log what it knows of the model, and say what is only assumed."""
        self._kept, before = kept_in(self._cursor.state.entries()), None
        if self._kept is not None:
            self.setup, before = with_kept(self.setup, self._kept)
        self._look_at_once(before)
        if text := self.setup.info.warning:
            self._warn("unknown_window", text)
        self.load()

    def _look_at_once(self, before: ModelInfo | None) -> None:
        """Have the view of a session with a past looked at; `before` is what it was kept with, if known."""
        kept = self._cursor.state.kept
        if before is not None and before.window.input_limit <= self.setup.window.input_limit:
            if kept:
                self._watch.said([kept[-1].message])
        elif self._has_past:
            self._watch.happened("before_smaller_window")

    @property
    def _has_past(self) -> bool:
        """Whether something was said before."""
        state = self._cursor.state
        return bool(state.kept) or state.boundary is not None

    def to_keep(self) -> list[Noted]:
        """Return the note of the model and the window that were given, where the log does not say them."""
        known = self._kept or KeptModel()
        wanted = kept_with(self.setup.given, known)
        return [] if wanted == known else [wanted.noted()]

    def load(self) -> None:
        """Take from the log what it knows of the window and of the model's own count."""
        state = self._cursor.state
        known, self._kept = self._kept, kept_in(state.entries())
        given = kept_with(KeptModel(window=self.setup.given.window), self._kept or KeptModel())
        changed = self.follows and self._kept not in (None, known) and given != self.setup.given
        if changed:
            self._go_on_with(given.model or None, given.window)
        self.setup = with_learnt(self.setup, state.entries())
        self._learnt_turns = self._turns_kept()
        self.calibrator.load(state, self.overhead)
        if changed:
            self._tell_change()

    def believed(self, messages: Sequence[Message]) -> list[Message]:
        """Return messages without the usage that cannot be true; said once.

        Nothing is decided by such figures, and nothing is learnt from them; the native message keeps them.
        """
        sent, window, counted = self.view_tokens, self.setup.window, 0
        found = list(messages)
        for place, message in enumerate(messages):
            if (usage := message.usage) is None:
                continue
            sent += sum(message_tokens(one, self.setup.counter) for one in messages[counted:place])
            counted = place
            if not is_credible(usage, sent, window) or is_too_small(usage, sent, window):
                found[place] = msgspec.structs.replace(message, usage=None)
                self._warn_of(usage, sent)
        return found

    def _warn_of(self, usage: Usage, sent: int) -> None:
        if not self._told_incredible:
            self._told_incredible = True
            self._warn(
                "usage",
                f"a reply says that {usage.total - usage.output:,} tokens of input and {usage.output:,} of "
                f"output were counted, in a window of {self.setup.window.context:,}, for a request of about "
                f"{sent:,}: that is not counted",
            )

    def _warn(self, kind: WarningKind, text: str) -> None:
        log.warning("session %s: %s", self._cursor.session, text)
        self._events.emit(WarningGiven(kind=kind, text=text))

    def keeps(self, notes: Sequence[Noted]) -> None:
        """Remember what was noted of the model."""
        self._kept = kept_in(notes) or self._kept

    def heard(self) -> None:
        """Learn from the newest reply of the view, if it was not learnt from."""
        self.calibrator.said(self._cursor.state, self.overhead)

    async def change(self, model: str | None, window: int | Window | None) -> None:
        """Work with the limits of another model, and note it in the log; the lock is held.

        `window` in tokens overrides what the catalogue says. Without one the model that the session is kept
        with has the window that it is kept with.
        """
        self._go_on_with(model, window)
        note = self.setup.given.noted()
        await self._cursor.write(note)
        self.keeps([note])
        self.calibrator.load(self._cursor.state, self.overhead)
        self._tell_change()

    def _go_on_with(self, model: str | None, window: int | Window | None) -> None:
        """Work with the limits of another model; its calibration is not loaded yet."""
        kept = self._kept or self.setup.given
        window = kept.window if window is None and kept.model == (model or "") else window
        info = self.setup.catalogue.look_up(model, window)
        given, before = KeptModel(model or "", window), self.setup
        setup = msgspec.structs.replace(with_info(before, info), given=given)
        self.setup = with_learnt(setup, self._cursor.state.entries())
        other = self.setup.model != before.model or self.setup.window != before.window
        self._watch.use(self.setup.limits, switched=other and self._has_past)
        self._learnt_turns = self._turns_kept()
        self.calibrator = Calibrator(model)

    def _tell_change(self) -> None:
        self._events.emit(ModelChanged(model=self.setup.model, context=self.setup.window.context))

    def speak(self, dialect: str | None, tools: Any) -> None:
        """Have the view in another dialect, and other tool definitions beside it; None: as before."""
        setup = self.setup
        if dialect is not None:
            setup = msgspec.structs.replace(setup, dialect=dialect)
        if tools is not None:
            overhead = overhead_of(setup.system, tools, setup.counter)
            setup = msgspec.structs.replace(setup, tools=tools, overhead=overhead)
        self.setup = setup

    def follow(self, policy: Policy) -> None:
        """Work by another policy, fitted to the model."""
        self.setup = with_info(msgspec.structs.replace(self.setup, rules=policy), self.setup.info)
        self._events.emit(PolicyChanged(policy=policy.name))

    async def learn_window(self, found: Overflow, sent: int) -> None:
        """Take over what an overflow teaches of the window and of the model's own count; the lock is held.

        `sent` is the size of the request that did not fit, in tokens by our count.
        """
        setup = self.setup
        if found.asked:
            self.calibrator.refused(sent, found.asked)
        window = learn(setup.window, found, known=setup.info.known, sent=sent)
        if window is None or (setup.info.known and window.context > setup.window.context):
            return  # a smaller window than the model's was asked for
        learnt = msgspec.structs.replace(setup.info, window=window, known=True, found="learned")
        self.setup = with_info(setup, learnt)
        await self._cursor.write(self._noted(WINDOW, context=window.context))
        before = setup.window.context
        self._events.emit(WindowLearnt(model=setup.model or "", context=window.context, before=before))

    async def learn_turns(self) -> None:
        """Have user and assistant speak in turn from now on, as the model wants it; the lock is held."""
        self._learnt_turns = True
        await self._cursor.write(self._noted(IN_TURN))
        self._warn(
            "roles",
            "the model wants user and assistant in turn: from now on neighbours of one role are joined",
        )

    def _turns_kept(self) -> bool:
        return _newest(self._cursor.state.entries(), IN_TURN, self.setup.model or "") is not None

    def _noted(self, kind: str, **data: Any) -> Noted:
        """Return a note of what is known of the model, not chained yet."""
        return Noted("", None, kind, {"model": self.setup.model or "", **data}, at=time.time())

    def notes(self) -> list[Noted]:
        """Return the notes that a boundary has to carry on, so that they stay within reach behind it."""
        calibration, context = self.calibrator.now, self.setup.window.context
        found = [self._noted(CALIBRATION, **msgspec.to_builtins(calibration))] if calibration.samples else []
        found += [self._kept.noted()] if self._kept is not None else []
        found += [self._noted(IN_TURN)] if self._learnt_turns else []
        learnt = learnt_window(self._cursor.state.entries(), self.setup.model) == context
        return [*found, self._noted(WINDOW, context=context)] if learnt else found


# ---- the window


def learnt_window(entries: Sequence[Entry], model: str | None) -> int | None:
    """Return the context that an overflow of this model taught, in tokens; None where none did."""
    newest = _newest(entries, WINDOW, model or "")
    context = newest[1].data.get("context") if newest is not None else None
    return context if isinstance(context, int) and context > 0 else None


def with_info(setup: Setup, info: ModelInfo) -> Setup:
    """Return how a session is kept with another model or window: the policy is fitted to it anew."""
    policy = resolve(setup.rules, info.name, info.window) if setup.rules is not None else setup.policy
    return msgspec.structs.replace(setup, info=info, policy=policy)


def kept_with(given: KeptModel, kept: KeptModel) -> KeptModel:
    """Return the model and the window that a session goes on with: those given, else those stored.

    A window that is stored is that of the model that it is stored with.
    """
    model = given.model or kept.model
    stored = kept.window if model == kept.model else None
    return KeptModel(model, stored if given.window is None else given.window)


def with_kept(setup: Setup, kept: KeptModel) -> tuple[Setup, ModelInfo]:
    """Return how a session goes on with what is stored of its model, and what it was kept with before."""
    own = setup.info.window if setup.info.found == "given" else None  # of the settings, where none was given
    before, now = (
        setup.catalogue.look_up(one.model or setup.model, own if one.window is None else one.window)
        for one in (kept, kept_with(setup.given, kept))
    )
    return with_info(setup, now), before


def with_learnt(setup: Setup, entries: Sequence[Entry]) -> Setup:
    """Return how a session is kept with what its log knows of the window."""
    context = learnt_window(entries, setup.model)
    if context is None or context == setup.window.context:
        return setup
    return with_info(setup, learned(setup.info, context))


def _newest(entries: Sequence[Entry], kind: str, model: str) -> tuple[int, Noted] | None:
    """The newest note of a kind about a model, and its index."""
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if isinstance(entry, Noted) and entry.kind == kind and entry.data.get("model") == model:
            return index, entry
    return None


# ---- the provider's cache, and what requests cost


def cache_of(state: ViewState, dialect: str, now: float) -> Cache:
    """Return what the newest reply since the boundary says of the cache; `now` is Unix time.

    Some providers cache every prompt, others what was marked: there only what it read or wrote counts.
    """
    for entry in reversed(state.kept[state.usage_from :]):
        usage = real_usage(entry.message)
        if usage is None:
            continue
        native = entry.message.native
        spoken = native.dialect if native is not None else dialect
        marked = spoken in names() and get(spoken).marks_cache
        tokens = usage.cache_read + (usage.cache_write if marked else usage.input)
        return Cache(tokens, idle=None if entry.at is None else max(0.0, now - entry.at))
    return Cache()


def economy_of(setup: Setup, state: ViewState, now: float) -> Economy | None:
    """Return the prices and the cache of a session, for the balance of a compaction; None without a price."""
    price = setup.info.price
    return None if price is None else Economy(price, cache_of(state, setup.dialect or "", now))


# ---- calibration


class Calibrator:
    """The calibration of one model; entries are taken as they come."""

    def __init__(self, model: str | None) -> None:
        self._model = model or ""
        self._entry: str | None = None  # the newest reply that was learnt from
        self.now = Calibration()

    @property
    def ratio(self) -> float:
        """Real tokens to an estimated one; 1 while nothing was learnt."""
        return self.now.ratio

    def load(self, state: ViewState, overhead: int) -> None:
        """Begin with the newest note, and learn from the replies behind it whose requests the view shows."""
        entries = state.entries()
        found = _newest(entries, CALIBRATION, self._model)
        self.now = _calibration(found[1]) if found is not None else Calibration()
        since = {entry.id for entry in entries[(found[0] if found is not None else 0) :]}
        fresh = {entry.id for entry in state.kept[state.usage_from :]} & since
        before = overhead
        for item in state.items():
            if isinstance(item, MessageItem) and item.entry.id in fresh:
                self._learn(item.entry, before)
            before += item_tokens(item)

    def said(self, state: ViewState, overhead: int) -> None:
        """Learn from the newest reply with usage, if it was not learnt from."""
        if state.anchor is None:
            return
        entry = state.kept[state.anchor]
        if entry.id != self._entry:
            behind = sum(later.tokens for later in state.kept[state.anchor :])
            self._learn(entry, overhead + state.tokens - state.open_call_tokens - behind)

    def refused(self, estimated: int, asked: int) -> None:
        """Learn from a request that did not fit: what the provider counted, and what we did."""
        self.now = update(self.now, estimated, asked)

    def _learn(self, entry: Said, estimated: int) -> None:
        """Compare the input that a provider counted for a reply with the estimate of the view before it."""
        usage = real_usage(entry.message)
        if usage is not None:
            self.now = update(self.now, estimated, usage.total - usage.output)
            self._entry = entry.id


def _calibration(note: Noted) -> Calibration:
    try:
        known = {key: note.data[key] for key in ("ratio", "samples") if key in note.data}
        return msgspec.convert(known, Calibration)
    except msgspec.ValidationError:
        return Calibration()

"""A session's setup, kept up to date with its log: the model, its window, the calibration of its tokens.

What was learnt is stored in notes (`kept.py`). Each boundary is appended with one note of each kind; anything
newer is read from the entries after it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from foldline.catalogue import learn, learned
from foldline.core.carried.instructions import on_compacting
from foldline.core.compact.fold_request import Sizer, fold_request, trigger_facts
from foldline.core.decide.ask import FoldRequest
from foldline.core.decide.policy import Policy, usable_of
from foldline.core.decide.price import Cache, Economy
from foldline.core.decide.watch import TriggerFacts, Watch
from foldline.core.log.entries import Noted, Reason
from foldline.core.log.messages import Message, Usage
from foldline.core.measure.accounting import is_credible, is_too_small, real_usage
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.tokens import message_tokens
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
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
from foldline.session.kept import (
    CALIBRATION,
    IN_TURN,
    WINDOW,
    Calibrator,
    KeptModel,
    kept_in,
    kept_with,
    learnt_window,
    newest_note,
    replies_before,
)
from foldline.session.setup import Setup, with_info, with_kept, with_learnt

log = logging.getLogger("foldline")


class SessionModel:
    """A session's setup, kept up to date with its log."""

    def __init__(self, cursor: Cursor, setup: Setup, events: Events, watch: Watch) -> None:
        self.calibrator = Calibrator(setup.model)
        self.follows = False  # adopts a model that another process has noted since
        self._warned_of_usage = False
        self._merges_roles = False
        self._kept: KeptModel | None = None  # the newest note of the path
        self._others: frozenset[str] = frozenset()  # the view's replies of other models
        self._watch = watch
        self._cursor = cursor
        self._events = events
        self.setup = setup

    @property
    def setup(self) -> Setup:
        """The session's current settings."""
        return self._setup

    @setup.setter
    def setup(self, setup: Setup) -> None:
        self._setup = setup
        self._sizer = Sizer(setup.policy, setup.counter)
        self._watch.use(setup.limits)

    @property
    def in_turn(self) -> bool:
        """Whether neighbouring messages of one role are joined, as some chat templates require."""
        return self._merges_roles or applies_template(self.setup.model)

    @property
    def overhead(self) -> int:
        """The tokens of the system prompt and the tools, which are not part of the messages."""
        return self.setup.overhead.system + self.setup.overhead.tools

    @property
    def compact_at(self) -> int | None:
        """The input size in tokens above which the provider compacts on its server; None: never."""
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
        """Return the size in tokens that the policy's triggers compare."""
        return self._sizer.size(state, self.overhead, self.calibrator.ratio)

    def trigger_facts(self) -> TriggerFacts:
        """Return the facts of the current view that decide when to compact."""
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
        """Return a fold request for the current view.

        `share` is the part of the window to use if the provider counts more tokens than we do.
        """
        setup, state, price = self.setup, self._cursor.state, self.setup.info.price
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
            economy=Economy(price, self.cache(setup.dialect or "")) if price is not None else None,
            sizer=self._sizer,
            project=on_compacting(text_of(setup.system)),
        )

    def cache(self, dialect: str) -> Cache:
        """Return what the provider's cache holds of the view for the session's model, by the newest usage."""
        return cache_of(self._cursor.state, dialect, time.time(), self._others)

    # ---- learning

    def begin(self) -> None:
        """Read the model from the loaded log; check the view against its window, which may be assumed."""
        self._kept, before = kept_in(self._cursor.state.entries()), None
        if self._kept is not None:
            self.setup, before = with_kept(self.setup, self._kept)
            self.calibrator = Calibrator(self.setup.model)
        kept = self._cursor.state.kept
        if before is not None and before.window.input_limit <= self.setup.window.input_limit:
            if kept:
                self._watch.said([kept[-1].message])
        elif self._has_past:
            self._watch.happened("before_smaller_window")
        if text := self.setup.info.warning:
            self._warn("unknown_window", text)
        self.load()

    @property
    def _has_past(self) -> bool:
        """Whether the session has earlier messages."""
        state = self._cursor.state
        return bool(state.kept) or state.boundary is not None

    def unsaved_notes(self) -> list[Noted]:
        """Return the note of the given model and window if the log does not have it."""
        stored = self._kept or KeptModel()
        current = kept_with(self.setup.given, stored)
        return [] if current == stored else [current.noted()]

    def load(self) -> None:
        """Read the model, the learnt window and the calibration from the log."""
        state = self._cursor.state
        previous, self._kept = self._kept, kept_in(state.entries())
        given = kept_with(KeptModel(window=self.setup.given.window), self._kept or KeptModel())
        changed = self.follows and self._kept not in (None, previous) and given != self.setup.given
        if changed:
            self._switch_to(given.model or None, given.window)
        self.setup = with_learnt(self.setup, state.entries())
        self._merges_roles = self._turns_stored()
        self._load_calibration()
        if changed:
            self._emit_change()

    def _load_calibration(self) -> None:
        state, model = self._cursor.state, kept_with(self.setup.given, self._kept or KeptModel()).model
        self._others = replies_before(state, model)
        self.calibrator.load(state, self.overhead, self._others)

    def without_wrong_usage(self, messages: Sequence[Message]) -> list[Message]:
        """Return messages with implausible usage removed, and warn once.

        Such figures are neither used nor learnt from; the native message still has them.
        """
        sent, window, counted = self.view_tokens, self.setup.window, 0
        result = list(messages)
        for place, message in enumerate(messages):
            if (usage := message.usage) is None:
                continue
            sent += sum(message_tokens(earlier, self.setup.counter) for earlier in messages[counted:place])
            counted = place
            if not is_credible(usage, sent, window) or is_too_small(usage, sent, window):
                result[place] = msgspec.structs.replace(message, usage=None)
                self._warn_of_usage(usage, sent)
        return result

    def _warn_of_usage(self, usage: Usage, sent: int) -> None:
        if not self._warned_of_usage:
            self._warned_of_usage = True
            self._warn(
                "usage",
                f"a reply reports {usage.total - usage.output:,} input and {usage.output:,} output tokens, "
                f"in a window of {self.setup.window.context:,}, for a request of about {sent:,}: "
                "this usage is ignored",
            )

    def _warn(self, kind: WarningKind, text: str) -> None:
        log.warning("session %s: %s", self._cursor.session, text)
        self._events.emit(WarningGiven(kind=kind, text=text))

    def remember(self, notes: Sequence[Noted]) -> None:
        """Remember a stored note of the model."""
        self._kept = kept_in(notes) or self._kept

    def learn_usage(self) -> None:
        """Calibrate with the newest reply of the view, once."""
        self.calibrator.said(self._cursor.state, self.overhead)

    async def change(
        self, model: str | None, window: int | Window | None, dialect: str | None, tools: Any
    ) -> None:
        """Note another model in the log, then switch to it; the lock is held.

        `window` in tokens overrides the catalogue. Without one, the stored model keeps its stored window. The
        view's `dialect` and the `tools` stay if they are None.
        """
        kept = self._kept or self.setup.given
        window = kept.window if window is None and kept.model == (model or "") else window
        note = KeptModel(model or "", window).noted()
        await self._cursor.write(note)
        self.remember([note])
        self._use_dialect(dialect, tools)
        self._switch_to(model, window)
        self._load_calibration()
        self._emit_change()

    def _switch_to(self, model: str | None, window: int | Window | None) -> None:
        """Switch to the limits of another model; its calibration is not loaded yet."""
        info = self.setup.catalogue.look_up(model, window)
        given, before = KeptModel(model or "", window), self.setup
        setup = msgspec.structs.replace(with_info(before, info), given=given)
        self.setup = with_learnt(setup, self._cursor.state.entries())
        switched = self.setup.model != before.model or self.setup.window != before.window
        self._watch.use(self.setup.limits, switched=switched and self._has_past)
        self._merges_roles = self._turns_stored()
        self.calibrator = Calibrator(model)

    def _emit_change(self) -> None:
        self._events.emit(ModelChanged(model=self.setup.model, context=self.setup.window.context))

    def _use_dialect(self, dialect: str | None, tools: Any) -> None:
        dialect = self.setup.dialect if dialect is None else dialect
        setup = msgspec.structs.replace(self.setup, dialect=dialect)
        if tools is not None:
            overhead = overhead_of(setup.system, tools, setup.counter)
            setup = msgspec.structs.replace(setup, tools=tools, overhead=overhead)
        self.setup = setup

    def follow(self, policy: Policy) -> None:
        """Change the policy, fitted to the model."""
        self.setup = with_info(msgspec.structs.replace(self.setup, rules=policy), self.setup.info)
        self._events.emit(PolicyChanged(policy=policy.name))

    async def learn_window(self, found: Overflow, sent: int) -> None:
        """Learn the window and the calibration from an overflow; the lock is held.

        `sent` is our count of the tokens of the request that did not fit.
        """
        setup = self.setup
        if found.asked:
            self.calibrator.refused(sent, found.asked)
        window = learn(setup.window, found, known=setup.info.known, sent=sent)
        if window is None or (setup.info.known and window.context > setup.window.context):
            return  # the user asked for a smaller window than the model's
        self.setup = with_info(setup, learned(setup.info, window.context))
        await self._cursor.write(self._note(WINDOW, context=window.context))
        before = setup.window.context
        self._events.emit(WindowLearnt(model=setup.model or "", context=window.context, before=before))

    async def learn_turns(self) -> None:
        """Join neighbouring messages of one role from now on; the lock is held."""
        self._merges_roles = True
        await self._cursor.write(self._note(IN_TURN))
        self._warn(
            "roles",
            "the model rejects consecutive messages of one role: from now on they are joined",
        )

    def _turns_stored(self) -> bool:
        return newest_note(self._cursor.state.entries(), IN_TURN, self.setup.model or "") is not None

    def _note(self, kind: str, **data: Any) -> Noted:
        """Return a note about the model, not chained yet."""
        return Noted("", None, kind, {"model": self.setup.model or "", **data}, at=time.time())

    def notes(self) -> list[Noted]:
        """Return the notes to append with a boundary, so that the view still has them."""
        calibration, context = self.calibrator.now, self.setup.window.context
        notes = [self._note(CALIBRATION, **msgspec.to_builtins(calibration))] if calibration.samples else []
        notes += [self._kept.noted()] if self._kept is not None else []
        notes += [self._note(IN_TURN)] if self._merges_roles else []
        learnt = learnt_window(self._cursor.state.entries(), self.setup.model) == context
        return [*notes, self._note(WINDOW, context=context)] if learnt else notes


# ---- the provider's cache


def cache_of(state: ViewState, dialect: str, now: float, others: frozenset[str]) -> Cache:
    """Return the provider's cache by the usage of the newest reply since the boundary; `now` is Unix time.

    Some providers cache every prompt, others only marked parts: there only tokens read or written count. A
    reply of another model, one of `others`, left nothing in this model's cache.
    """
    for entry in reversed(state.kept[state.usage_from :]):
        usage = real_usage(entry.message)
        if usage is None:
            continue
        if entry.id in others:
            break
        native = entry.message.native
        spoken = native.dialect if native is not None else dialect
        marked = spoken in names() and get(spoken).marks_cache
        tokens = usage.cache_read + (usage.cache_write if marked else usage.input)
        return Cache(tokens, idle=None if entry.at is None else max(0.0, now - entry.at))
    return Cache()

"""What a session knows of its model: the window, learnt or told, and how the model's count differs from ours."""

from __future__ import annotations

import logging
import time

import msgspec

from foldline.core.decide.ask import Ask, Reason
from foldline.core.log.entries import Lifted, Noted, Said
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.providers.learned import learn
from foldline.session.calibrate import Calibrator
from foldline.session.cursor import Cursor
from foldline.session.events import Event, Events, ModelChanged, WarningGiven, WindowLearnt
from foldline.session.setup import Setup
from foldline.session.triggers import Triggers, ask_of
from foldline.session.windows import note_of, window_note, with_info, with_learnt

log = logging.getLogger("foldline")


class Knowing:
    """The limits that a session works with, kept in step with its log."""

    def __init__(self, writer: Cursor, setup: Setup, events: Events) -> None:
        self.calibrator = Calibrator(setup.model)
        self.triggers = Triggers(setup, self.calibrator)
        self._log = writer
        self._events = events

    @property
    def setup(self) -> Setup:
        """How the session is kept."""
        return self.triggers.setup

    @property
    def fold(self) -> ViewState:
        """The fold of the path as it is."""
        return self._log.fold

    @property
    def apart(self) -> int:
        """The tokens of the system prompt and the tools that are given apart."""
        return self.setup.apart.system + self.setup.apart.tools

    @property
    def view_tokens(self) -> int:
        """The size of the view by Foldline's own count, system prompt and tools included."""
        return self.apart + self._log.fold.tokens

    def tell(self, event: Event) -> None:
        """Tell those who watch the session."""
        self._events.emit(event)

    def begin(self) -> None:
        """Take from the loaded log what it knows of the model, and say what is only assumed."""
        setup = self.setup
        if text := setup.info.warning:
            log.warning("session %s: %s", self._log.session, text)
            self._events.emit(WarningGiven(kind="unknown_window", text=text))
        self.triggers.use(with_learnt(setup, self._log.fold.entries()))
        self.calibrator.load(self._log.fold, self.apart)
        self.undone()

    def undone(self) -> None:
        """Where the newest of the path is an undo, let it stand until something is said, if the view fits as it is."""
        newest = next((e for e in reversed(self._log.fold.entries()) if isinstance(e, Said | Lifted)), None)
        if isinstance(newest, Lifted) and newest.lifted:
            self.triggers.looked()
            if self.view_tokens > self.ask("threshold").usable:
                self.triggers.happened("before_smaller_window")

    def caught_up(self) -> None:
        """Take over what others have written: what they learnt, and that their messages were not looked at yet."""
        fold = self._log.fold
        self.triggers.use(with_learnt(self.setup, fold.entries()))
        if fold.kept:
            self.triggers.said([fold.kept[-1].message])
        self.calibrator.load(fold, self.apart)

    async def use_model(self, model: str | None, window: int | Window | None) -> None:
        """Go on with another model; the lock is held."""
        info = self.setup.catalogue.look_up(model, window)
        self.triggers.use(with_learnt(with_info(self.setup, info), self._log.fold.entries()))
        self.calibrator = self.triggers.calibrator = Calibrator(model)
        self.triggers.happened("before_smaller_window")
        await self._log.write(Noted("", None, "model", {"model": model or ""}, at=time.time()))
        self.calibrator.load(self._log.fold, self.apart)
        self._events.emit(ModelChanged(model=model, context=self.setup.window.context))

    def ask(
        self,
        reason: Reason,
        instructions: str | None = None,
        target: int | None = None,
        *,
        share: float = 1.0,
    ) -> Ask:
        """Return what is asked of a compaction of the view as it is."""
        if reason in ("threshold", "model_switch"):
            share = min(share, 1 / self.calibrator.ratio)
        return ask_of(self.setup, self._log.fold, reason, instructions, target, share=share)

    async def learn_window(self, found: Overflow, sent: int) -> None:
        """Take over what an overflow teaches of the window and of the model's own count; the lock is held."""
        setup = self.setup
        if found.asked:
            self.calibrator.refused(sent, found.asked)
        window = learn(setup.window, found, known=setup.info.known, sent=sent)
        if window is None or (setup.info.known and window.context > setup.window.context):
            return  # a smaller window than the model's was asked for
        learnt = msgspec.structs.replace(setup.info, window=window, known=True, found="learned")
        self.triggers.use(with_info(setup, learnt))
        await self._log.write(msgspec.structs.replace(note_of(self.setup), at=time.time()))
        before = setup.window.context
        self._events.emit(WindowLearnt(model=setup.model or "", context=window.context, before=before))

    def notes(self) -> list[Noted]:
        """Return what has to stay within reach behind a boundary."""
        return [*self.calibrator.note(), *window_note(self._log.fold.entries(), self.setup)]

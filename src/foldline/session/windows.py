"""The model's window as the session knows it: learnt from an overflow, kept as a note, read again at the next start."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.decide.presets import resolve
from foldline.core.log.entries import Entry, Noted
from foldline.core.measure.window import Window
from foldline.folding import window_for
from foldline.providers.learned import limits, narrowed
from foldline.session.setup import Setup

NOTE = "window"


def learnt_window(entries: Sequence[Entry], model: str | None) -> int | None:
    """Return the context that an overflow of this model taught, in tokens; None where none did."""
    for entry in reversed(entries):
        if isinstance(entry, Noted) and entry.kind == NOTE and entry.data.get("model") == (model or ""):
            context = entry.data.get("context")
            return context if isinstance(context, int) and context > 0 else None
    return None


def note_of(setup: Setup) -> Noted:
    """Return the note of the window as it is."""
    return Noted("", None, NOTE, {"model": setup.model or "", "context": setup.window.context})


def window_note(entries: Sequence[Entry], setup: Setup) -> list[Noted]:
    """Return the note that a boundary has to carry on, where a window was learnt."""
    return [note_of(setup)] if learnt_window(entries, setup.model) == setup.window.context else []


def with_window(setup: Setup, window: Window, *, known: bool = True) -> Setup:
    """Return how a session is kept with another window: the policy is fitted to it anew."""
    policy = resolve(setup.rules, setup.model, window) if setup.rules is not None else setup.policy
    return msgspec.structs.replace(setup, window=window, policy=policy, known=known, warnings=())


def with_model(setup: Setup, model: str | None, window: int | Window | None) -> Setup:
    """Return how a session is kept with another model; `window` in tokens overrides what the catalogue says."""
    changed = msgspec.structs.replace(setup, model=model)
    found = limits(model) if model and window is None else None
    known = found.model.known if found else window is not None
    done = with_window(changed, window_for(model, window), known=known)
    warnings = (found.warning,) if found and found.warning else ()
    return msgspec.structs.replace(done, warnings=warnings)


def with_learnt(setup: Setup, entries: Sequence[Entry]) -> Setup:
    """Return how a session is kept with what its log knows of the window."""
    context = learnt_window(entries, setup.model)
    if context is None or context == setup.window.context:
        return setup
    return with_window(setup, narrowed(setup.window, context))

"""The model's window as the session knows it: learnt from an overflow, kept as a note, read again at the next start."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.catalogue import ModelInfo
from foldline.core.decide.presets import resolve
from foldline.core.log.entries import Entry, Noted
from foldline.providers.learned import learned
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


def with_info(setup: Setup, info: ModelInfo) -> Setup:
    """Return how a session is kept with another model or window: the policy is fitted to it anew."""
    policy = resolve(setup.rules, info.name, info.window) if setup.rules is not None else setup.policy
    return msgspec.structs.replace(setup, info=info, policy=policy)


def with_learnt(setup: Setup, entries: Sequence[Entry]) -> Setup:
    """Return how a session is kept with what its log knows of the window."""
    context = learnt_window(entries, setup.model)
    if context is None or context == setup.window.context:
        return setup
    return with_info(setup, learned(setup.info, context))

"""A stretch of entries with what every kind of fact asks of it, worked out once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from foldline.core.ledger.facts.actions import Action, action
from foldline.core.ledger.facts.calls import Use, uses
from foldline.core.ledger.facts.commands import home
from foldline.core.ledger.facts.touches import touches
from foldline.core.ledger.text.paths import common_folder
from foldline.core.log.entries import Said
from foldline.core.log.opaque import opened


class Stretch(msgspec.Struct, frozen=True):
    """Entries in order, their calls with their results, what each call did, and the folder of the work."""

    entries: Sequence[Said]
    calls: Sequence[Use] = ()
    done: Sequence[Action | None] = ()
    base: str = ""

    def actions(self) -> Iterator[tuple[Use, Action]]:
        """Yield each call that did something, with what it did."""
        yield from ((use, done) for use, done in zip(self.calls, self.done, strict=True) if done is not None)


def stretch(entries: Sequence[Said]) -> Stretch:
    """Read the calls of entries."""
    entries = [_opened(entry) for entry in entries]
    calls = uses(entries)
    base = home(calls) or common_folder(touch.path for use in calls for touch in touches(use))
    return Stretch(entries, calls, tuple(action(use, base) for use in calls), base)


def _opened(entry: Said) -> Said:
    """Return an entry with what its provider ran as calls and results that can be read."""
    message = opened(entry.message)
    return entry if message is entry.message else msgspec.structs.replace(entry, message=message)

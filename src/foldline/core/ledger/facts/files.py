"""Files read, created, modified and deleted: the latest state of each that counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from foldline.core.ledger.facts.actions import Stretch
from foldline.core.ledger.facts.calls import rejected
from foldline.core.ledger.facts.kinds import FileFact, Ledger
from foldline.core.ledger.facts.touches import touches

CARRIED = 300  # files from fold to fold: the newest
CITED = 12
"""The newest entries that a fact of one range cites."""
MERGED = 200
"""The most entries that a fact cites after many folds."""

_FOLDER = re.compile(r"<type>directory</type>")
"""What a reading tool says when it was given a folder."""


def after(old: str, new: str) -> str:
    """Return what a file is that was `old` and became `new`; a deleted one that is read was brought back."""
    if new == "deleted" or not old:
        return new
    if old == "deleted":
        return "modified" if new == "read" else "created"
    if new == "read":
        return old
    return "created" if old == "created" else "modified"


def _joined(old: FileFact | None, new: FileFact) -> FileFact:
    """Join what is known of one file, `new` being the later."""
    if old is None:
        return new
    if set(new.entries) <= set(old.entries) and new.status == old.status:
        return old
    return FileFact(
        path=new.path,
        status=after(old.status, new.status),
        uses=old.uses + new.uses,
        entries=tuple(dict.fromkeys((*old.entries, *new.entries)))[-MERGED:],
    )


def collect(found: Stretch) -> tuple[FileFact, ...]:
    """Take the files from calls that worked, in the order of their last use."""
    files: dict[str, FileFact] = {}
    for use in found.calls:
        if use.result is None or use.passed is False or rejected(use.result) or _is_listing(use.result.text):
            continue
        for touch in dict.fromkeys(touches(use)):
            known = files.pop(touch.path, None)
            again = known is not None and known.entries[-1] == use.entry
            fact = FileFact(touch.path, touch.status, 0 if again else 1, (use.entry,))
            files[touch.path] = _touched(known, fact)
    return unified(msgspec.structs.replace(fact, entries=fact.entries[-CITED:]) for fact in files.values())


def _is_listing(text: str) -> bool:
    return bool(_FOLDER.search(text[:600]))


def _touched(old: FileFact | None, new: FileFact) -> FileFact:
    """Add one more touch to a file, however often the same call touched it before."""
    joined = _joined(old, new)
    return joined if old is None else msgspec.structs.replace(joined, status=after(old.status, new.status))


def unified(facts: Iterable[FileFact]) -> tuple[FileFact, ...]:
    """Join relative paths to the one absolute path that ends in them, where exactly one does."""
    all_facts = list(facts)
    by_name: dict[str, list[str]] = {}
    for fact in all_facts:
        if fact.path.startswith(("/", "~")) or fact.path[1:2] == ":":
            by_name.setdefault(fact.path.rsplit("/", 1)[-1], []).append(fact.path)
    found: dict[str, FileFact] = {}
    for fact in all_facts:
        path = fact.path
        if "/" in path.strip("/") and not path.startswith("/"):
            longer = [
                other for other in by_name.get(path.rsplit("/", 1)[-1], ()) if other.endswith("/" + path)
            ]
            path = longer[0] if len(longer) == 1 else path
        found[path] = _joined(found.pop(path, None), msgspec.structs.replace(fact, path=path))
    return tuple(found.values())


def merge(old: Sequence[FileFact], new: Sequence[FileFact], _later: Ledger) -> tuple[FileFact, ...]:
    """Merge the files of two ranges, `new` following `old`."""
    files = {fact.path: fact for fact in old}
    for fact in new:
        known = files.get(fact.path)
        joined = _joined(known, fact)
        if joined is not known:
            files.pop(fact.path, None)
            files[fact.path] = joined
    return unified(files.values())


def bound(facts: Sequence[FileFact]) -> tuple[FileFact, ...]:
    """Return the files that are carried on to the next fold."""
    return tuple(facts[-CARRIED:])

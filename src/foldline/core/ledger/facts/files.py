"""Files read, created, modified and deleted, by calls or by notes: the latest state of each that counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast, get_args

import msgspec

from foldline.core.ledger.facts.actions import Stretch
from foldline.core.ledger.facts.kinds import FileFact, Ledger
from foldline.core.ledger.facts.touches import folders
from foldline.core.log.entries import Noted, Said

CITED = 12  # entries that a fact cites: the newest
FILES: Final = "files"  # the kind of note with which a program reports files: {status: [path, ...]}
Status = Literal["read", "created", "modified", "deleted"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)
MOVES = 4  # of folders, one after the other, that are followed
_FOLDER = re.compile(r"<type>directory</type>")  # what a reading tool says when it was given a folder


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
    cites = tuple(dict.fromkeys((*old.entries, *new.entries)))[-CITED:]
    return FileFact(new.path, after(old.status, new.status), cites, new.moved)


def collect(found: Stretch) -> tuple[FileFact, ...]:
    """Take the files from calls that worked, in the order of their last use."""
    files: dict[str, FileFact] = {}
    for use in found.calls:
        if use.result is None or use.passed is False or _FOLDER.search(use.result.text[:600]):
            continue
        for touch in dict.fromkeys(use.touches):
            fact = FileFact(touch.path, touch.status, (use.entry,), touch.moved)
            files[touch.path] = _joined(files.pop(touch.path, None), fact)
    return unified(files.values())


def unified(facts: Iterable[FileFact]) -> tuple[FileFact, ...]:
    """Join relative paths to the one absolute path that ends in them, where exactly one does."""
    all_facts = _inside_what_is_left(list(facts))
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


def _inside_what_is_left(facts: Sequence[FileFact]) -> list[FileFact]:
    """Leave out files that went with a folder that was deleted later, and rename those that moved with it."""
    gone: dict[str, str] = {}
    found: list[FileFact] = []
    for fact in reversed(facts):
        place = fact.path
        for _ in range(MOVES):
            folder = next((one for one in folders(place) if one in gone), None)
            if folder is None:
                break
            place = gone[folder] and gone[folder] + place[len(folder) :]
        if place:
            found.append(msgspec.structs.replace(fact, path=place) if place != fact.path else fact)
        if fact.status == "deleted":
            gone[fact.path] = fact.moved
    return found[::-1]


def merge(old: Sequence[FileFact], new: Sequence[FileFact], _later: Ledger) -> tuple[FileFact, ...]:
    """Merge the files of two ranges, `new` following `old`; what both cite alike was merged before."""
    files = {fact.path: fact for fact in old}
    for fact in new:
        known = files.get(fact.path)
        if known is None or known.status != fact.status or not set(fact.entries) <= set(known.entries):
            files[fact.path] = _joined(files.pop(fact.path, None), fact)
    return unified(files.values())


# ---- files that the program around a session says were read or changed, noted in the log


def files_note(files: Mapping[Status, Sequence[str]]) -> dict[str, Any]:
    """Return the data of a note of files, by what became of them."""
    return {status: list(paths) for status, paths in files.items() if paths}


def tracked(
    notes: Sequence[Noted], before: Sequence[FileFact], found: Sequence[FileFact], said: Sequence[Said]
) -> tuple[Ledger, Ledger]:
    """Return the files in notes, each citing its note: those that calls used again later, and the rest.

    `found` is what the calls in `said` used, `before` what is known of earlier folds: notes up to the newest
    that it cites are in it.
    """
    cited = {entry for fact in before for entry in fact.entries}
    first = max((at for at, note in enumerate(notes, 1) if note.id in cited), default=0)
    places = {entry.id: at for at, entry in enumerate(said)}
    used = {fact.path: max((places.get(entry, -1) for entry in fact.entries), default=-1) for fact in found}
    earlier: list[FileFact] = []
    later: list[FileFact] = []
    for index, note in enumerate(notes):
        places[note.id] = at = places.get(note.parent or "", len(said))
        for fact in _files(note) if note.kind == FILES and index >= first else ():
            (earlier if at < used.get(fact.path, -1) else later).append(fact)
    return Ledger(files=tuple(earlier)), Ledger(files=tuple(later))


def _files(note: Noted) -> Iterator[FileFact]:
    for status in STATUSES:
        paths = note.data.get(status)
        for path in cast("list[Any]", paths) if isinstance(paths, list) else ():
            if isinstance(path, str) and path:
                yield FileFact(path, status, (note.id,))

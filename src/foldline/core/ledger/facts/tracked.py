"""Files that the program around a session says were read or changed, noted in the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast, get_args

from foldline.core.ledger.facts.kinds import FileFact, Ledger
from foldline.core.log.entries import Noted

FILES: Final = "files"  # the kind of note: {status: [path, ...]}
Status = Literal["read", "created", "modified", "deleted"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)


def files_note(files: Mapping[Status, Sequence[str]]) -> dict[str, Any]:
    """Return the data of a note of files, by what became of them."""
    return {status: list(paths) for status, paths in files.items() if paths}


def tracked(notes: Iterable[Noted]) -> Ledger:
    """Return the files that notes tell of, as a ledger; each cites its note."""
    return Ledger(files=tuple(fact for note in notes if note.kind == FILES for fact in _files(note)))


def _files(note: Noted) -> Iterator[FileFact]:
    for status in STATUSES:
        paths = note.data.get(status)
        for path in cast("list[Any]", paths) if isinstance(paths, list) else ():
            if isinstance(path, str) and path:
                yield FileFact(path, status, entries=(note.id,))

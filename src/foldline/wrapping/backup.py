"""A settings file changed so that it can be put back to the byte: its copy and a record beside it.

`FILE.foldline-backup` is the file as it was, `FILE.foldline.json` says what Foldline set, what stood there
before, and the SHA-256 of both files. Where the file was changed since, or its copy is gone, it is not put
back: what Foldline set is taken out of it, and everything else stays.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from foldline import files
from foldline.errors import InputError
from foldline.wrapping.agents import SettingsFile
from foldline.wrapping.documents import ABSENT, Place, edited, value_at, values

MOST: Final = 64 * 1024 * 1024  # bytes of a settings file
Back = Literal["restored", "removed", "taken out", "no copy", "was gone"]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A setting: what Foldline set there, and what stood there before (`had` False: nothing)."""

    path: Place
    value: Any
    had: bool = False
    before: Any = None


class Record(msgspec.Struct, frozen=True):
    """What was done to a file: its SHA-256 before (None: there was none) and after; the tables made in it."""

    before: str | None
    after: str
    entries: list[Entry]
    made: list[Place]


def is_wrapped(path: Path) -> bool:
    """Whether a file was changed and not put back yet."""
    return _record_of(path).exists()


class FileChange(NamedTuple):
    """What is to be done to a file: its content before, without what was set earlier, and after."""

    path: Path
    old: bytes | None
    new: bytes
    record: Record


def planned(file: SettingsFile) -> FileChange:
    """Return what setting all that is to be set in a file comes to; nothing is written.

    Raises InputError where the file cannot be edited safely.
    """
    old = as_before(file.path)[0] if is_wrapped(file.path) else _content(file.path)
    text = _text(file.path, old)
    held = values(str(file.path), text)
    settings = [*file.settings, *(one for one in file.offered if value_at(held, one[0]) is ABSENT)]
    entries = [
        Entry(path, value, True, found)
        if (found := value_at(held, path)) is not ABSENT
        else Entry(path, value)
        for path, value in settings
    ]
    new = edited(str(file.path), text, settings).encode()
    above = [path[:depth] for path, _ in settings for depth in range(1, len(path))]
    made = [path for path in dict.fromkeys(above) if value_at(held, path) is ABSENT]
    record = Record(_hash(old) if old is not None else None, _hash(new), entries, made)
    return FileChange(file.path, old, new, record)


def change(done: FileChange) -> None:
    """Change a file as planned, and keep it as it was beside it; what was set earlier is put back first."""
    put_back(done.path)
    if done.old is not None:
        _write(_copy_of(done.path), done.old)
    _write(_record_of(done.path), msgspec.json.encode(done.record))
    _write(done.path, done.new)


def put_back(path: Path) -> Back | None:
    """Put a file back as it was; None where nothing was done to it.

    `taken out`: it was changed since, and only what Foldline set in it is gone; `no copy`: the same, since
    its copy is gone. Raises InputError where it cannot be edited any more, or its copy is not what it was.
    """
    if not is_wrapped(path):
        return None
    content, done = as_before(path)
    if content is not None:
        _write(path, content)
    elif done == "removed":
        path.resolve().unlink()
    for left in (_copy_of(path), _record_of(path)):
        with suppress(FileNotFoundError):
            left.unlink()
    return done


def as_before(path: Path) -> tuple[bytes | None, Back]:
    """Return a wrapped file as `put_back` leaves it (None: there is none then), and how it comes to that."""
    try:
        record = msgspec.json.decode(files.content(_record_of(path), MOST), type=Record)
    except (msgspec.DecodeError, OSError) as error:
        raise InputError(f"{_record_of(path)} cannot be read ({error}): {_by_hand(path)}") from error
    now = _content(path)
    if now is None:
        return None, "was gone"
    if _hash(now) != record.after:
        return _without(path, _text(path, now), record), "taken out"
    if record.before is None:
        return None, "removed"
    if (old := _content(_copy_of(path))) is None:
        return _without(path, _text(path, now), record), "no copy"
    if _hash(old) != record.before:
        raise InputError(f"{_copy_of(path)} is not the file as it was: {_by_hand(path)}")
    return old, "restored"


def _by_hand(path: Path) -> str:
    return (
        f"{path} is left as it is. Take out by hand what Foldline set there (its copy of the file is "
        f"{_copy_of(path)}, if it is there), then remove that copy and {_record_of(path)}"
    )


def _without(path: Path, text: str, record: Record) -> bytes:
    """Return a file without what Foldline set, where that is still as it was set."""
    held = values(str(path), text)
    ours = [entry for entry in record.entries if value_at(held, entry.path) == entry.value]
    back = [(entry.path, entry.before if entry.had else ABSENT) for entry in ours]
    text = edited(str(path), text, back)
    for table in sorted(record.made, key=len, reverse=True):
        if value_at(values(path.name, text), table) == {}:
            text = edited(str(path), text, [(table, ABSENT)])
    return text.encode()


def _copy_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.foldline-backup")


def _record_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.foldline.json")


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()


def _content(path: Path) -> bytes | None:
    try:
        return files.content(path, MOST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _text(path: Path, content: bytes | None) -> str:
    try:
        return (content or b"").decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be edited: it is no UTF-8; it is left as it is") from error


def _write(path: Path, content: bytes) -> None:
    """Write a file whole; a link stays one, an old file keeps its mode, a new one is its owner's alone."""
    target = path.resolve()
    try:
        with files.written(target, mode=None if target.exists() else files.PRIVATE) as half:
            half.write(content)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error

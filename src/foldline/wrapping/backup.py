"""Change settings files so that they can be restored to the byte.

`FILE.foldline-backup` is a copy of the original, `FILE.foldline.json` a record of what Foldline set, the
values before, and the SHA-256 of both files. If the file was changed since, or its copy is gone, it is not
restored: only what Foldline set is removed from it.
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
    """A setting: the value that Foldline set, and the value `before` (`had` False: none)."""

    path: Place
    value: Any
    had: bool = False
    before: Any = None


class Record(msgspec.Struct, frozen=True):
    """A change of a file: its SHA-256 before (None: no file) and after, its settings, and new tables."""

    before: str | None
    after: str
    entries: list[Entry]
    made: list[Place]


def is_wrapped(path: Path) -> bool:
    """Whether a file is changed by Foldline now."""
    return _record_of(path).exists()


class FileChange(NamedTuple):
    """A planned change of a file: its content without earlier changes of ours, and with the new ones."""

    path: Path
    old: bytes | None
    new: bytes
    record: Record


def planned(file: SettingsFile) -> FileChange:
    """Plan the change of a file without writing it.

    Raises InputError if the file cannot be edited safely.
    """
    old = as_before(file.path)[0] if is_wrapped(file.path) else _content(file.path)
    text = _text(file.path, old)
    current = values(str(file.path), text)
    offered = [(path, value) for path, value in file.offered if value_at(current, path) is ABSENT]
    settings = [*file.settings, *offered]
    entries = [
        Entry(path, value, True, before)
        if (before := value_at(current, path)) is not ABSENT
        else Entry(path, value)
        for path, value in settings
    ]
    new = edited(str(file.path), text, settings).encode()
    tables = [path[:depth] for path, _ in settings for depth in range(1, len(path))]
    created = [path for path in dict.fromkeys(tables) if value_at(current, path) is ABSENT]
    record = Record(_hash(old) if old is not None else None, _hash(new), entries, created)
    return FileChange(file.path, old, new, record)


def change(plan: FileChange) -> None:
    """Undo earlier changes of a file, keep a copy, and write the planned content."""
    put_back(plan.path)
    if plan.old is not None:
        _write(_copy_of(plan.path), plan.old)
    _write(_record_of(plan.path), msgspec.json.encode(plan.record))
    _write(plan.path, plan.new)


def put_back(path: Path) -> Back | None:
    """Restore a file; return how, or None if it was not changed by Foldline.

    `taken out`: it was changed since, so only what Foldline set was removed; `no copy`: the same, because the
    copy is gone. Raises InputError if it can no longer be edited, or the copy is not the original.
    """
    if not is_wrapped(path):
        return None
    content, how = as_before(path)
    if content is not None:
        _write(path, content)
    elif how == "removed":
        path.resolve().unlink()
    for helper in (_copy_of(path), _record_of(path)):
        with suppress(FileNotFoundError):
            helper.unlink()
    return how


def as_before(path: Path) -> tuple[bytes | None, Back]:
    """Return the content that `put_back` restores (None: no file), and how."""
    try:
        record = msgspec.json.decode(files.content(_record_of(path), MOST), type=Record)
    except (msgspec.DecodeError, OSError) as error:
        raise InputError(f"{_record_of(path)} cannot be read ({error}): {_by_hand(path)}") from error
    content = _content(path)
    if content is None:
        return None, "was gone"
    if _hash(content) != record.after:
        return _without_ours(path, _text(path, content), record), "taken out"
    if record.before is None:
        return None, "removed"
    if (original := _content(_copy_of(path))) is None:
        return _without_ours(path, _text(path, content), record), "no copy"
    if _hash(original) != record.before:
        raise InputError(f"{_copy_of(path)} is not the original file: {_by_hand(path)}")
    return original, "restored"


def _by_hand(path: Path) -> str:
    return (
        f"{path} was not changed. Remove what Foldline set there by hand (the original is in "
        f"{_copy_of(path)}, if that file exists), then delete that copy and {_record_of(path)}"
    )


def _without_ours(path: Path, text: str, record: Record) -> bytes:
    """Return a file with the values that Foldline set replaced by those before, unless changed since."""
    current = values(str(path), text)
    ours = [entry for entry in record.entries if value_at(current, entry.path) == entry.value]
    text = edited(str(path), text, [(entry.path, entry.before if entry.had else ABSENT) for entry in ours])
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
        raise InputError(f"{path} cannot be edited: it is not UTF-8; it was not changed") from error


def _write(path: Path, content: bytes) -> None:
    """Replace a file's content. A link stays a link, an old file keeps its mode, a new one is private."""
    target = path.resolve()
    try:
        with files.written(target, mode=None if target.exists() else files.PRIVATE) as stream:
            stream.write(content)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error

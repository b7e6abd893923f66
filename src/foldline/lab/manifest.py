"""What a batch has done: one line per file, appended once its result exists, so that a batch can resume.

A line is {"key", "file", "output", "bytes", ...what was found}. The key is a hash of the file's path, size
and time of change and of what was asked; where any of them differs, or the result is gone, the file is done
again.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, cast

import msgspec

from foldline.core.log.codec import encode
from foldline.errors import FoldlineError, InputError

NAME = "manifest.jsonl"
ASKED = "asked.json"  # what a result depends on beside its file: the options, and Foldline's version


class ManifestLine(msgspec.Struct, frozen=True):
    """One finished file: its key, its path, its result below the folder, the result's bytes, its findings."""

    key: str
    file: str
    output: str
    bytes: int
    found: dict[str, Any]


class Manifest:
    """The manifest of an output folder."""

    def __init__(self, folder: Path) -> None:
        """Read what was done; a truncated last line is skipped."""
        self._folder = folder
        self._path = folder / NAME
        self._lines: dict[str, ManifestLine] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            raw = self._path.read_bytes() if self._path.exists() else b""
        except OSError as error:
            raise InputError(f"{folder}: cannot be written to: {error.strerror or error}") from error
        for text in raw.splitlines():
            try:
                line = msgspec.json.decode(text, type=ManifestLine)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            self._lines[line.key] = line
        self._torn = bool(raw) and not raw.endswith(b"\n")

    def ask(self, wish: Any, *, force: bool) -> None:
        """Keep what is asked of the batch; raises InputError where the folder holds one asked otherwise.

        With `force` what was asked before is forgotten.
        """
        path = self._folder / ASKED
        asked = msgspec.to_builtins(wish)
        try:
            if path.exists() and not force:
                _check_same(msgspec.json.decode(path.read_bytes()), asked, self._folder)
                return
            part = path.with_suffix(".part")
            part.write_bytes(encode(asked) + b"\n")
            part.replace(path)
        except msgspec.DecodeError as error:
            raise InputError(f"{path}: damaged: name another folder, or add --force") from error
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error

    def done(self, key: str, output: str) -> dict[str, Any] | None:
        """Return a file's findings if its result exists and is complete."""
        line = self._lines.get(key)
        if line is None or line.output != output:
            return None
        try:
            whole = (self._folder / output).stat().st_size == line.bytes
        except OSError:
            return None
        return line.found if whole else None

    def add(self, key: str, file: str, output: str, found: dict[str, Any]) -> None:
        """Append that a file is done, after its result was written. Raises FoldlineError for a full disk."""
        try:
            line = ManifestLine(key, file, output, (self._folder / output).stat().st_size, found)
            with self._path.open("ab") as stream:
                stream.write((b"\n" if self._torn else b"") + encode(line) + b"\n")
        except OSError as error:
            raise FoldlineError(f"{self._path}: cannot be written: {error.strerror or error}") from error
        self._torn = False
        self._lines[key] = line


def _check_same(before: Any, asked: Any, folder: Path) -> None:
    """Raise InputError, naming what differs, where what was asked before is not what is asked now."""
    now = msgspec.json.decode(encode(asked))
    old, new = _flat(before), _flat(now)
    other = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if other:
        raise InputError(
            f"{folder} holds a batch with other options ({', '.join(other)}): name another folder, "
            "or do everything again with --force"
        )


def _flat(asked: Any) -> dict[str, Any]:
    """Return what was asked by name; what was asked of a replay stands one level deeper."""
    if not isinstance(asked, dict):
        return {"what is done": asked}
    known = cast("dict[str, Any]", asked)
    deeper = known.get("wanted")
    return {**{k: v for k, v in known.items() if k != "wanted"}, **(_flat(deeper) if deeper else {})}


def key_of(file: str, wish: Any) -> str:
    """Return the key of a file's current state and of the wish; a missing file has a key too."""
    path = Path(file)
    try:
        told = path.stat()
        state = (told.st_size, told.st_mtime_ns)
    except OSError:
        state = (-1, -1)
    raw = encode([os.fspath(path.absolute()), *state, msgspec.to_builtins(wish)])
    return hashlib.sha256(raw).hexdigest()[:32]

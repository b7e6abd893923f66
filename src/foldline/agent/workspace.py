"""The folder that tools work in, which they leave only where allowed; files touched are noted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal

from foldline import files
from foldline.errors import InputError

Touched = Literal["read", "created", "modified"]
SKIPPED = frozenset(
    (".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".tox")
)
"""Folders that searches do not look into."""
WHOLE = 50_000_000  # bytes of a file that is taken whole


class Workspace:
    """A folder, others that are allowed beside it, and the files touched since `take` was last called.

    `outputs` is where whole outputs of commands are kept; it may be read.
    """

    def __init__(
        self, root: Path | str, *, others: Iterable[Path | str] = (), outputs: Path | None = None
    ) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise InputError(f"{self.root}: no such folder to work in")
        self.others = tuple(Path(one).expanduser().resolve() for one in others)
        self.outputs = outputs.resolve() if outputs is not None else None
        self._touched: dict[Touched, dict[str, None]] = {}

    def resolve(self, path: str, *, writing: bool = False) -> Path:
        """Return a path as an absolute one, links followed; raises InputError where it leaves the folder."""
        if not path or "\0" in path:
            raise InputError("the path is empty" if not path else "a path cannot hold a NUL character")
        try:
            found = (self.root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError) as error:
            raise InputError(f"{path}: {error}") from error
        allowed = [self.root, *self.others]
        if self.outputs is not None and not writing:
            allowed.append(self.outputs)
        if not any(found.is_relative_to(one) for one in allowed):
            raise InputError(
                f"{path} is outside {self.root}; the user can allow its folder with --allow-folder"
            )
        return found

    def open(self, path: Path) -> BinaryIO:
        """Open a file that `resolve` found; raises OSError, and InputError for a pipe, socket or device."""
        return files.opened(path, inside=self._inside(path))

    def content(self, path: Path, most: int = WHOLE) -> bytes:
        """Return what a file holds; raises as `open` does, and InputError for more than `most` bytes."""
        return files.content(path, most, inside=self._inside(path))

    def put(self, path: Path, text: str) -> None:
        """Write a file and the folders above it, all of it or nothing; raises InputError where that fails."""
        try:
            with files.written(path, inside=self._inside(path)) as file:
                file.write(text.encode("utf-8"))
        except (OSError, UnicodeEncodeError) as error:
            raise InputError(f"{path} cannot be written: {error}") from error

    def _inside(self, path: Path) -> Path | None:
        """Return the folder that a path may not leave; None for one that is allowed itself."""
        folders = (self.root, *self.others, *([self.outputs] if self.outputs is not None else []))
        found = next((one for one in folders if path.is_relative_to(one)), None)
        if found is None:
            raise InputError(f"{path} is outside {self.root}")
        return None if found == path else found

    def shown(self, path: Path) -> str:
        """Return a path as it is shown: relative to the folder where it is in it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def named(self, given: Mapping[str, Any]) -> str:
        """Return the path that a call names, or the folder, as it is shown; raises as `resolve` does."""
        return self.shown(self.resolve(given.get("path") or "."))

    def touch(self, how: Touched, path: Path) -> None:
        """Note what was done to a file."""
        self._touched.setdefault(how, {})[self.shown(path)] = None

    def take(self) -> dict[Touched, tuple[str, ...]]:
        """Return the files that were touched since the last time."""
        found: dict[Touched, tuple[str, ...]] = {how: tuple(paths) for how, paths in self._touched.items()}
        self._touched = {}
        return found

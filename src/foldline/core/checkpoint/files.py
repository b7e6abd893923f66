"""The two lists of files at the end of a checkpoint: code writes them from the ledger, a model never does."""

from __future__ import annotations

import re
from collections.abc import Iterable

from foldline.core.ledger.facts.kinds import FileFact

CHANGED = 150  # paths of changed files that are listed, the newest
READ = 40  # paths of files that were only read

_LIST = re.compile(
    r"^<(read-files|modified-files)>[ \t]*\n(?:(?!<(?:read|modified)-files>).*\n)*?</\1>[ \t]*\n*",
    re.MULTILINE,
)


def without_file_lists(text: str) -> str:
    """Take the file lists out of a summary; a list that was never closed is prose."""
    return _LIST.sub("", text + "\n").rstrip()


def file_lists(files: Iterable[FileFact]) -> str:
    """Write the lists: files only read, and files created, modified or deleted, each in the order of use."""
    known = list(files)
    read = [fact.path for fact in known if fact.status == "read"]
    changed = [
        fact.path if fact.status == "modified" else f"{fact.path} ({fact.status})"
        for fact in known
        if fact.status != "read"
    ]
    lists = (_one("read-files", read, READ), _one("modified-files", changed, CHANGED))
    return "\n\n".join(block for block in lists if block)


def _one(tag: str, paths: list[str], most: int) -> str:
    if not paths:
        return ""
    more = [f"({len(paths) - most:,} more, older)"] if len(paths) > most else []
    return "\n".join([f"<{tag}>", *more, *paths[-most:], f"</{tag}>"])

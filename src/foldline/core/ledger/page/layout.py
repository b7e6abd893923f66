"""Write picked excerpts as a reader wants them: what concerns one file together, each thing with its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from foldline.core.ledger.facts.kinds import Excerpt, FileFact
from foldline.core.ledger.text import names
from foldline.core.ledger.text.paths import by_folder, of_folder
from foldline.core.ledger.text.sentences import clip
from foldline.core.ledger.text.words import words

LINE = 240  # characters at which a joined line is broken: each line starts with what it is about

_MARK = re.compile(r" \((created|modified|deleted)\)$")
_LABELS = {"hit": "shows: ", "line": "shows: "}


def by_topic(excerpts: Iterable[Excerpt], *, in_order: bool = False) -> dict[str, list[Excerpt]]:
    """Group excerpts by topic, the topic worth most first, or `in_order` as they were said; groups are in order."""
    groups: dict[str, list[Excerpt]] = {}
    for excerpt in excerpts:
        groups.setdefault(excerpt.topic, []).append(excerpt)
    if in_order:
        return groups
    worths = {topic: max(excerpt.weight for excerpt in group) for topic, group in groups.items()}
    return {topic: groups[topic] for topic in sorted(groups, key=lambda topic: -worths[topic])}


def about_file(path: str, group: Sequence[Excerpt], fact: FileFact | None) -> list[str]:
    """Write what is carried about one file: a line that says what became of it and why, and lines below."""
    given = dict.fromkeys(excerpt.text for excerpt in group if excerpt.kind in ("opened", "changed"))
    reasons = [text for text in given if len(words(text)) > 1 and not text.rstrip().endswith("?")]
    if not reasons:
        reasons = [note for note in (fact.notes[-1:] if fact else ()) if note]
    if not reasons:
        reasons = list(dict.fromkeys(clip(excerpt.note, 90) for excerpt in group if excerpt.note))[:1]
    status = f" ({_status(fact)})" if fact else ""
    lines = [f"- `{path}`{status}" + (": " + " / ".join(reasons) if reasons else "")]
    outline = [excerpt.text for excerpt in group if excerpt.kind == "outline"]
    lines.extend("  - defines " + line for line in joined(outline))
    rest = [excerpt for excerpt in group if excerpt.kind not in ("opened", "changed", "outline", "listing")]
    lines.extend("  - " + item(excerpt) for excerpt in rest)
    return lines


def _status(fact: FileFact) -> str:
    return fact.status if fact.uses < 2 else f"{fact.status}, used {fact.uses} times"


def item(excerpt: Excerpt) -> str:
    """Write one excerpt as a list item, with a label where its kind needs one."""
    return _LABELS.get(excerpt.kind, "") + excerpt.text


def uses_of_tools(reason: str, group: Sequence[Excerpt]) -> list[str]:
    """Write what was run or searched for one reason, the reason first."""
    lines = joined(list(dict.fromkeys(excerpt.text for excerpt in group)))
    return ["- " + (f"{reason.rstrip(' .:')}: " if reason else "") + line for line in lines]


def joined(pieces: Sequence[str], separator: str = "; ") -> list[str]:
    """Join pieces to as few lines as their length allows."""
    lines: list[str] = []
    for piece in pieces:
        if lines and len(lines[-1]) + len(piece) + 2 <= LINE:
            lines[-1] += separator + piece
        else:
            lines.append(piece)
    return lines


def listings(group: Sequence[Excerpt], topic: str) -> list[str]:
    """Write paths that a search or a listing showed, with what it looked for."""
    paths = dict.fromkeys(excerpt.text for excerpt in group)
    head = f"seen ({clip(topic, 90)}): " if topic else "seen in a listing: "
    return ["- " + head + line for line in joined([f"`{line}`" for line in by_folder(paths)])]


def marked(path: str, status: str) -> str:
    """Write a path of a list of changed files, with what became of it where that is not just a change."""
    return f"{path} (deleted)" if status == "deleted" else path


def paths_of(line: str) -> list[str]:
    """Read a line of `paths_by_folder` back, marks left out."""
    return [path for path, _ in marked_paths(line)]


def marked_paths(line: str) -> list[tuple[str, str]]:
    """Read a line of `paths_by_folder` back: each path, and what it is marked as ("": nothing)."""
    found = [(path, _MARK.search(path)) for path in of_folder(line)]
    return [(path[: mark.start()], mark[1]) if mark else (path, "") for path, mark in found]


def files_by_key(files: Iterable[FileFact]) -> Mapping[str, FileFact]:
    """Map the keys of paths to their facts, the latest of one key last."""
    return {names.path_key(fact.path): fact for fact in files}

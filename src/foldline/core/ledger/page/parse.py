"""Read a composed checkpoint back into a ledger, for a fold of a list that was folded before."""

from __future__ import annotations

import re
from collections.abc import Iterator

from foldline.core.ledger.facts import answers
from foldline.core.ledger.facts.kinds import (
    CommandFact,
    ConstraintFact,
    DecisionFact,
    ErrorFact,
    Excerpt,
    FileFact,
    Ledger,
    OpenFact,
    ReportFact,
    RequestFact,
    ValueFact,
)
from foldline.core.ledger.page import layout
from foldline.core.ledger.page.compose import ASKED_LAST, HEADINGS, NOTHING, SAID_NEXT
from foldline.core.ledger.page.opening import FIXED, THEN, UNANSWERED
from foldline.core.ledger.text import names

FIRST_WORTH = 0.4  # worth of a name in the first line of a part; what stands first was worth most
FADING = 0.985  # from one line to the next
LEAST_WORTH = 0.05

_REQUEST = re.compile(r"(First request|Newest request|Last answered request|- Asked before): (.+)")
_UNDER = re.compile(r'- (Asked|Noted earlier) under "(.*)":$')
_ALONE = re.compile(r"- (Asked|Noted earlier): (.*)$")
_COMMAND = re.compile(r"- (?:([^`]{1,160}): )?`(.+)` (passed|failed|ran)(?:: (.*))?$")
_FILE = re.compile(r"- `([^`]+)`(?: \((read|modified|created|deleted)(?:, used (\d+) times)?\))?(?:: (.*))?$")
_VALUE = re.compile(r"- ([^`=]{1,60}) = `([^`]*)`(?: \((.*)\))?$")
_LISTING = re.compile(r"- seen (?:\((.*?)\)|in a listing): (`.*)$")
_USES = re.compile(r"- (?:(.*?): )?(?:ran )?([\w.:-]+ (?:pattern )?`.*)$")
_NEXT_USE = re.compile(r"; (?=[\w.:-]+ (?:pattern )?`)")
_ERROR_SOURCE = re.compile(r" \(from `(.*)`\)$")
_BLOCK = re.compile(r"^<(read|modified)-files>\n(.*?)^</\1-files>$", re.MULTILINE | re.DOTALL)
_ASKED = {"Asked": "asked", "Noted earlier": "told"}
_VERDICTS = {"passed": True, "failed": False, "ran": None}


def parse(text: str) -> Ledger:
    """Read a checkpoint that `compose` wrote: the facts it states, without the entries they came from.

    A text of another origin gives what its lines are taken for, at worst nothing; it never raises.
    """
    blocks = {match.group(1): match.group(2) for match in _BLOCK.finditer(text)}
    parts = _parts(_BLOCK.sub("", text))
    done = list(_items(parts["### Done"]))
    blocked = list(_items(parts["### Blocked"]))
    context = list(_items(parts["## Critical Context"]))
    goal = list(_items(parts["## Goal"], loose=True))
    files = [*_listed(blocks), *_files([*done, *context])]
    known = {fact.path: fact for fact in files}
    return Ledger(
        requests=_requests(goal),
        constraints=tuple(ConstraintFact(item, "") for item in _whole(parts["## Constraints & Preferences"])),
        files=tuple(known.values()),
        commands=tuple(reversed([fact for item in (*blocked, *done) if (fact := _command(item[0]))])),
        errors=(*_errors(parts["### Blocked"]), *_fixed(done)),
        decisions=tuple(DecisionFact(_plain(item[0]), "") for item in _items(parts["## Key Decisions"])),
        values=tuple(reversed([fact for item in context if (fact := _value(item[0]))])),
        open=tuple(_open(parts)),
        reports=tuple(ReportFact(_plain(item[0]), "") for item in done if _is_report(item)),
        excerpts=(
            *_asked([*goal, *context]),
            *_excerpts([item for item in done if not _is_report(item)]),
            *_excerpts(context),
        ),
    )


def _parts(text: str) -> dict[str, list[str]]:
    """Split a checkpoint at its headings: the lines below each, blank ends cut."""
    found: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
    current: list[str] = []
    waiting = list(HEADINGS)
    for line in text.split("\n"):
        if line in waiting:
            waiting = waiting[waiting.index(line) + 1 :]
            current = found[line]
        else:
            current.append(line)
    for lines in found.values():
        while lines and not lines[-1].strip():
            lines.pop()
        if lines == [NOTHING]:
            lines.clear()
    return found


def _items(lines: list[str], *, loose: bool = False) -> Iterator[list[str]]:
    """Yield each list item with the items below it; `loose` takes unmarked lines as items of their own."""
    item: list[str] = []
    for line in lines:
        if line.startswith("  - ") and item:
            item.append(line[4:])
        elif line.startswith("- ") or (loose and line.strip()):
            if item:
                yield item
            item = [line]
    if item:
        yield item


def _whole(lines: list[str]) -> Iterator[str]:
    """Yield list items word for word, their further lines included."""
    item: list[str] = []
    for line in lines:
        if line.startswith("- "):
            if item:
                yield "\n".join(item)
            item = [line[2:]]
        elif item:
            item.append(line.removeprefix("  "))
    if item:
        yield "\n".join(item)


def _plain(line: str) -> str:
    return line.removeprefix("- ")


def _requests(goal: list[list[str]]) -> tuple[RequestFact, ...]:
    """The first request, those between, the newest: in that order whatever order they stand in."""
    order = ("First request", "- Asked before", "Last answered request", "Newest request")
    found: dict[str, list[str]] = {label: [] for label in order}
    for item in goal:
        match = _REQUEST.match(item[0])
        if match:
            found[match.group(1)].append(match.group(2))
    return tuple(RequestFact(text, "") for texts in found.values() for text in texts)


def _listed(blocks: dict[str, str]) -> Iterator[FileFact]:
    """Yield the files of the two blocks, oldest first; a line may list several of one folder."""
    for status, block in blocks.items():
        for line in reversed(block.strip().split("\n")):
            if line and not line.startswith("("):
                for path, mark in reversed(layout.marked_paths(line)):
                    yield FileFact(path, mark or status)


def _files(items: list[list[str]]) -> Iterator[FileFact]:
    for item in reversed(items):
        match = _FILE.match(item[0])
        if match and match.group(2) and not _COMMAND.match(item[0]):
            notes = tuple((match.group(4) or "").split(" / ")[-1:]) if match.group(4) else ()
            yield FileFact(match.group(1), match.group(2), int(match.group(3) or 1), notes)


def _command(line: str) -> CommandFact | None:
    match = _COMMAND.match(line)
    return _ran(match) if match else None


def _ran(match: re.Match[str]) -> CommandFact:
    why, command, verdict, outcome = match.groups()
    return CommandFact(command, _VERDICTS[verdict], outcome or "", why=why or "")


def _is_report(item: list[str]) -> bool:
    """Whether an item under Done is a sentence rather than a command, a file or an error."""
    line = item[0]
    marks = (_COMMAND.match(line), _FILE.match(line), line.startswith(FIXED), len(item) > 1)
    return line.startswith("- ") and not any(marks)


def _value(line: str) -> ValueFact | None:
    match = _VALUE.match(line)
    if match is None:
        return None
    kinds = [name.kind for name in names.find(match.group(2)) if name.kind in ("id", "url", "number")]
    named = match.group(1) if match.group(1) not in ("id", "url", "number", "name") else ""
    return ValueFact(match.group(2), kinds[0] if kinds else "name", match.group(3) or "", named)


def _errors(lines: list[str]) -> Iterator[ErrorFact]:
    for item in _items(lines):
        line = _plain(item[0])
        if line.startswith(UNANSWERED) or _command(item[0]):
            continue
        source = _ERROR_SOURCE.search(line)
        yield ErrorFact(line[: source.start()] if source else line, source.group(1) if source else "")


def _fixed(done: list[list[str]]) -> Iterator[ErrorFact]:
    for item in reversed(done):
        if item[0].startswith(FIXED):
            text = item[0].removeprefix(FIXED)
            source = _ERROR_SOURCE.search(text)
            yield ErrorFact(
                text[: source.start()] if source else text, source.group(1) if source else "", fixed=True
            )


def _open(parts: dict[str, list[str]]) -> Iterator[OpenFact]:
    for item in _items(parts["### Blocked"]):
        if item[0].startswith(f"- {UNANSWERED}"):
            text, _, then = item[0].removeprefix(f"- {UNANSWERED}").partition(THEN)
            yield OpenFact(text, "call", "unanswered", then=then)
    for item in _items(parts["### In Progress"]):
        if not item[0].startswith("- Last said: "):
            yield OpenFact(_plain(item[0]), "todo", "in_progress")
    for item in _items(parts["## Next Steps"]):
        text = _plain(item[0])
        if text.startswith(SAID_NEXT):
            yield OpenFact(text.removeprefix(SAID_NEXT), "next")
        elif text.startswith(ASKED_LAST):
            yield OpenFact(text.removeprefix(ASKED_LAST), "next", "asked")
        else:
            yield OpenFact(text, "todo", "pending")


def _excerpt(text: str, kind: str, topic: str, rank: int) -> Excerpt:
    worth = max(LEAST_WORTH, FIRST_WORTH * FADING**rank)
    keys = dict.fromkeys((name.key for name in names.find(f"{text} {topic}")), round(worth, 4))
    return Excerpt(text, topic, round(worth / 10, 5), "", kind, keys)


def _asked(goal: list[list[str]]) -> Iterator[Excerpt]:
    for rank, item in enumerate(goal):
        under, alone = _UNDER.match(item[0]), _ALONE.match(item[0])
        if under:
            for text in item[1:]:
                yield _excerpt(text, _ASKED[under.group(1)], under.group(2), rank)
        elif alone:
            yield _excerpt(alone.group(2), _ASKED[alone.group(1)], "", rank)


def _excerpts(items: list[list[str]]) -> Iterator[Excerpt]:
    """Yield what the items of a part carry beside files' states, commands' verdicts and values."""
    for rank, item in enumerate(items):
        line = item[0]
        if _COMMAND.match(line) or _VALUE.match(line) or line.startswith(FIXED):
            continue
        if _UNDER.match(line) or _ALONE.match(line):
            continue
        listing, file, uses = _LISTING.match(line), _FILE.match(line), _USES.match(line)
        if listing:
            for line in re.findall(r"`([^`]+)`", listing.group(2)):
                for path in layout.paths_of(line):
                    yield _excerpt(path, "listing", listing.group(1) or "", rank)
        elif file:
            for reason in (file.group(4) or "").split(" / "):
                if reason:
                    yield _excerpt(reason, "opened", file.group(1), rank)
            yield from _below(item[1:], file.group(1), rank)
        elif uses:
            for text in re.split(r"; (?=`|searched `)", uses.group(2)):
                yield _excerpt(
                    text, "searched" if text.startswith("searched") else "ran", uses.group(1) or "", rank
                )
        elif line.startswith(f"- {answers.LABEL}"):
            yield Excerpt(line.removeprefix(f"- {answers.LABEL}"), "", answers.WEIGHT, "", answers.KIND)
        else:
            yield _excerpt(_plain(line).removeprefix("shows: "), "said", "", rank)


def _below(lines: list[str], topic: str, rank: int) -> Iterator[Excerpt]:
    for line in lines:
        if line.startswith("defines "):
            for text in re.split(r"; (?=`)", line.removeprefix("defines ")):
                yield _excerpt(text, "outline", topic, rank)
        elif line.startswith("shows: "):
            yield _excerpt(line.removeprefix("shows: "), "line", topic, rank)
        else:
            yield _excerpt(line, "said", topic, rank)

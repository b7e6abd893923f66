"""Write a checkpoint without a model: the headings of every Foldline summary, filled from a ledger.

Standing constraints come first in line for the budget, word for word; then what says where the work stands
(goal, open and blocked work, decisions, what was run); all that is left goes to the excerpts that carry most
of what is likely to be needed. Every part has a share of the budget, so a small budget still has every part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import msgspec

from foldline.core.ledger.bounds import bounded
from foldline.core.ledger.facts import answers
from foldline.core.ledger.facts.kinds import Excerpt, FileFact, Ledger, OpenFact, ValueFact
from foldline.core.ledger.facts.open_work import is_done
from foldline.core.ledger.facts.values import BASE
from foldline.core.ledger.page import layout, opening
from foldline.core.ledger.text import names
from foldline.core.ledger.text.paths import by_folder, relative
from foldline.core.ledger.text.sentences import clip
from foldline.core.ledger.worth.selection import pick

Count = Callable[[str], int]

HEADINGS = (
    "## Goal",
    "## Constraints & Preferences",
    "## Progress",
    "### Done",
    "### In Progress",
    "### Blocked",
    "## Key Decisions",
    "## Next Steps",
    "## Critical Context",
)
NOTHING = "(none)"
# Shares of the budget that the parts may take beside the excerpts; what one leaves, the excerpts get.
SHARES = {
    "goal": 0.1,
    "reports": 0.03,
    "done": 0.05,
    "doing": 0.08,
    "blocked": 0.06,
    "decisions": 0.06,
    "next": 0.07,
    "values": 0.04,
    "files": 0.09,
}
SAID_NEXT = "Said to come next: "
ASKED_LAST = "Asked last (what follows this summary may answer it): "
SHORT_REQUEST = 60  # characters to which both may shrink, so that neither is left out
LONG_REQUEST = 500  # characters of a request that stand at the top; its lines compete as excerpts
IN_A_PART = 0.7  # how well a name is carried, 0 to 1, that another part of the checkpoint names
IN_A_LIST = 0.4  # and one that only the lists of files name
NO_FILES = 5  # times as much room that reports get where no file was used that would say what was done
SMALL = (
    2_000  # tokens below which files and commands alone say what was done; a report may still be an excerpt
)


class Composed(msgspec.Struct, frozen=True):
    """A checkpoint's text, and the ledger reduced to what the next fold should know."""

    text: str
    ledger: Ledger


class _Sheet:
    """The parts of a checkpoint as they fill up: heading to lines, and what each may still take."""

    def __init__(self, budget: int, count: Count) -> None:
        self.budget = budget
        self.count = count
        self.parts: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
        self.tail: list[str] = []
        self.used = count("\n\n".join(HEADINGS)) + 9 * count("\n" + NOTHING)

    @property
    def left(self) -> int:
        return self.budget - self.used

    def add(self, heading: str, lines: Iterable[str], most: int) -> int:
        """Add lines to a part while they fit into `most` tokens and the budget; return the tokens taken."""
        taken = 0
        for line in lines:
            cost = self.count(line) + 1
            if taken + cost > most or cost > self.left:
                continue
            self.parts[heading].append(line)
            self.used += cost
            taken += cost
        return taken

    def text(self) -> str:
        """Write the sheet."""
        blocks: list[str] = []
        for heading in HEADINGS:
            lines = self.parts[heading]
            if not lines and heading != "## Progress":
                lines = [NOTHING]
            blocks.append("\n".join((heading, *lines)))
        return "\n\n".join(blocks) + ("\n\n" + "\n".join(self.tail) if self.tail else "")


def compose(
    ledger: Ledger,
    budget: int,
    count: Count,
    *,
    previous: str | None = None,
    instructions: str | None = None,
) -> Composed:
    """Write the offline checkpoint of a ledger within `budget` tokens, as `count` counts them.

    `ledger` holds all that is folded, earlier folds included, so `previous` (the text of the last
    checkpoint) adds nothing here. `instructions` are the words of a focus: what names them counts more.
    A budget that not even the constraints fit keeps the headings and as many constraints as do fit.
    """
    del previous
    count = lru_cache(maxsize=16_384)(count)  # the same lines are counted in every pass
    room, best = budget, None
    for _ in range(5):
        sheet, picked = _fill(ledger, room, count, instructions)
        text = sheet.text()
        left = budget - count(text)
        if left >= 0 and (best is None or len(text) > len(best[0])):
            best = (text, picked, sheet)
        if 0 <= left <= budget // 50 + 8:
            break
        room += left - (8 if left < 0 else 0)
    if best is None:
        return Composed(_smallest(ledger, budget, count), bounded(ledger))
    text, picked, sheet = best
    told = _answered(sheet, ledger, budget)
    longer = sheet.text() if told else text
    if told and count(longer) <= budget:
        return Composed(longer, bounded(ledger, [*picked, *told]))
    return Composed(text, bounded(ledger, picked))


def _smallest(ledger: Ledger, budget: int, count: Count) -> str:
    """Write what fits a budget too small for parts: headings and constraints, or the goal alone."""
    sheet = _Sheet(budget, count)
    sheet.add(
        "## Constraints & Preferences", (bullet(fact.text) for fact in ledger.constraints), sheet.left - 24
    )
    text = sheet.text()
    while sheet.parts["## Constraints & Preferences"] and count(text) > budget:
        sheet.parts["## Constraints & Preferences"].pop()
        text = sheet.text()
    if count(text) <= budget:
        return text
    goal = clip(ledger.requests[-1].text if ledger.requests else NOTHING, max(12, budget * 2))
    text = f"## Goal\n{goal}"
    while text and count(text) > budget:
        text = text[: len(text) * 3 // 4]
    return text


def bullet(text: str) -> str:
    """Write a text word for word as one list item, its further lines indented."""
    return "- " + text.replace("\n", "\n  ")


def _fill(ledger: Ledger, room: int, count: Count, focus: str | None) -> tuple[_Sheet, list[Excerpt]]:
    sheet = _Sheet(room, count)
    sheet.add("## Constraints & Preferences", (bullet(fact.text) for fact in ledger.constraints), sheet.left)
    share = {part: int(max(0, sheet.left) * fraction) for part, fraction in SHARES.items()}
    base = next((fact.value for fact in ledger.values if fact.name == BASE), "")
    _goal(sheet, ledger, share["goal"])
    _doing(sheet, ledger, share["doing"])
    _blocked(sheet, ledger, share["blocked"])
    sheet.add("## Next Steps", _next_steps(ledger), share["next"])
    rules = [fact.text for fact in ledger.constraints]
    sheet.add("## Key Decisions", opening.decided(ledger.decisions, rules), share["decisions"])
    chosen = sheet.parts["## Key Decisions"]
    sheet.parts["## Key Decisions"] = opening.in_order(chosen, ledger.decisions)
    sheet.add("### Done", opening.reported(ledger), _for_reports(share["reports"], room, ledger))
    sheet.parts["### Done"].sort(key=opening.order_of(ledger.reports))
    sheet.add("### Done", (*opening.commands(ledger), *opening.repaired(ledger.errors)), share["done"])
    sheet.add("## Critical Context", _values(ledger.values), share["values"])
    tail = _file_lists(ledger.files, base, count, min(share["files"], max(0, sheet.left)))
    sheet.used += count("\n".join(tail)) + 2 if tail else 0
    picked = _pick(sheet, ledger, focus, tail)
    _write(sheet, picked, ledger.files, base)
    sheet.tail = _file_lists(_unnamed(ledger.files, picked), base, count, share["files"])
    return sheet, picked


def _for_reports(share: float, room: int, ledger: Ledger) -> int:
    """The tokens for what was reported: much where no file shows it, none in a small room where files do."""
    if not ledger.files:
        return int(share * NO_FILES)
    return int(share) if room >= SMALL else 0


def _goal(sheet: _Sheet, ledger: Ledger, most: int) -> None:
    """The first and the newest request; a long one is cut short here, its lines compete as excerpts."""
    requests = ledger.requests
    if not requests:
        return
    waiting = any(fact.state == "asked" for fact in ledger.open)
    size = max(80, min(most * 2, LONG_REQUEST))
    lines = opening.first_and_newest(requests, size, waiting=waiting)
    while size > SHORT_REQUEST and sum(sheet.count(line) + 1 for line in lines) > most:
        size = size * 3 // 4
        lines = opening.first_and_newest(requests, size, waiting=waiting)
    taken = sheet.add("## Goal", lines, max(most, min(sheet.left, 2 * SHORT_REQUEST)))
    sheet.parts["## Goal"].reverse()
    at = len(sheet.parts["## Goal"])
    elsewhere = (fact.text for fact in (*ledger.constraints, *ledger.decisions))
    sheet.add("## Goal", opening.between(requests, elsewhere), most - taken)
    sheet.parts["## Goal"][at:] = reversed(sheet.parts["## Goal"][at:])


def _doing(sheet: _Sheet, ledger: Ledger, most: int) -> None:
    begun = [
        f"- {clip(fact.text, 240)}"
        for fact in ledger.open
        if fact.state in ("in_progress", "in progress", "active")
    ]
    latest = [f"- Last said: {excerpt.text}" for excerpt in ledger.excerpts if excerpt.kind == "latest"]
    sheet.add("### In Progress", (*begun, *latest[-4:]), most)


def _blocked(sheet: _Sheet, ledger: Ledger, most: int) -> None:
    calls = [opening.unanswered(fact) for fact in ledger.open if fact.kind == "call"]
    errors = [
        f"- {clip(fact.text, 240)}" + (f" (from `{clip(fact.source, 80)}`)" if fact.source else "")
        for fact in reversed(ledger.errors)
        if not fact.fixed
    ]
    repaired = {fact.source for fact in ledger.errors if fact.fixed}
    failed = [
        opening.ran(fact)
        for fact in reversed(ledger.commands)
        if fact.passed is False and fact.command not in repaired
    ]
    sheet.add("### Blocked", (*calls[-3:], *failed[:4], *errors[:8]), most)


def _next_steps(ledger: Ledger) -> list[str]:
    busy = ("in_progress", "in progress", "active")
    return [
        f"- {_label(fact)}{clip(fact.text, LONG_REQUEST if fact.state == 'asked' else 240)}"
        for fact in ledger.open
        if fact.kind != "call" and fact.state not in busy and not is_done(fact)
    ]


def _label(fact: OpenFact) -> str:
    """What stands before an open item: who said it, where it is of no list."""
    if fact.kind != "next":
        return ""
    return ASKED_LAST if fact.state == "asked" else SAID_NEXT


def _values(values: Sequence[ValueFact]) -> list[str]:
    """Ids, URLs and numbers with what they were for, the newest first."""
    lines: list[str] = []
    for fact in reversed(values):
        words = f" ({clip(fact.words, 90)})" if fact.words else ""
        lines.append(f"- {fact.name or fact.kind} = `{fact.value}`{words}")
    lines.sort(key=lambda line: not line.startswith(f"- {BASE} ="))
    return lines


def _file_lists(files: Sequence[FileFact], base: str, count: Count, most: int) -> list[str]:
    """The two blocks that list files, modified ones first in line, the newest first."""
    lines: list[str] = []
    for tag, wanted in (("modified-files", ("modified", "created", "deleted")), ("read-files", ("read",))):
        paths = [
            layout.marked(relative(fact.path, base), fact.status)
            for fact in reversed(files)
            if fact.status in wanted
        ]
        size = len(paths)
        while size and count("\n".join(by_folder(paths[:size]))) > most:
            size = size * 4 // 5
        block = by_folder(paths[:size])
        if size < len(paths):
            block.append(f"({len(paths) - size} more)")
        most -= count("\n".join(block))
        if block:
            lines[:0] = [f"<{tag}>", *block, f"</{tag}>"]
    return lines


def _pick(sheet: _Sheet, ledger: Ledger, focus: str | None, tail: Sequence[str]) -> list[Excerpt]:
    """Pick excerpts for what is left, names that the other parts already carry counting less."""
    covered: dict[str, float] = {}
    for lines in sheet.parts.values():
        for line in lines:
            for name in names.find(line):
                covered[name.key] = IN_A_PART
    covered.update((names.path_key(path), IN_A_LIST) for line in tail for path in layout.paths_of(line))
    wanted = _focus(focus)
    written = "\n".join(line for lines in sheet.parts.values() for line in lines)
    pool = [
        excerpt
        for excerpt in ledger.excerpts
        if excerpt.kind not in ("latest", answers.KIND)
        and not (excerpt.kind in ("asked", "said") and opening.says_already(excerpt.text, written))
    ]
    indices = pick(pool, sheet.left, sheet.count, covered=covered, boost=wanted)
    return [pool[index] for index in indices]


def _answered(sheet: _Sheet, ledger: Ledger, budget: int) -> list[Excerpt]:
    """Give what room is left to answers in plain words, the newest first in line; return those that fit.

    They take at most half as much as all the rest, so that a checkpoint never grows to what it stands for.
    """
    told = [excerpt for excerpt in ledger.excerpts if excerpt.kind == answers.KIND]
    sheet.budget, sheet.used = budget, sheet.count(sheet.text())
    written = "\n".join(line for lines in sheet.parts.values() for line in lines)
    lines = {
        f"- {answers.LABEL}{excerpt.text}": excerpt
        for excerpt in told
        if not opening.says_already(excerpt.text, written)
    }
    before = len(sheet.parts["## Critical Context"])
    sheet.add("## Critical Context", reversed(lines), min(sheet.left, sheet.used // 2))
    fitting = set(sheet.parts["## Critical Context"][before:])
    sheet.parts["## Critical Context"][before:] = [line for line in lines if line in fitting]
    return [excerpt for line, excerpt in lines.items() if line in fitting]


def _unnamed(files: Sequence[FileFact], picked: Sequence[Excerpt]) -> list[FileFact]:
    """Return the files to list: all that were changed, and those read that no line above names."""
    named = {names.path_key(excerpt.topic) for excerpt in picked if excerpt.kind not in KIND_GROUPS}
    return [fact for fact in files if fact.status != "read" or names.path_key(fact.path) not in named]


def _focus(instructions: str | None) -> Callable[[str], float] | None:
    """Return what multiplies an excerpt's worth: more for each word of the focus that it holds."""
    if not instructions:
        return None
    words = {word.lower().strip(".,:;!?\"'()`") for word in instructions.split()}
    words = {word for word in words if len(word) >= 4}
    return lambda text: 1.0 + 3.0 * sum(word in text.lower() for word in words)


def _write(sheet: _Sheet, picked: Sequence[Excerpt], files: Sequence[FileFact], base: str) -> None:
    """Put the picked excerpts under their headings."""
    known = layout.files_by_key(files)
    critical = sheet.parts["## Critical Context"]
    asked = [excerpt for excerpt in picked if KIND_GROUPS.get(excerpt.kind) == "asked"]
    for topic, group in layout.by_topic(asked, in_order=True).items():
        sheet.parts["## Goal"].extend(_asked("Asked", topic, group))
    told = [excerpt for excerpt in picked if excerpt.kind == "told"]
    for topic, group in layout.by_topic(told, in_order=True).items():
        critical.extend(_asked("Noted earlier", topic, group))
    for topic, group in layout.by_topic(picked).items():
        kinds = {
            kind: [excerpt for excerpt in group if KIND_GROUPS.get(excerpt.kind, "") == kind]
            for kind in GROUPS
        }
        if kinds["listing"]:
            critical.extend(layout.listings(kinds["listing"], topic))
        if kinds["used"]:
            critical.extend(layout.uses_of_tools(topic, kinds["used"]))
        rest = kinds[""]
        if rest and topic:
            fact = known.get(names.path_key(topic))
            done = fact is not None and fact.status in ("modified", "created", "deleted")
            path = relative(fact.path, base) if fact else topic
            (sheet.parts["### Done"] if done else critical).extend(layout.about_file(path, rest, fact))
        else:
            critical.extend("- " + layout.item(excerpt) for excerpt in rest)


GROUPS = ("asked", "told", "listing", "used", "")
KIND_GROUPS = {"asked": "asked", "told": "told", "listing": "listing", "ran": "used", "searched": "used"}


def _asked(label: str, topic: str, group: Sequence[Excerpt]) -> list[str]:
    """Write the user's words, or what a program put beside them, under the heading that they stood below."""
    if not topic:
        return [f"- {label}: {layout.item(excerpt)}" for excerpt in group]
    return [f'- {label} under "{topic}":', *(f"  - {layout.item(excerpt)}" for excerpt in group)]

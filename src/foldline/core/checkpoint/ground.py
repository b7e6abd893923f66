"""A model's summary checked against what code knows, and mended.

Three things happen to it, in this order:

1. marks: names that stand nowhere, values that were replaced since, claims that the last run contradicts, and
   rules that the user never said are marked where they stand; nothing that a model wrote is taken away;
2. repairs: what must survive and does not (the newest request, open errors, open work, the newest named
   values) is put back under its heading, from the ledger; standing constraints always stand there, word for
   word, in the block that code alone writes;
3. lists: the files that were read and changed, from the ledger.

Lines that quote the ledger are never marked, so grounding a grounded summary changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from foldline.core.checkpoint.evidence import Evidence
from foldline.core.checkpoint.files import file_lists, without_file_lists
from foldline.core.checkpoint.origin_check import OriginCheck
from foldline.core.checkpoint.sections import heading_of, plain, put_under
from foldline.core.ledger.facts.kinds import CommandFact, Ledger, ValueFact
from foldline.core.ledger.facts.open_work import is_done
from foldline.core.ledger.page.constraints import block, lines_of, without_blocks
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip
from foldline.core.log.messages import Message
from foldline.core.secrets.facts import redact_facts

UNVERIFIED = "(unverified)"
LONG_NUMBER = 5  # digits from which a number has to stand somewhere
ERRORS, OPEN, VALUES = 8, 15, 12  # facts of a kind that are put back, the newest
QUOTED = 300  # characters of a fact that are put back; constraints stand whole
SHORT = 12  # characters below which a text may stand in a line by chance
WORD_FOR_WORD = ("constraint", "value")  # kinds of facts that stand so or not at all
OPEN_ERROR = "Open error: "
SAME = 0.7  # share of a fact's words that a line must hold to say the same

_UNDER = {
    "constraint": (
        "Constraints & Preferences",
        "Rules",
        "User Requests & Constraints",
        "User Messages",
        "Context & Decisions",
    ),
    "request": ("Goal", "Task", "Requests & Intent", "User Requests & Constraints", "Current Work"),
    "error": ("Blocked", "Errors & Fixes", "State", "Current Work", "In Progress", "Progress"),
    "open": ("Next Steps", "Remaining Work", "Plan", "Open Tasks", "Next"),
    "value": ("Critical Context", "References", "Context & Decisions", "Files & Code", "Technical Decisions"),
}

_RULES = frozenset(map(plain, _UNDER["constraint"]))


class Grounded(msgspec.Struct, frozen=True):
    """A grounded summary, what was put back into it, and the names in it that stand nowhere."""

    text: str
    repaired: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()


class _Fact(msgspec.Struct, frozen=True):
    """Something that must stand in a summary: under which heading, as which line, known by which words."""

    kind: str
    line: str
    text: str


def ground(text: str, ledger: Ledger, said: Iterable[Message | str], previous: str | None = None) -> Grounded:
    """Mend a summary from the ledger and mark what stands nowhere.

    `said` are the folded messages (or their texts), `previous` the summary that they follow: what either says
    counts as known. Grounding the result again changes nothing.
    """
    ledger = redact_facts(ledger)
    said = list(said)
    evidence = Evidence(said, ledger, previous)
    facts = _facts(ledger)
    origins = OriginCheck(said, ledger, previous)
    written = without_blocks(without_file_lists(text))
    body, unverified = _marked(written, ledger, facts, evidence, origins)
    missing = _missing(facts, body, written)
    rules = [fact.line for fact in facts if fact.kind == "constraint"]
    body = _without_repeats(body, rules)
    for kind, headings in _UNDER.items():
        lines = block(rules) if kind == "constraint" else [fact.line for fact in missing if fact.kind == kind]
        body = put_under(body, lines, headings)
    lists = file_lists(ledger.files)
    lost = [
        fact.path
        for fact in ledger.files
        if fact.status != "read" and fact.path.rsplit("/", 1)[-1] not in text
    ]
    return Grounded(
        text=f"{body.rstrip()}\n\n{lists}" if lists else body.rstrip(),
        repaired=(*(fact.text for fact in missing), *lost),
        unverified=unverified,
    )


# ---- what must survive


def _facts(ledger: Ledger) -> list[_Fact]:
    """What a summary must hold, as the lines that would be put back."""
    lines = lines_of(ledger.constraints)
    facts = [
        _Fact("constraint", line, fact.text) for line, fact in zip(lines, ledger.constraints, strict=True)
    ]
    if ledger.requests:
        words = clip(ledger.requests[-1].text, QUOTED)
        facts.append(_Fact("request", f"Newest request: {words}", words))
    for error in [fact for fact in ledger.errors if not fact.fixed][-ERRORS:]:
        words = clip(error.text.removeprefix(OPEN_ERROR), QUOTED)
        source = f" (from `{clip(error.source, 80)}`)" if error.source else ""
        facts.append(_Fact("error", f"- {OPEN_ERROR}{words}{source}", words))
    for work in [fact for fact in ledger.open if not is_done(fact)][-OPEN:]:
        words = clip(work.text, QUOTED)
        label = "A call was never answered: " if work.kind == "call" else ""
        facts.append(_Fact("open", f"- {label}{words}", words))
    for value in list(_current(ledger.values).values())[-VALUES:]:
        words = f" ({clip(value.words, 90)})" if value.words else ""
        facts.append(_Fact("value", f"- {value.name} = `{value.value}`{words}", value.value))
    return facts


# Arguments that say how a tool looks at something, not what the work is about.
_HANDLING = re.compile(
    r"limit|offset|timeout(_?ms)?|lines?|(start|end)(_?line)?|count|head(_?limit)?|tail|depth|view_?range|"
    r"context|max(_?results|_?output_?tokens)?|(call|session|task|shell)_?id|yield_?time_?ms|replace_?all|"
    r"priority|width|height|index"
)


def _current(values: Sequence[ValueFact]) -> dict[str, ValueFact]:
    """The newest value of each name, those aside that only say how a tool was handled."""
    return {
        fact.name.casefold(): fact
        for fact in values
        if len(fact.name) >= 3 and fact.value and not _HANDLING.fullmatch(fact.name.casefold())
    }


_OURS = re.compile(r"\((?:superseded: now|unverified: the user said:) [^\n]*?\)(?=\s|$)")


def _missing(facts: Sequence[_Fact], body: str, text: str) -> list[_Fact]:
    """Return the facts that a summary does not hold.

    Rules and values have to stand in its own `text`: a mark of ours does not count.
    """
    whole, own = _spaced(body), _spaced(_OURS.sub("", text))
    lines = [_words(line) for line in body.split("\n")]
    return [fact for fact in facts if not _holds(fact, own if fact.kind in WORD_FOR_WORD else whole, lines)]


def _without_repeats(body: str, items: Sequence[str]) -> str:
    """Return a summary without the items under its rules that repeat the block's: they are moved into it."""
    sections: list[list[str]] = [[]]
    for row in body.split("\n"):
        if heading_of(row):
            sections.append([])
        sections[-1].append(row)
    return "\n".join(
        _without_items(section, items) if heading_of(section[0]) in _RULES else "\n".join(section)
        for section in sections
        if section
    )


def _without_items(rows: Sequence[str], items: Sequence[str]) -> str:
    text = "\n".join(("", *rows, ""))
    for item in items:
        text = text.replace(f"\n{item}\n{item}\n", f"\n{item}\n").replace(f"\n{item}\n", "\n")
    return text[1:-1]


def _holds(fact: _Fact, whole: str, lines: Sequence[frozenset[str]]) -> bool:
    if _spaced(fact.text) in whole:
        return True
    if fact.kind in WORD_FOR_WORD:
        return False
    wanted = _words(fact.text)
    return len(wanted) >= 2 and any(len(wanted & line) >= SAME * len(wanted) for line in lines)


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w{3,}", text.casefold()))


# ---- marks


def _marked(
    body: str, ledger: Ledger, facts: Sequence[_Fact], evidence: Evidence, origins: OriginCheck
) -> tuple[str, tuple[str, ...]]:
    """Mark the lines of a summary that do not quote the ledger; return also the names that stand nowhere."""
    quoted = {_spaced(fact.line) for fact in facts}
    quoted |= {_spaced(row) for fact in facts if fact.kind != "value" for row in fact.text.split("\n")}
    superseded = _Superseded(ledger.values)
    failed = _last_failed(ledger.commands)
    unverified: dict[str, None] = {}
    rows: list[str] = []
    heading = ""
    for row in body.split("\n"):
        heading = heading_of(row) or heading
        if _quotes(_spaced(row), quoted):
            rows.append(row)
            continue
        marked = superseded.mark(row)
        marked = _mark_names(marked, evidence, unverified)
        rows.append(origins.mark(_mark_claim(marked, failed), heading))
    return "\n".join(rows), tuple(unverified)


def _quotes(row: str, quoted: Iterable[str]) -> bool:
    """Whether a line holds a text of the ledger word for word; a short text only counts as the whole line."""
    return any(
        words in row and (len(words) >= SHORT or row.strip("-* ") == words) for words in quoted if words
    )


def _mark_names(row: str, evidence: Evidence, unverified: dict[str, None]) -> str:
    """Mark the names of a line that stand nowhere."""
    for name in dict.fromkeys(names.in_line(row)):
        if _checked(name) and not evidence.stands(name):
            unverified[name.text] = None
            border = re.compile(
                rf"(?<![\w./\-]){re.escape(name.text)}(?![\w/\-])(?::\d+)*+[`'\")\]>*]*+(?! \(unverified)"
            )
            row = border.sub(lambda found: f"{found[0]} {UNVERIFIED}", row)
    return row


def _checked(name: names.Name) -> bool:
    """Whether a name must stand somewhere: prose such as `read/write` only looks like a path."""
    if name.kind == "number":
        return len(name.text) >= LONG_NUMBER
    if name.kind == "path":
        parts = name.text.strip("/").split("/")
        looks = "." in parts[-1] or len(parts) > 2 or name.text.startswith(("/", "./", "../", "~/"))
        return looks and not re.search(r"[*{}<>$]|\.\.\.", name.text)
    return name.kind in ("url", "id")


class _Superseded:
    """Older values of the names whose newest value is known."""

    def __init__(self, values: Sequence[ValueFact]) -> None:
        self._newest = _current(values)
        if not self._newest:
            self._pattern = None
            return
        known = sorted((re.escape(name) for name in self._newest), key=len, reverse=True)
        self._pattern = re.compile(
            rf"(?<![\w\-])(?P<name>{'|'.join(known)})(?![\w\-])[`'\"*]{{0,3}}\s*"
            r"(?:=|:|\bis\b|\bto\b|->|→)?\s*"
            r"(?P<value>[`'\"]?[\w./:#\-]*\d[\w./:#\-]*)(?P<close>[`'\"]?)(?! \(superseded)",
            re.IGNORECASE,
        )

    def mark(self, row: str) -> str:
        """Mark the values in a line that were replaced since, but where the line gives the newest as well."""
        return self._pattern.sub(lambda found: self._judged(found, row), row) if self._pattern else row

    def _judged(self, found: re.Match[str], row: str) -> str:
        newest = self._newest[found["name"].casefold()].value
        value = found["value"].strip("`'\"").rstrip(".:")
        given = re.search(rf"(?<![\w.]){re.escape(newest)}(?!\w)", row)
        if given or not _same_shape(value, newest):
            return found[0]
        return f"{found[0]} (superseded: now {newest})"


def _same_shape(one: str, other: str) -> bool:
    """Whether two values could be one and the other of the same thing."""
    if one.isdigit() or other.isdigit():
        return one.isdigit() and other.isdigit()
    return ("://" in one) == ("://" in other) and ("/" in one) == ("/" in other)


_TEST_RUN = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|playwright test|make check|"
    r"(?:npm|pnpm|yarn|bun|deno|cargo|go|dotnet|mvn|mvnw|gradle|gradlew|swift|mix|rake|make|just|composer)\s+"
    r"(?:run\s+)?test[\w:\-]*)"
)
_TESTS_PASS = re.compile(
    r"\b(?:all\b.{0,30}?|the )?(?:tests?|test suite|suite|checks?)\b[^.;\n]{0,30}?"
    r"\b(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?)\b",
    re.IGNORECASE,
)
_NOT_CLAIMED = re.compile(
    r"\b(?:not|no|should|must|until|once|make|ensure|need|needs|fail\w*|if|when|whether|so that|"
    r"want\w*|to pass|get|but|before)\b"
    r"|n['\u2019]t\b|\[ \]",
    re.IGNORECASE,
)


def _last_failed(commands: Sequence[CommandFact]) -> CommandFact | None:
    """The last run of tests, if it failed. Commands are in the order of their last run."""
    runs = [fact for fact in commands if _TEST_RUN.search(fact.command)]
    return runs[-1] if runs and runs[-1].passed is False else None


def _mark_claim(row: str, failed: CommandFact | None) -> str:
    """Mark a line that calls the tests passed where their last run failed."""
    if failed is None or "(unverified" in row or not _TESTS_PASS.search(row) or _NOT_CLAIMED.search(row):
        return row
    outcome = f": {clip(failed.outcome, 100)}" if failed.outcome else ""
    return f"{row} (unverified: the last run of `{clip(failed.command, 80)}` failed{outcome})"

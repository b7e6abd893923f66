"""A model's summary checked against what code knows, and completed.

Names that occur in no entry are marked in place, and a mark stays through all later folds; nothing that a
model wrote is removed. Code appends what no model may lose: the user's standing rules in the block that only
code writes, the user's words, and the lists of files. Grounding a grounded summary changes nothing.

A line under a summary's rules that quotes a sentence of the user word for word makes that whole sentence a
standing constraint, with its entry (`proven`). What the user said about it later decides as always.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from foldline.core.checkpoint import conversation, conversation_lines, listing, rules, state
from foldline.core.checkpoint.page import USERS_RULES, WORDS
from foldline.core.ledger.facts.constraints import ConstraintHistory, candidates, roots
from foldline.core.ledger.facts.kinds import LEVELS, USER, ConstraintFact, Ledger
from foldline.core.ledger.text import names
from foldline.core.ledger.text.origin import prompts
from foldline.core.ledger.text.sentences import clip, one_line
from foldline.core.log.codec import encode
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, texts
from foldline.core.secrets.derived import redact_facts, strings_in

LISTED = 800  # tokens that the lists of files may take
_OURS = re.compile(rf"^(?:{WORDS}|{USERS_RULES}\n{rules.OPEN})\n(?:(?!## ).*\n?)*", re.MULTILINE)


class Grounded(msgspec.Struct, frozen=True):
    """A grounded summary, and the names in it that occur in no entry."""

    text: str
    unverified: tuple[str, ...] = ()


def ground(
    text: str,
    ledger: Ledger,
    said: Iterable[Message | str],
    previous: str | None = None,
    *,
    room: int = 0,
    count: Callable[[str], int] = len,
) -> Grounded:
    """Mark unknown names in a summary, and append rules, the user's words and file lists.

    `said` are the folded messages (or their texts), `previous` the summary that they follow; the user's words
    may take `room` tokens, as `count` counts them.
    """
    ledger = redact_facts(ledger)
    written = rules.without_blocks(_OURS.sub("", listing.without(text) + "\n")).rstrip()
    quoted = [fact.text for fact in ledger.constraints]
    body, unverified = marked(written, quoted, Evidence(list(said), ledger, previous))
    lines = rules.lines_of(ledger.constraints)
    block = rules.block(lines)
    words = users_words(ledger, room, count)
    parts = (
        _without(body, lines),
        "\n".join((USERS_RULES, *block)) if block else "",
        f"{WORDS}\n{words}" if words else "",
        "\n".join(listing.write(ledger.files, ledger.base, count, LISTED)),
    )
    return Grounded("\n\n".join(part for part in parts if part), unverified)


def users_words(ledger: Ledger, room: int, count: Callable[[str], int]) -> str:
    """Write the goal of a hand-off and what the user said, its first and newest in any case, in `room`."""
    if room <= 0:
        return ""
    items = [item for item in ledger.items if LEVELS.get(item.kind) == USER and item.kind != "summary"]
    goal = [state.GOAL + clip(one_line(ledger.goal), state.REQUEST) + "\n"] if ledger.goal else []
    room -= sum(map(count, goal))
    return "\n".join(
        [*goal, *conversation_lines.write(items, conversation.fill(items, room, count))]
    ).rstrip()


def _without(body: str, lines: Iterable[str]) -> str:
    """Take out the lines that the block of rules says."""
    gone = {row for line in lines for row in line.split("\n")}
    return "\n".join(row for row in body.split("\n") if row not in gone).rstrip()


# ---- names that occur in no entry

UNVERIFIED = "(unverified)"
_ENDS = r"[`'\")\]>*]*+"  # what closes a quoted name
_MARKED = re.compile(
    rf"(?:{names.URL}|(?<![{names.CHARACTERS}])[{names.CHARACTERS}]++){_ENDS} {re.escape(UNVERIFIED)}"
)
_GROUPED = re.compile(r"(?<=\d)[,_](?=\d{3}(?!\d))")
LONG_NUMBER = 5  # digits from which a number must occur in an entry


def marked(body: str, quoted: Sequence[str], evidence: Evidence) -> tuple[str, tuple[str, ...]]:
    """Mark the names that occur in no entry, except in lines that quote a rule; return also these names."""
    unverified: dict[str, None] = {}
    rows = [
        row if any(words and words in row for words in quoted) else _mark_names(row, evidence, unverified)
        for row in body.split("\n")
    ]
    return "\n".join(rows), tuple(unverified)


def _mark_names(row: str, evidence: Evidence, unverified: dict[str, None]) -> str:
    """Mark the names of a line that occur in no entry."""
    for name in dict.fromkeys(names.in_line(row)):
        if _checked(name) and not evidence.stands(name):
            unverified[name.text] = None
            slash = "" if name.kind in ("number", "id") else "/"
            goes_on = rf"[^\W{names.SPACELESS}]|[{slash}{'?&=#' if name.kind == 'url' else ''}-]"
            border = re.compile(
                rf"(?<![^\W{names.SPACELESS}])(?<![.{slash}-]){re.escape(name.text)}"
                rf"(?!{goes_on})(?::\d+)*+{_ENDS}(?! \(unverified)"
            )
            row = border.sub(lambda found: f"{found[0]} {UNVERIFIED}", row)
    return row


def _checked(name: names.Name) -> bool:
    """Whether a name must occur in an entry: prose such as `read/write` only looks like a path."""
    if name.kind == "number":
        return len(name.text) >= LONG_NUMBER
    if name.kind == "path":
        parts = name.text.strip("/").split("/")
        looks = "." in parts[-1] or len(parts) > 2 or name.text.startswith(("/", "./", "../", "~/"))
        return looks and not re.search(r"[*{}<>$]|\.\.\.", name.text)
    return name.kind in ("url", "id")


class Evidence:
    """Everything that entries, ledger and previous summary say, searchable.

    A name that an earlier summary marks as unverified is no evidence: a mark never washes out.
    """

    def __init__(self, said: Iterable[Message | str], ledger: Ledger, previous: str | None) -> None:
        pieces = [piece for item in said for piece in _pieces(item)]
        told = _MARKED.sub(" ", "\n".join([*strings_in(ledger), previous or ""]))
        whole = "\n".join([*pieces, told])
        self._text = whole.replace("\\\\", "/").replace("\\", "/")

    @cached_property
    def _folded(self) -> str:
        return self._text.casefold()

    @cached_property
    def _ungrouped(self) -> str:
        return _GROUPED.sub("", self._text)

    def has(self, text: str) -> bool:
        """Whether the evidence contains a text, ignoring case."""
        text = text.replace("\\", "/")
        return text in self._text or text.casefold() in self._folded

    def stands(self, name: names.Name) -> bool:
        """Whether the evidence contains a name, in any of its spellings.

        A path also counts where its last two parts do, or its folder and its last part apart (a listing); an
        id where its first seven letters do; a number whichever way its digits are grouped.
        """
        if self.has(name.text):
            return True
        if name.kind == "id":
            return len(name.key) >= 7 and self.has(name.key)
        if name.kind == "number":
            return name.text in self._ungrouped
        if name.kind != "path":
            return False
        if "/" in name.key and self.has(name.key):
            return True
        *folder, last = [part for part in name.text.split("/") if part.strip(".~")]
        return bool(folder) and self.has("/".join(folder[-2:])) and self.has(last)


def _pieces(item: Message | str) -> Iterator[str]:
    if isinstance(item, str):
        yield item
        return
    yield from texts(item)
    for call in item.calls:
        yield call.name
        yield call.arguments if isinstance(call.arguments, str) else _written(call.arguments)


def _written(arguments: dict[str, Any]) -> str:
    try:
        return encode(arguments).decode()
    except (RecursionError, ValueError, TypeError):
        return ""


# ---- rules that a summary proposes: the model recalls, code proves


RULES: Final = (  # the headings of a summary's rules
    "Constraints & Preferences",
    "Rules",
    "User Requests & Constraints",
)
LEAST_WORDS: Final = 2  # content words below which a line proves nothing, but for a whole sentence
_LEAD: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ x]\]\s+)?")
_EDGES: Final = " \t\"'`*_.!\u201c\u201d\u2018\u2019\u3002"
_HEADING: Final = re.compile(r"^#{1,6}\s+(\S.*)")


def proven(
    summary: str, entries: Sequence[Said], known: Sequence[ConstraintFact]
) -> tuple[ConstraintFact, ...]:
    """Return the rules that a summary proposes and a user's entry holds, without those that are `known`."""
    lines = [line for line in map(_bare, _proposed(summary)) if roots(line)]
    if not lines:
        return ()
    said = (sentence for _, spans in prompts(entries) for span in spans for sentence in candidates(span))
    named = {sentence for sentence in said if _is_proposed(sentence, lines)}
    history = ConstraintHistory()
    history.read(entries, named)
    named -= {fact.text for fact in known}
    return tuple(fact for fact in history.standing if fact.text in named)


def with_proven(
    constraints: Sequence[ConstraintFact], found: Sequence[ConstraintFact], entries: Sequence[Said]
) -> tuple[ConstraintFact, ...]:
    """Return constraints with the proven ones among them, in the order of the entries that hold them."""
    place = {entry.id: index for index, entry in enumerate(entries)}
    return tuple(sorted((*constraints, *found), key=lambda fact: place.get(fact.entry, -1)))


def _proposed(summary: str) -> Iterator[str]:
    """Yield the items under the headings of a summary's rules."""
    heading, wanted = "", {plain(name) for name in RULES}
    for row in summary.split("\n"):
        heading = heading_of(row) or heading
        if heading in wanted and _LEAD.match(row):
            yield _LEAD.sub("", row)


def _bare(text: str) -> str:
    return " ".join(text.split()).strip(_EDGES)


def _is_proposed(sentence: str, lines: Sequence[str]) -> bool:
    """Whether a sentence contains one of the lines word for word; a question states no rule."""
    plain = _bare(sentence)
    if plain.endswith(("?", "\uff1f")):
        return False
    return any(line == plain or (len(roots(line)) >= LEAST_WORDS and _stands(line, plain)) for line in lines)


def _stands(line: str, sentence: str) -> bool:
    at = sentence.casefold().find(line.casefold())
    before, after = sentence[at - 1 : at], sentence[at + len(line) : at + len(line) + 1]
    return at >= 0 and not (before[-1:].isalnum() or after.isalnum())


def plain(heading: str) -> str:
    """Return a heading in the form in which headings are compared."""
    return " ".join(heading.casefold().replace("&", "and").replace("*", "").split())


def heading_of(row: str) -> str:
    """Return the heading that a line is, in its plain form; "" for any other line."""
    found = _HEADING.match(row)
    return plain(found[1].rstrip(" \t:#")) if found else ""

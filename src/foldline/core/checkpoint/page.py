"""The offline checkpoint: the conversation without its machinery, below the state of the work.

    ## State          from structure: the request, the plan, the newest outcome of each check, commits
    ## Rules          the user's standing rules, word for word, in the one block that is believed later
    ## Conversation   what was said, word for word as far as there is room, a line for each run of calls
    Names met         names from results that are not on the page, by file, in at most 6% of the room
    <read-files> <modified-files>

A page is written from items and facts, and is read back as items: a later fold without a log loses nothing
but the entries that they came from.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import lru_cache

import msgspec

from foldline.core.checkpoint import conversation, conversation_lines, listing, rules, state
from foldline.core.ledger.facts.kinds import Ledger, MetName
from foldline.core.ledger.facts.touches import relative
from foldline.core.ledger.table import bounded
from foldline.core.ledger.text.sentences import clip

Count = Callable[[str], int]

STATE, RULES, CONVERSATION = "## State", "## Rules", "## Conversation"
WORDS, USERS_RULES = "## User's words", "## User's rules"  # added to a model's summary
NAMES = "Names met in what is not shown, to search for:"
ELSEWHERE = "elsewhere"
STATE_SHARE, LIST_SHARE, NAMES_SHARE = 0.1, 0.06, 0.06  # of what the rules leave, at most
STATE_LEAST = 400  # tokens of the state on a small page, up to a sixth of it
FRAME = 24  # tokens of headings and line breaks
ATTEMPTS = 5  # times that a page is written, with less room each time it came out too long
UNUSED = 20  # a page that leaves more than 1 / UNUSED of its room is written once more
FOCUS_WORD = 4  # letters of a word of a focus that counts
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[A-Za-z]{4}")  # of names that differ only in numbers one is enough; ids are all listed


class Composed(msgspec.Struct, frozen=True):
    """A checkpoint's text, and the ledger reduced to what the next fold should know."""

    text: str
    ledger: Ledger


def compose(
    ledger: Ledger, budget: int, count: Count, *, instructions: str | None = None, goal: str = ""
) -> Composed:
    """Write the offline checkpoint of a ledger within `budget` tokens, as `count` counts them.

    `ledger` holds all that is folded, earlier folds included. `instructions` are the words of a focus: what
    holds them comes first; `goal` is what a hand-off is for. A budget that not even the rules fit keeps as
    many as do fit.
    """
    count = lru_cache(maxsize=16_384)(count)
    carried = bounded(msgspec.structs.replace(ledger, goal=goal or ledger.goal))
    room = budget
    for attempt in range(ATTEMPTS):
        text = _written(ledger, room, count, instructions, goal)
        over = count(text) - budget
        if attempt == 0 and -over > budget // UNUSED:  # parts that need less than their share left room
            fuller = _written(ledger, budget - over, count, instructions, goal)
            text = fuller if count(fuller) <= budget else text
        if over <= 0:
            return Composed(text, carried)
        room -= over + (4 << attempt)
    return Composed(_smallest(ledger, budget, count), carried)


def _written(ledger: Ledger, budget: int, count: Count, focus: str | None, goal: str) -> str:
    block = rules.block(rules.lines_of(ledger.constraints))
    left = max(0, budget - FRAME - (count("\n".join(block)) + 1 if block else 0))
    status = state.lines(ledger, max(int(left * STATE_SHARE), min(STATE_LEAST, left // 6)), count, goal)
    lists = listing.write(ledger.files, ledger.base, count, int(left * LIST_SHARE))
    left -= count("\n".join(status)) + (count("\n".join(lists)) if lists else 0)
    for_names = int(budget * NAMES_SHARE) if ledger.names else 0
    shown = conversation.fill(
        ledger.items,
        max(0, left - for_names),
        count,
        closed=not ledger.goes_on,
        focus=_words_of(focus or goal),
    )
    lines = conversation_lines.write(ledger.items, shown)
    sections = [
        "\n".join((STATE, *status)) if status else "",
        "\n".join((RULES, *block)) if block else "",
        "\n".join((CONVERSATION, *lines)) if lines else "",
    ]
    text = "\n\n".join(section for section in sections if section)
    listed = {fact.path for fact in listing.read("\n".join((*lists, "")))[0]}
    others = _others(ledger, text, listed, for_names, count)
    return "\n\n".join(part for part in (text, others, "\n".join(lists)) if part)


def _words_of(focus: str | None) -> list[str]:
    """Return the distinctive words of a focus, each once."""
    words = dict.fromkeys(word.lower().strip(".,:;!?\"'()`") for word in (focus or "").split())
    return [word for word in words if len(word) >= (FOCUS_WORD if word.isascii() else 2)]


def _others(ledger: Ledger, text: str, listed: AbstractSet[str], room: int, count: Count) -> str:
    """List the names that are not on the page, the weightiest first, by the file they come from."""
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    left = room - count(NAMES)
    for name in ledger.names:
        path = relative(name.text, ledger.base)
        short = "/".join(path.split("/")[-2:]) if "://" not in path else path
        shape = _NUMBER.sub("0", short) if _WORD.search(short) else short
        if short in text or shape in seen or ", " in short or "..." in short or path in listed:
            continue
        seen.add(shape)
        place = name.file or ELSEWHERE
        left -= count(short) + 1 + (0 if place in found else count(place) + 3)
        if left < 0:
            break
        found.setdefault(place, []).append(short)
    found |= {ELSEWHERE: found.pop(ELSEWHERE)} if ELSEWHERE in found else {}
    rows = [f"- {place}: {', '.join(names)}" for place, names in found.items()]
    return "\n".join((NAMES, *rows)) if rows else ""


def _smallest(ledger: Ledger, budget: int, count: Count) -> str:
    """Write what fits a budget too small for parts: the rules that fit, else the newest request."""
    lines = rules.lines_of(ledger.constraints)
    while lines:
        text = "\n".join((RULES, *rules.block(lines)))
        if count(text) <= budget:
            return text
        lines.pop()
    text = clip(ledger.newest_request or "Nothing was said yet.", max(12, budget * 2))
    while text and count(text) > budget:
        text = text[: len(text) * 3 // 4]
    return text


_OURS = re.compile(rf"^{USERS_RULES}\n{rules.OPEN}\n(?:(?!## ).*\n?)*", re.MULTILINE)
_SECTIONS = re.compile(rf"^({STATE}|{RULES}|{CONVERSATION})$", re.MULTILINE)


def parse(text: str) -> Ledger:
    """Read a checkpoint that `compose` wrote: the items and facts that it states, without their entries.

    A text of another origin is one earlier summary; it never raises.
    """
    files, rest = listing.read(text)
    met, rest = _names_in(rest)
    rest, _, words = rest.strip("\n").partition(f"\n{WORDS}\n")
    head, *pieces = _SECTIONS.split(rest) if _is_ours(rest) else [_OURS.sub("", f"{rest}\n")]
    parts = dict(zip(pieces[::2], pieces[1::2], strict=True))
    known = state.read([row for row in parts.get(STATE, "").split("\n") if row])
    items = conversation_lines.read(parts.get(CONVERSATION, "").strip("\n"))
    items += conversation_lines.read(words.strip("\n"))
    if head.strip():
        items = [conversation_lines.earlier(head), *items]
    return msgspec.structs.replace(
        known,
        items=tuple(items),
        constraints=rules.read(text),
        files=tuple({fact.path: fact for fact in files}.values()),
        names=met,
        turns=sum(item.kind == "user" for item in items),
    )


def _is_ours(text: str) -> bool:
    """Whether code wrote a page: it begins with a heading of ours and has no other."""
    headings = {row for row in text.split("\n") if row.startswith("## ")}
    return text.startswith("## ") and headings <= {STATE, RULES, CONVERSATION}


def _names_in(text: str) -> tuple[tuple[MetName, ...], str]:
    """Take the names met out of a page."""
    before, found, after = text.rpartition(f"{NAMES}\n")
    if not found:
        return (), text
    rows = after.split("\n")
    end = next((at for at, row in enumerate(rows) if not row.startswith("- ")), len(rows))
    met = [
        MetName(name, 1.0, "" if file == ELSEWHERE else file)
        for file, _, names in (row[2:].partition(": ") for row in rows[:end])
        for name in names.split(", ")
        if name
    ]
    return tuple(met), before + "\n".join(rows[end:])

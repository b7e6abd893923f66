"""What the user asked: the first request, the newest, those between, and lines of them worth quoting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from foldline.core.ledger.facts.decisions import by_user
from foldline.core.ledger.facts.kinds import Excerpt, Ledger, RequestFact, WorkFact
from foldline.core.ledger.facts.requests import gist, is_bare, shown, substantial
from foldline.core.ledger.page import excerpts
from foldline.core.ledger.page.sheet import GOAL, Sheet
from foldline.core.ledger.text.pasted import typed
from foldline.core.ledger.text.sentences import clip

SHARE = 0.06  # of the budget
LONGEST = 500  # characters of a request that stand at the top; its lines compete as excerpts
TOLD = 200  # and of the newest, which the work log tells in full
SHORTEST = 60  # characters to which the first and the newest may shrink, so that neither is left out
PASTED = "(pasted output) "  # before the beginning of a message that holds no words of the user's
LEAST_SHOWN = 80  # characters of that
NOW = 240  # characters of the request that waits
BETWEEN = 200  # characters of a request between the first and the newest

OPENING = 50  # characters by which a request is known again

FIRST = "First request: "
BEFORE = "- Asked before: "
ANSWERED = "Last answered request: "  # in place of the newest, where a newer one waits
NEWEST = "Newest request: "
WAITING = (
    "Asked now (the messages below may answer it): "  # stands under Next Steps too, from where it is read
)
_IN_ORDER = (FIRST, BEFORE, ANSWERED, NEWEST)
_REQUEST = re.compile(f"({'|'.join(_IN_ORDER)})(.+)")


def write(sheet: Sheet, ledger: Ledger, most: int) -> None:
    """Write the first and the newest request, then as many between them as fit, the newest first in line."""
    requests = ledger.requests
    if not requests:
        return
    waiting = _waits_elsewhere(ledger) or _is_answered(ledger)
    size = max(80, min(most * 2, LONGEST))
    told = TOLD if ledger.work else LONGEST
    lines = first_and_newest(requests, size, min(size, told), waiting=waiting)
    while size > SHORTEST and sum(sheet.count(line) + 1 for line in lines) > most:
        size = size * 3 // 4
        lines = first_and_newest(requests, size, min(size, told), waiting=waiting)
    asked = next((fact.text for fact in ledger.open if fact.state == "asked"), "") if waiting else ""
    now = [f"{WAITING}{in_short(asked, NOW)}"] if asked else []
    sheet.add(GOAL, now, most)  # first in line for the room, and last on the page
    taken = sheet.add_newest_first(GOAL, lines, max(most, min(sheet.left, 2 * SHORTEST)))
    sheet.parts[GOAL].sort(key=lambda line: line.startswith(WAITING))
    if not ledger.work:
        elsewhere = (fact.text for fact in (*ledger.constraints, *ledger.decisions))
        sheet.add_newest_first(GOAL, between(requests, elsewhere), most - taken)


def in_short(request: str, size: int) -> str:
    """Return the first sentences of a request in so many characters; of a pasted one its beginning."""
    return pasted(request) or clip(gist(request, size) or request, size)


def pasted(request: str) -> str:
    """Return the beginning of a request without a word of the user's own, marked so; "" of any other."""
    return "" if typed(request).strip() else PASTED + clip(" ".join(request.split()), LEAST_SHOWN)


def _waits_elsewhere(ledger: Ledger) -> bool:
    """Whether a request waits that is not the newest here: it stands in the kept messages."""
    return any(fact.state == "asked" and fact.entry != ledger.requests[-1].entry for fact in ledger.open)


def _is_answered(ledger: Ledger) -> bool:
    """Whether the work on the newest request is known to have ended."""
    last = ledger.work[-1] if ledger.work else None
    return last is not None and last.answered and last.entry == ledger.requests[-1].entry


def first_and_newest(
    requests: Sequence[RequestFact], size: int, newest_size: int = LONGEST, *, waiting: bool = False
) -> list[str]:
    """Write the two lines of a goal, the newest first.

    Where it is not the one that is `waiting`, the newest one here was answered.
    """
    real = substantial(requests)
    newest = requests[-1] if is_bare(requests[-1].text) and requests[-1].question else real[-1]
    lines = [f"{FIRST}{clip(real[0].told, size)}"]
    if newest is not real[0]:
        lines.insert(0, f"{ANSWERED if waiting else NEWEST}{_newest(newest, newest_size)}")
    return lines


def _newest(fact: RequestFact, size: int) -> str:
    text = shown(fact)
    return clip(text if len(text) <= size else gist(text, size) or text, size)


def between(requests: Sequence[RequestFact], elsewhere: Iterable[str]) -> list[str]:
    """Write the requests between those two, the latest first, without what stands `elsewhere`."""
    real = substantial(requests)
    last = is_bare(requests[-1].text) and bool(requests[-1].question)
    known = frozenset(elsewhere)
    told = reversed(real[1:] if last else real[1:-1])
    texts = (gist(fact.text, BETWEEN, known.union(choice.text for choice in by_user(fact))) for fact in told)
    return [f"{BEFORE}{text}" for text in dict.fromkeys(texts) if text]


def write_excerpts(sheet: Sheet, picked: Iterable[Excerpt]) -> None:
    """Write the lines of requests that were picked, under the headings that they stood below."""
    sheet.parts[GOAL].extend(excerpts.spoken_lines("asked", picked))


def read(items: Iterable[Sequence[str]], work: Iterable[WorkFact] = ()) -> tuple[RequestFact, ...]:
    """Read the requests back in the order in which they were made; those between from the work log."""
    found: dict[str, list[str]] = {label: [] for label in _IN_ORDER}
    for item in items:
        match = _REQUEST.match(item[0])
        if match:
            found[match.group(1)].append(match.group(2))
    between = [RequestFact(fact.asked, "", fact.question) for fact in work if fact.asked]
    first = [RequestFact(text, "") for text in found[FIRST]]
    newest = [RequestFact(text, "") for label in (BEFORE, ANSWERED, NEWEST) for text in found[label]]
    return _once((*first, *between, *newest))


def _once(facts: Iterable[RequestFact]) -> tuple[RequestFact, ...]:
    """Return the requests without those that another says at greater length."""
    found: dict[str, RequestFact] = {}
    for fact in facts:
        opening = fact.text.rstrip("…")[:OPENING]
        known = found.get(opening)
        if known is None or len(fact.text) > len(known.text):
            found[opening] = fact
    return tuple(found.values())

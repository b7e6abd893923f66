"""The conversation of a checkpoint: which of its items are shown, and how much of each.

Each level is offered a part of what is left, so that none starves the next, in rounds: first no message may
be long, then what is left goes to the same levels again, the user's words first. Inside a level the newest
items come whole, older ones shortened to their opening and end, the oldest as a counted gap. What is left in
the end tells more of what was done and seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from foldline.core.checkpoint.conversation_lines import MORE, line_of
from foldline.core.cut import elide
from foldline.core.ledger.facts.kinds import CLOSING, DONE, LEVELS, LOOKED, SAID, SPOKEN, USER, Item
from foldline.core.ledger.text.origin import printed

Count = Callable[[str], int]

FOCUSED = 5  # what a focus asks for, whatever its level
ASIDES = 6  # prose that only announces a call
WHOLE = 10**6  # characters: more than any item has
CAP, CAP_LEAST = 5, 500  # one message may take 1 / CAP of its level's room, or CAP_LEAST tokens
ROUNDS = (  # level, its part of what is left, and the most tokens of one message
    (FOCUSED, 0.6, CAP_LEAST),
    (USER, 0.6, CAP_LEAST),
    (CLOSING, 0.5, CAP_LEAST),
    (USER, 0.6, WHOLE),
    (CLOSING, 0.5, WHOLE),
    (DONE, 0.6, WHOLE),
    (SAID, 0.7, WHOLE),
    (LOOKED, 1.0, WHOLE),
    (USER, 1.0, WHOLE),
    (CLOSING, 1.0, WHOLE),
    (DONE, 1.0, WHOLE),
    (SAID, 1.0, WHOLE),
)
USERS_MOST = 0.85  # of the room, what the user's words may take where all of them are shortened
SHORT, SHORT_LEAST = 300, 100  # characters to which an older message is shortened, by how many there are
TAIL, SAIDS_TAIL, ASKS_TAIL = (
    0.33,
    0.6,
    0.8,
)  # the end's part of what is shortened, of prose that works, of a question
FEW_WORDS = 80  # characters of an answer that says little without what was asked
FIRM = 2  # of a level, those that come first do not give way: the user's newest words, and the first

MORE_LEAST, MORE_WHOLE = 40, 300  # tokens that are worth it, and up to which one may take all that is left
RATIOS = 4, 3, 2  # characters of a token that are tried

LINES = 4  # lines from which on a text is shortened line by line
LEAD = 160  # characters that a line of a shortened text may have in any case
_CODE = re.compile(r"(^ *```[^\n]*\n.*?(?:^ *```[^\n]*$|\Z))", re.MULTILINE | re.DOTALL)
_BULLET = re.compile(r"(?<=\s)(?:\d{1,2}[.)]|[-*•])\Z")  # of a list item whose text is cut off
_ENDS = ("\n", ". ", "。", "! ", "? ")


def levels(items: Sequence[Item], *, closed: bool = True) -> list[int]:
    """Return the level of each item: prose that the user answers next is a closing.

    `closed`: what follows the last item is the user's, too.
    """
    found = [int(LEVELS.get(item.kind, LOOKED)) for item in items]
    speaks = closed
    for index in range(len(items) - 1, -1, -1):
        kind = items[index].kind
        if kind in ("said", "aside"):
            if speaks:
                found[index] = CLOSING
            speaks = False
        elif kind == "user":
            speaks = True
    return found


def fill(
    items: Sequence[Item],
    room: int,
    count: Count,
    *,
    closed: bool = True,
    focus: Collection[str] = (),
) -> dict[int, str]:
    """Choose the items that are shown, as index -> text, in at most `room` tokens.

    `focus`: words; what holds one that not most items hold comes first.
    """
    level = levels(items, closed=closed)
    members = _members(items, level, focus)
    texts = _Texts(items, level, count)
    shown: dict[int, dict[int, str]] = {each: {} for each in members}
    used = dict.fromkeys(members, 0)
    left = room
    for each, share, longest in ROUNDS:
        most = int(left * max(share, USERS_MOST if each == USER else 0))
        shown[each], size = _level(
            members[each], used[each] + int(left * share), used[each] + most, texts, longest
        )
        left -= size - used[each]
        used[each] = size
    shown[ASIDES], size = _level(members[ASIDES], left, left, texts)
    _add_more(items, members[DONE], shown[DONE], left - size, count)
    told = {index: text for taken in shown.values() for index, text in taken.items()}
    for index, after in pairwise(sorted(told)):  # prose that only announces a call goes if more prose follows
        if index in shown[ASIDES] and items[after].kind in ("said", "aside"):
            del told[index]
    return told


def _add_more(
    items: Sequence[Item], members: Sequence[int], shown: dict[int, str], left: int, count: Count
) -> None:
    """Add the further lines of what was done, newest first, each in half of the tokens that are left."""
    for index in members:
        rows = items[index].more.split("\n") if index in shown and left >= MORE_LEAST else []
        most = max(left // 2, min(left, MORE_WHOLE))
        for ratio in RATIOS if any(rows) else ():
            lines = "".join(f"\n{MORE}{row}" for row in _between(rows, most * ratio, end=0.0))
            if (size := count(lines)) <= most:
                shown[index] += lines
                left -= size
                break


def _members(items: Sequence[Item], level: Sequence[int], focus: Collection[str]) -> dict[int, list[int]]:
    """Return the items of each level in the order in which they are offered room: newest first.

    The first request comes right after the newest one: it is always shown.
    """
    wanted = _about(items, focus)
    members: dict[int, list[int]] = {each: [] for each in range(ASIDES + 1)}
    for index in range(len(items) - 1, -1, -1):
        each = level[index]
        if index in wanted and each != USER:
            each = FOCUSED
        elif items[index].kind == "aside" and each == LOOKED:
            each = ASIDES
        if items[index].kind != "gap":
            members[each].append(index)
    users = members[USER]
    members[USER] = sorted([*users[-1:], *users[:-1]], key=lambda index: index not in wanted)
    return members


def _about(items: Sequence[Item], focus: Collection[str]) -> set[int]:
    """Return the items that hold a word of the focus: of its rarest, and of more up to a fifth of all.

    A word that most items contain is ignored.
    """
    lowered = [item.text.lower() for item in items] if focus else []
    holders = [{index for index, text in enumerate(lowered) if word in text} for word in focus]
    found: set[int] = set()
    for holds in sorted(filter(None, holders), key=len):
        if len(found | holds) * 5 > (len(items) if found else 3 * len(items)):
            break
        found |= holds
    return found


class _Texts:
    """The forms of items and their tokens, each worked out once."""

    def __init__(self, items: Sequence[Item], level: Sequence[int], count: Count) -> None:
        self._items = items
        self._count = count
        self._tails = {index: SAIDS_TAIL for index, each in enumerate(level) if each == SAID}
        self._tails |= dict.fromkeys(_asks(items, level), ASKS_TAIL)
        self._known: dict[tuple[int, int], tuple[str, int]] = {}

    def form(self, index: int, most: int) -> tuple[str, int]:
        """Return an item's text in at most about `most` characters, and its tokens."""
        item = self._items[index]
        most = most if item.kind in SPOKEN else WHOLE
        key = (index, most if len(item.text) > most else 0)
        if key not in self._known:
            text = shortened(item.text, most, end=self._tails.get(index, TAIL))
            self._known[key] = (text, self._count(line_of(item, text)) + 1)
        return self._known[key]


def _level(
    members: Sequence[int], room: int, most: int, texts: _Texts, longest: int = WHOLE
) -> tuple[dict[int, str], int]:
    """Fill one level in the order of its members: whole within `room` tokens, shortened within `most`.

    The longest give way first: what is above one common size, or `longest` tokens, is shortened to it.
    """
    whole = [texts.form(index, WHOLE) for index in members]
    ratio = 0.9 * sum(len(text) for text, _ in whole) / max(1, sum(size for _, size in whole))
    one_most = max(room // CAP, CAP_LEAST)
    common = min(max(elide.level([size for _, size in whole], room), one_most), longest)
    short = min(SHORT, max(SHORT_LEAST, int(ratio * most / max(1, len(members)))))
    briefs = [texts.form(index, short) for index in members]
    rest = sum(least for _, least in briefs)
    shown: dict[int, str] = {}
    used = 0
    for place, (index, one, (brief, least)) in enumerate(zip(members, whole, briefs, strict=True)):
        rest -= least
        share = room - used - rest
        if share <= 0 or place < FIRM:
            share = max(share, room * 3 // 5 - used)
        size_most = share if place < FIRM else min(share, common)
        text, size = one if one[1] <= size_most else texts.form(index, int(ratio * size_most))
        if least < size <= share:
            shown[index] = text
            used += size
        elif used + least <= most:
            shown[index] = brief
            used += least
    return shown, used


def _asks(items: Sequence[Item], level: Sequence[int]) -> set[int]:
    """Return the closing messages that a short answer follows: their question is at their end."""
    found: set[int] = set()
    answer = ""
    for index in range(len(items) - 1, -1, -1):
        if level[index] == USER:
            answer = items[index].text
        elif level[index] == CLOSING and 0 < len(answer) <= FEW_WORDS:
            found.add(index)
    return found


def shortened(text: str, most: int, *, end: float = TAIL) -> str:
    """Shorten a text: to the lead of each of its lines, without code; then to its opening and its end.

    `end` is the part of `most` that the end has; with little room only the larger of the two is kept.
    """
    if len(text) <= most + 40:
        return text
    if text.count("\n") >= LINES:
        rows = _leads(text, most)
        if most >= 2 * SHORT_LEAST:
            rows = _between(rows, most, end)
        text = "\n".join(rows)
        if len(text) <= most + 40:
            return text
    last = int(most * end) if most >= 2 * SHORT_LEAST else most * round(end)
    tail = text[len(text) - last :]
    begin = min((at for mark in _ENDS if 0 <= (at := tail.find(mark)) < len(tail) // 2), default=-1)
    begin = begin if begin >= 0 else tail.find(" ", 0, len(tail) // 2)
    head = _opening(text, most - last).removesuffix("[…]").rstrip()
    return f"{head} […] {tail[begin + 1 :].removeprefix('[…]').lstrip()}".strip()


def _opening(text: str, most: int) -> str:
    """Return the beginning of a text, up to the end of a sentence, a line or a word."""
    head = text[:most]
    stop = max(head.rfind(mark) for mark in _ENDS)
    stop = stop + 1 if stop > len(head) // 2 else head.rfind(" ")
    return _BULLET.sub("", head[: stop if stop > 0 else None].rstrip())


def _leads(text: str, most: int) -> list[str]:
    """Return the opening of each line, the longest cut to one length, `[…]` for code and pasted output."""
    rows: list[str] = []
    for at, block in enumerate(_CODE.split(text)):
        pasted = False  # the first line of a paragraph that a program wrote says what it is
        for row in map(str.rstrip, block.split("\n")):
            left_out = at % 2 or (pasted and row)
            pasted = bool(row) and (pasted or printed(row))
            shown = "[…]" if left_out else row
            while shown == "[…]" and rows and (_announces if rows[1:] else _is_heading)(rows[-1]):
                rows.pop()
            rows += [shown] if shown and shown != "".join(rows[-1:]) else []
    lead = max(elide.level([len(row) + 1 for row in rows], most), LEAD)
    return [f"{_opening(row, lead)} […]" if len(row) > lead + 40 else row for row in rows]


def _announces(row: str) -> bool:
    """Whether a line only says what follows: a heading, or a few words before a colon."""
    return _is_heading(row) or (len(row) <= FEW_WORDS and row.rstrip().endswith(":"))


def _is_heading(row: str) -> bool:
    bare = row.strip()
    return bare.startswith("#") or (bare.startswith("**") and bare.endswith(("**", ":**", "**:")))


def _between(rows: Sequence[str], most: int, end: float) -> list[str]:
    """Return the first and the last rows in about `most` characters, and `[…]` for those between them."""
    sizes = [len(row) + 1 for row in rows]
    if sum(sizes) <= most + 40:
        return list(rows)
    first, last = most - int(most * end), int(most * end)
    head = next((at for at in range(len(rows)) if sum(sizes[: at + 1]) > first), len(rows))
    tail = next((at for at in range(len(rows)) if sum(sizes[len(rows) - at - 1 :]) > last), 0)
    begins = list(rows[:head]) or [_opening(rows[0], first)]
    while len(begins) > 1 and _announces(begins[-1]):
        begins.pop()
    return [*begins, "[…]", *rows[len(rows) - tail :]]

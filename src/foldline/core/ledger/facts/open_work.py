"""Work not finished: todo lists, plans, calls never answered, and what was to come next."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from foldline.core.ledger.facts.calls import Use, arguments, by_plain_key, plain, strings
from foldline.core.ledger.facts.commands import command_in
from foldline.core.ledger.facts.files import touches
from foldline.core.ledger.facts.kinds import OpenFact
from foldline.core.ledger.facts.requests import is_bare
from foldline.core.ledger.text.origin import prompts
from foldline.core.ledger.text.reasons import announces
from foldline.core.ledger.text.sentences import clip, sentences
from foldline.core.log.entries import Said
from foldline.core.log.steps import finishes

CARRIED = 80  # items from fold to fold: the newest
TEXT = 300
REQUEST = 500  # characters of a request that waits
THEN = 160  # characters of what the user said after a call that was never answered
OUTLIVED = 2  # answered requests after which a list that nobody touched says nothing any more
_WAITING = ("", "pending", "todo", "open", "not_started", "not started")
_STATE_KEYS = ("status", "state", "done", "completed", "complete", "checked")
_TEXT_KEYS = ("content", "text", "task", "step", "title", "subject", "name", "description", "todo", "item")
_TASK_TOOL = re.compile(r"task|todo|plan")
_ID_KEYS = ("taskid", "todoid", "id", "itemid")
_DONE = re.compile(
    r"complete|done|finished|closed|cancel|deleted|removed|true|resolved|skipped", re.IGNORECASE
)
_NOT_DONE = re.compile(r"\bnot|\bin\b|un|incomplete", re.IGNORECASE)
_CHECKBOX = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[([ xX~-]?)\][ \t]+(\S[^\n]*)$", re.MULTILINE)
_NEXT = re.compile(
    r"\b(?:next(?:,| step| steps|:| I)|I(?:'ll| will| am going to|'m going to| need to| still need)\b|"
    r"remaining (?:work|steps?|tasks?|items?|todos?)|"
    r"still (?:to do|need|needs|missing|left|open|failing)|(?:left|yet) to (?:do|be)|TODO|"
    r"not (?:yet )?(?:run|tested|verified|done|committed|pushed|deployed|started|implemented)|not yet|"
    r"to be done)\b|als Nächstes|ensuite|à faire|a continuación|接下来|"
    r"下一步|次に|다음",
    re.IGNORECASE,
)
_NO_STEP = re.compile(
    r"[:：]\W*\Z|^\W*(?:let me\b|now let me\b|I(?:'ll| will) (?:now )?(?:check|look|read|see|start)\b)",
    re.IGNORECASE,
)
"""A sentence that announces the very next call is no step of a plan."""


def is_done(fact: OpenFact) -> bool:
    """Whether the tool that kept the list says that this item needs no more work."""
    return bool(_DONE.search(fact.state)) and not _NOT_DONE.match(fact.state)


def _state(item: dict[str, Any]) -> str | None:
    """Return the state of a list item in its own words; None where it has none."""
    for key in _STATE_KEYS:
        value = item.get(key)
        if isinstance(value, bool):
            return "completed" if value else "pending"
        if isinstance(value, str) and len(value) <= 40:
            return value
    return None


def _words(item: dict[str, Any]) -> str:
    """Return what a list item says is to be done."""
    return next(
        (value for key in _TEXT_KEYS if isinstance(value := item.get(key), str) and value.strip()), ""
    )


def _list_in(use: Use) -> tuple[OpenFact, ...] | None:
    """Read a whole list of todos or plan steps from a call's arguments; None where it carries none."""
    for key, value in arguments(use.call).items():
        if not isinstance(value, list):
            continue
        rows: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        items = [by_plain_key(row) for row in rows[:200] if isinstance(row, dict)]
        if items and all(_words(item) and _state(item) is not None for item in items):
            kind = "plan" if "plan" in key or "step" in items[0] or "plan" in plain(use.call.name) else "todo"
            return tuple(
                OpenFact(clip(_words(item), TEXT), kind, _state(item) or "", use.entry) for item in items
            )
        if not rows and _TASK_TOOL.search(plain(use.call.name)) and ("todo" in key or "plan" in key):
            return ()
    return None


def _item_in(use: Use) -> OpenFact | None:
    """Read one numbered task from a call that creates or updates it: "#3 its subject", or "#3" alone."""
    if not _TASK_TOOL.search(plain(use.call.name)) or use.result is None or use.passed is False:
        return None
    args = arguments(use.call)
    number = next((str(args[key]) for key in _ID_KEYS if isinstance(args.get(key), str | int)), "")
    subject = next((value for key in ("subject", "title") if isinstance(value := args.get(key), str)), "")
    if not number and subject:
        match = re.search(r"#(\w{1,12})\b", use.result.text[:300])
        number = match.group(1) if match else ""
        if not number:
            return None
    state = _state(args)
    if 0 < len(number) <= 12 and (subject or state is not None):
        return OpenFact(clip(f"#{number} {subject}".strip(), TEXT), "todo", state or "pending", use.entry)
    return None


def _number(text: str) -> str:
    """Return the number that a task's text begins with, or ""."""
    match = re.match(r"#\w{1,12}(?= |\Z)", text)
    return match.group() if match else ""


def _updated(found: dict[str, OpenFact], item: OpenFact) -> None:
    """Bring one numbered task up to date."""
    number = _number(item.text)
    known = found.get(number)
    if known is not None and item.text == number:
        item = OpenFact(
            known.text, "todo", item.state, item.entry if item.entry == known.entry else known.entry
        )
    found[number] = item


def lists(calls: Sequence[Use]) -> tuple[OpenFact, ...]:
    """Return the newest state of each kind of list, done items included."""
    whole: dict[str, tuple[OpenFact, ...]] = {}
    single: dict[str, OpenFact] = {}
    for use in calls:
        listed = _list_in(use)
        if listed is not None:
            whole[plain(use.call.name)] = listed
            continue
        item = _item_in(use)
        if item is not None:
            _updated(single, item)
    return (*(fact for facts in whole.values() for fact in facts), *single.values())


def _checklist(entries: Sequence[Said]) -> Iterator[OpenFact]:
    """Yield the items of the assistant's newest markdown checklist."""
    for entry in reversed(entries):
        if entry.message.role == "assistant" and "[" in entry.message.text:
            items = _CHECKBOX.findall(entry.message.text[:50_000])
            if items:
                for mark, text in items:
                    yield OpenFact(
                        clip(text, TEXT),
                        "todo",
                        "completed" if mark in "xX" and mark else "pending",
                        entry.id,
                    )
                return


def _shown(use: Use) -> str:
    """Return a call in one line: its tool and what it was about."""
    what = command_in(use) or next((touch.path for touch in touches(use)), "")
    what = what or next((text for text in strings(arguments(use.call)) if text.strip()), "")
    return clip(f"{use.call.name}: {what}" if what else use.call.name, TEXT)


def _unanswered(calls: Sequence[Use], entries: Sequence[Said]) -> Iterator[OpenFact]:
    """Yield the calls that no result answers, but for those made again, or whose file was used since."""
    if all(use.result is not None for use in calls):
        return
    last = {_shown(use): index for index, use in enumerate(calls) if use.result is not None}
    touched = {touch.path: index for index, use in enumerate(calls) if use.result for touch in touches(use)}
    said_next = _SaidNext(entries)
    for index, use in enumerate(calls):
        again = (
            max((touched.get(touch.path, -1) for touch in touches(use)), default=-1)
            if use.result is None
            else -1
        )
        if use.result is None and max(again, last.get(_shown(use), -1)) < index:
            yield OpenFact(_shown(use), "call", "unanswered", use.entry, said_next.after(use))


class _SaidNext:
    """Finds what the user said next after a call."""

    def __init__(self, entries: Sequence[Said]) -> None:
        self._place = {entry.id: number for number, entry in enumerate(entries)}
        asked = [(self._place[entry.id], spans) for entry, spans in prompts(entries)]
        self._at, self._spans = [at for at, _ in asked], [spans for _, spans in asked]

    def after(self, use: Use) -> str:
        """Return the user's next words, clipped; "" where there are none."""
        behind = bisect_right(self._at, self._place.get(use.entry, len(self._place)))
        return clip(" ".join(self._spans[behind]), THEN) if behind < len(self._spans) else clip("", THEN)


def _next(entries: Sequence[Said]) -> Iterator[OpenFact]:
    """Yield what the last assistant message says comes next, and the last request if nobody answered it."""
    spoken = next(
        (entry for entry in reversed(entries) if entry.message.role == "assistant" and entry.message.text),
        None,
    )
    if spoken:
        said = sentences(spoken.message.text[-6000:])
        works = bool(spoken.message.calls)  # what is announced beside a call is what the call does
        found = [
            one
            for one in said
            if _NEXT.search(one) and not _NO_STEP.search(one) and not (works and announces(one))
        ]
        for sentence in found[:5]:
            yield OpenFact(clip(sentence, TEXT), "next", "", spoken.id)
    asked = None
    for asked in prompts(entries):  # noqa: B007  the last one is what is wanted
        pass
    if asked and not _answered(entries, asked[0]):
        by = f"{asked[0].message.name}: " if asked[0].message.name else ""
        yield OpenFact(clip(by + "\n".join(asked[1]), REQUEST), "next", "asked", asked[0].id)


def _answered(entries: Sequence[Said], request: Said) -> bool:
    """Whether the last message behind a request is the assistant's, and ends its work on it."""
    for entry in reversed(entries):
        if entry.id == request.id:
            return False
        if entry.message.role == "assistant":
            return bool(entry.message.text.strip()) and finishes(entry.message)
        if entry.message.results:
            return False
    return False


def collect(entries: Sequence[Said], calls: Sequence[Use]) -> tuple[OpenFact, ...]:
    """Take the open work from the calls and messages; done items of a list stay, with their state."""
    answered = _answered_after(entries)
    listed = (
        fact for fact in (*lists(calls), *_checklist(entries)) if holds(fact, answered.get(fact.entry, 0))
    )
    return tuple(dict.fromkeys((*listed, *_unanswered(calls, entries), *_next(entries))))


def holds(fact: OpenFact, answered: int) -> bool:
    """Whether an item of a list still says what is to be done, so many requests having been answered since.

    A plan and what was begun go with the request that they were for; other items last for one more.
    """
    if fact.kind not in ("todo", "plan") or is_done(fact):
        return True
    return answered < (1 if fact.kind == "plan" or fact.state not in _WAITING else OUTLIVED)


def _answered_after(entries: Sequence[Said]) -> dict[str, int]:
    """Map each entry to the number of requests behind it that were answered."""
    asked = {entry.id for entry, spans in prompts(entries) if not is_bare("\n".join(spans))}
    found: dict[str, int] = {}
    count, answered = 0, False
    for entry in reversed(entries):
        found[entry.id] = count
        message = entry.message
        if message.role == "assistant" and message.text.strip() and finishes(message):
            answered = True
        if entry.id in asked and answered:
            count, answered = count + 1, False
    return found


def stopped(facts: Sequence[OpenFact]) -> frozenset[str]:
    """Return the entries of the calls that were never answered because the user said something instead."""
    return frozenset(fact.entry for fact in facts if fact.kind == "call" and fact.then)


def merge(old: Sequence[OpenFact], new: Sequence[OpenFact], answered: int = 0) -> tuple[OpenFact, ...]:
    """Merge two ranges: the newer list of a kind replaces the older, tasks are updated by number.

    `answered` is how many requests were answered in the newer range.
    """
    old = [fact for fact in old if holds(fact, answered)]
    if not old or not new:
        return tuple(old or new)
    numbered = {_number(fact.text): fact for fact in old if fact.kind == "todo" and _number(fact.text)}
    plans = {fact.kind for fact in new if fact.kind in ("todo", "plan") and not _number(fact.text)}
    kept = [
        fact
        for fact in old
        if fact.kind == "call"
        or (fact.kind in ("todo", "plan") and fact.kind not in plans and not _number(fact.text))
    ]
    for fact in new:
        if fact.kind == "todo" and _number(fact.text):
            _updated(numbered, fact)
    rest = [fact for fact in new if fact.kind != "todo" or not _number(fact.text)]
    merged = (*kept, *numbered.values(), *rest)
    return tuple(dict.fromkeys(merged))


def bound(facts: Sequence[OpenFact]) -> tuple[OpenFact, ...]:
    """Return the open work that are carried on to the next fold."""
    return tuple(facts[-CARRIED:])

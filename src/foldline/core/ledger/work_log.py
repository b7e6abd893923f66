"""The work log: each request in order, with what was changed and run for it and the words that closed it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

import msgspec

from foldline.core.ledger.facts import changes, commands, files
from foldline.core.ledger.facts.calls import Use
from foldline.core.ledger.facts.commands import Judged
from foldline.core.ledger.facts.edits import FileEdit
from foldline.core.ledger.facts.kinds import (
    CommandFact,
    DecisionFact,
    ErrorFact,
    Excerpt,
    FileFact,
    ReportFact,
    RequestFact,
    WorkFact,
)
from foldline.core.ledger.facts.reports import is_report
from foldline.core.ledger.facts.requests import goes_on
from foldline.core.ledger.text import names
from foldline.core.ledger.text.reasons import announces
from foldline.core.ledger.text.sentences import clip, sentences
from foldline.core.ledger.text.words import words
from foldline.core.log.entries import Said
from foldline.core.log.steps import finishes
from foldline.core.measure.media import media_of, named

CARRIED = 60  # items from fold to fold: the newest
ASKED = 500  # characters of a request
CLOSING = 1_200  # characters of the closing words
SENTENCE = 400  # characters of one of their sentences
SCANNED = 12_000  # characters of the closing message that are read
LAST_WORDS = 3  # newest messages of which one tells how the work ended
FILES = 30  # files of one item
GONE = ("modified", "deleted")  # what becomes of a file that is no longer what a check saw
MEDIA = 20  # images and documents of one item: the newest
FOUND = 3  # answers of tools that the provider ran, of one item: the newest
FOUND_SIZE = 160  # characters of one
RUNS = 5  # commands of one item: the newest

SAME = 0.75  # share of a sentence's words that a later one has too, from which it says nothing more
NEAR = 24  # later sentences that it is compared with

_WORD = re.compile(r"[^\W_]{3,}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
FINDINGS = 2  # sentences of one item that say what was wrong
_FINDING = re.compile(
    r"\bthe (?:real |actual |root |underlying )?(?:issue|problem|cause|bug|reason|culprit)\b[^.]{0,40}"
    r"\b(?:is|was)\b"
    r"|\broot cause\b|\bturns out\b|\bthe fix (?:is|was|adds|removes|makes)\b"
    r"|\b(?:fails?|failed|breaks?|broke|happens?|crashes) because\b|(?:问题|原因)(?:是|在于|出在)|原因は",
    re.IGNORECASE,
)
STOPS = frozenset(".!?:;,…。！？：；")
LEAD = 90  # characters of a line that introduces a list
LONG_LIST = 12  # items behind which it is looked for
PROSE = 0.75  # how much more a sentence tells than an item of a list
_LISTED = re.compile(r"^[ \t]*(?:[-*+•|]|\d{1,2}[.)])[ \t]+(\S.{0,40})", re.MULTILINE)
_EMPTY = re.compile(
    r"^\W*(?:let me|would you like|feel free|if you(?:'d| would)? (?:like|want|need)|happy to|great|"
    r"perfect|excellent|you're (?:absolutely )?right|sure|here(?:'s| is| are)|(?:in )?summary|"
    r"to summarize|no response requested|i'll|i will|now i|(?:now )?i (?:see|understand)|"
    r"(?:now )?the (?:problem|issue|fix|picture|cause) is (?:now )?(?:clear|simple|obvious))\b",
    re.IGNORECASE,
)
"""How a sentence begins that closes a message without telling anything."""


_HEAD = re.compile(r"^[ \t]*\|[^\n]*\|[ \t]*\n[ \t]*\|[ \t:|-]+\|[ \t]*$\n?", re.MULTILINE)
_ROW = re.compile(r"^[ \t]*\|(?![ \t:|-]+\|[ \t]*$)([^\n]*)\|[ \t]*$", re.MULTILINE)
"""The head of a table with the line below it, and a row."""
_TITLE = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|\*\*(?=[^*\n]{1,80}\*\*:?[ \t]*$))([^\n]*?):?(?:\*\*)?:?[ \t]*$", re.MULTILINE
)


class RequestSpan(msgspec.Struct, frozen=True):
    """The entries that belong to one request, or to none (`request`) at the beginning of a range."""

    request: RequestFact | None
    entries: tuple[Said, ...]


def spans(entries: Sequence[Said], requests: Sequence[RequestFact]) -> list[RequestSpan]:
    """Cut entries where a request stands; a word to go on belongs to the request before it."""
    asked = {fact.entry: fact for fact in requests}
    found: list[tuple[RequestFact | None, list[Said]]] = [(None, [])]
    for entry in entries:
        if entry.id in asked and not goes_on(asked[entry.id]):
            found.append((asked[entry.id], []))
        found[-1][1].append(entry)
    return [RequestSpan(request, tuple(inside)) for request, inside in found if inside]


def collect(
    entries: Sequence[Said],
    requests: Sequence[RequestFact],
    calls: Sequence[Use],
    outcomes: Sequence[Judged],
    *,
    gone: Iterable[str] = (),
    edits: Iterable[FileEdit] = (),
) -> tuple[WorkFact, ...]:
    """Take the work on each request, oldest first.

    `outcomes` is what is known of each call; `gone` are the openings of sentences that hold no more.
    """
    made_in: dict[str, list[int]] = {}
    for index, use in enumerate(calls):
        made_in.setdefault(use.entry, []).append(index)
    edited_in: dict[str, list[FileEdit]] = {}
    for edit in edits:
        edited_in.setdefault(edit.entry, []).append(edit)
    told = tuple(gone)
    found: list[WorkFact] = []
    for span in spans(entries, requests):
        indices = [index for entry in span.entries for index in made_in.get(entry.id, ())]
        made = [edit for entry in span.entries for edit in edited_in.get(entry.id, ())]
        of_span = [calls[index] for index in indices], [outcomes[index] for index in indices]
        fact = _work(span, *of_span, told, made)
        if found and not came(found[-1]) and found[-1].asked[:ASKED] == fact.asked[:ASKED]:
            found.pop()  # asked again, since nothing came of it
        if fact.asked or came(fact):
            found.append(fact)
    return tuple(found)


def came(fact: WorkFact) -> bool:
    """Whether anything came of a request."""
    return bool(fact.files or fact.ran or fact.closing or fact.media or fact.found)


def _work(
    span: RequestSpan,
    calls: Sequence[Use],
    outcomes: Sequence[Judged],
    gone: Sequence[str],
    edits: Sequence[FileEdit],
) -> WorkFact:
    how = changes.notes(edits)
    changed = tuple(_plain(fact, how) for fact in files.collect(calls) if fact.status != "read")[-FILES:]
    known = commands.collect(calls, outcomes, changed_in(calls, edits))
    ran = tuple(fact for fact in known if commands.tells(fact))[-RUNS:]
    last, said = _last_words(span, gone)
    said = tuple(dict.fromkeys((*findings(span, last, gone), *said)))
    request = span.request
    cited = (*(id_ for fact in ran for id_ in fact.entries), *((last.id,) if last else ()))
    of_files = (use.entry for use in calls if any(touch.status != "read" for touch in files.touches(use)))
    media = [(entry.id, named(one)) for entry in span.entries for one in media_of(entry.message)][-MEDIA:]
    return WorkFact(
        asked=request.told[: ASKED * 4] if request else "",
        entry=request.entry if request else "",
        question=request.question if request else "",
        files=changed,
        ran=ran,
        closing=said,
        answered=last is not None and finishes(last.message) and last is _newest(span),
        entries=tuple(dict.fromkeys((*of_files, *cited, *(entry for entry, _ in media)))),
        media=tuple(name for _, name in media),
        found=_found(span),
    )


def _found(span: RequestSpan) -> tuple[str, ...]:
    """Return how the newest answers of tools that the provider ran begin, each behind its tool's name.

    No later call can read them again: they stand in nothing but blocks that only the provider reads.
    """
    names_of = {call.id: call.name for entry in span.entries for call in entry.message.calls}
    told = (
        f"{names_of.get(result.call_id, '')}: {result.text}".removeprefix(": ")
        for entry in span.entries
        for result in entry.message.results
        if result.served and result.text.strip()
    )
    return tuple(clip(" ".join(text.split()), FOUND_SIZE) for text in tuple(told)[-FOUND:])


def changed_in(calls: Sequence[Use], edits: Iterable[FileEdit]) -> set[str]:
    """Return the entries in which calls changed files."""
    by_shell = (use.entry for use in calls if any(touch.status in GONE for touch in files.touches(use)))
    return {*(edit.entry for edit in edits if not edit.shown), *by_shell}


def _last_words(span: RequestSpan, gone: Sequence[str]) -> tuple[Said | None, tuple[str, ...]]:
    """Return the newest message of the assistant's that tells something, and what it tells.

    Where none of the newest does, it is the last one.
    """
    spoken = [entry for entry in reversed(span.entries) if _speaks(entry)][:LAST_WORDS]
    for entry in spoken:
        if said := closing_words(entry.message.text, gone):
            return entry, said
    return (spoken[0] if spoken else None), ()


def _plain(fact: FileFact, how: Mapping[str, str]) -> FileFact:
    """Return a file with what became of it, and how it was changed, alone."""
    note = how.get(names.path_key(fact.path), "") if fact.status != "deleted" else ""
    return FileFact(fact.path, fact.status, notes=(note,) if note else ())


def _newest(span: RequestSpan) -> Said | None:
    """Return the assistant's last message."""
    return next((entry for entry in reversed(span.entries) if entry.message.role == "assistant"), None)


def _speaks(entry: Said) -> bool:
    return entry.message.role == "assistant" and bool(entry.message.text.strip()) and bool(entry.id)


def closing_words(text: str, gone: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the sentences of a closing message that tell most, in their order, whole.

    What reports, decides or names something comes first in line; offers and announcements are left out. The
    last question stays: it is what the next request answers.
    """
    shown = _ROW.sub(_in_words, _HEAD.sub("", _TITLE.sub(r"\1:", text[:SCANNED])))
    listed = {match[1].replace("**", "")[:24] for match in _LISTED.finditer(shown)}
    told = [sentence.replace("**", "") for sentence in sentences(shown)]
    worths = [
        _worth(sentence, at == 0, at == len(told) - 1, gone) + PROSE * (sentence[:24] not in listed)
        for at, sentence in enumerate(told)
    ]
    left = CLOSING
    chosen: list[int] = []
    for at in sorted(range(len(told)), key=lambda at: (-worths[at], at)):
        size = min(len(told[at]), SENTENCE) + 1
        if worths[at] > PROSE and size <= left:
            chosen.append(at)
            left -= size
    return tuple(dict.fromkeys(_with_leads(told, sorted(chosen), listed)))


def findings(span: RequestSpan, last: Said | None, gone: Sequence[str] = ()) -> list[str]:
    """Return the newest sentences before the closing message that say what was wrong, or why."""
    found: list[str] = []
    for entry in reversed(span.entries):
        if entry is last or not _speaks(entry):
            continue
        told = [text.replace("**", "") for text in sentences(entry.message.text[:SCANNED])]
        hits = [text for text in told if _FINDING.search(text) and _worth(text, False, False, gone) > 0]
        found[:0] = [
            clip(text, SENTENCE) for text in hits if text[-1] not in "?？:：" and not announces(text)
        ]
        if len(found) >= FINDINGS:
            break
    return found[-FINDINGS:]


def _in_words(row: re.Match[str]) -> str:
    """Write a row of a table as an item of a list: its first cell, then the others."""
    first, *rest = (cell.strip() for cell in row[1].split("|"))
    others = ", ".join(filter(None, rest))
    return f"- {first}: {others}" if others else f"- {first}"


def _with_leads(told: Sequence[str], chosen: Iterable[int], listed: AbstractSet[str]) -> list[str]:
    """Return the chosen sentences, those of one list together, behind the line that introduces the list."""
    found: list[str] = []
    known: str | None = None  # the lead of the list that was told last
    for at in chosen:
        text = told[at]
        lead = _lead_of(told, at, listed) if text[:24] in listed else None
        if lead is not None and lead == known and len(found[-1]) + len(text) + 2 <= SENTENCE:
            found[-1] += f"{'' if found[-1][-1:] in STOPS else ';'} {text}"
        else:
            new = bool(lead) and not _EMPTY.match(lead or "")
            found.append(clip(f"{lead} {text}" if new else text, SENTENCE))
        known = lead
    return found


def _lead_of(told: Sequence[str], at: int, listed: AbstractSet[str]) -> str:
    """Return the line that introduces the list in which an item stands, "" where there is none."""
    for sentence in reversed(told[max(0, at - LONG_LIST) : at]):
        if sentence[-1] in ":：":
            return sentence if len(sentence) <= LEAD else ""
        if sentence[:24] not in listed:
            return ""
    return ""


def _worth(sentence: str, first: bool, last: bool, gone: Sequence[str]) -> float:
    """Say how much a sentence tells, 0 for nothing."""
    if len(sentence) < 8 or sentence[-1] in ":：" or any(opening in sentence for opening in gone):
        return 0.0
    if sentence[-1] in "?？":
        return 1.5 if last else 0.0
    if (_EMPTY.match(sentence) or len(words(sentence)) < 2) and not names.find(sentence):
        return 0.0
    named = min(2.0, 0.5 * len(names.find(sentence)))
    return 1.0 + first + 2.0 * is_report(sentence) + named


Told = TypeVar("Told", ReportFact, DecisionFact, Excerpt)
Cited = TypeVar("Cited", CommandFact, ErrorFact)


def in_work(facts: Iterable[Told], part_of: Mapping[str, str]) -> tuple[Told, ...]:
    """Return the facts, each with the key of the work that it is part of."""
    return tuple(
        msgspec.structs.replace(fact, work=part_of[fact.entry]) if part_of.get(fact.entry) else fact
        for fact in facts
    )


def last_in_work(facts: Iterable[Cited], part_of: Mapping[str, str]) -> tuple[Cited, ...]:
    """Return the facts, each with the key of the work that it was met in last."""
    return tuple(
        msgspec.structs.replace(fact, work=next(filter(None, map(part_of.get, reversed(fact.entries))), ""))
        for fact in facts
    )


def told_once(excerpts: Sequence[Excerpt]) -> tuple[Excerpt, ...]:
    """Leave out a sentence of the assistant's that says what a later one says again for the same request."""
    later: dict[str, list[frozenset[str]]] = {}
    kept: list[Excerpt] = []
    for excerpt in reversed(excerpts):
        if excerpt.kind == "said":
            mine = frozenset(_WORD.findall(excerpt.text.lower()))
            others = later.setdefault(excerpt.work, [])
            if any(len(mine & other) >= SAME * len(mine) for other in others[-NEAR:]):
                continue
            others.append(mine)
        kept.append(excerpt)
    return tuple(reversed(kept))


def keys(entries: Sequence[Said], requests: Sequence[RequestFact]) -> dict[str, str]:
    """Map the entries to the key of the work that they are part of."""
    return {
        entry.id: span.request.entry if span.request else ""
        for span in spans(entries, requests)
        for entry in span.entries
    }


def merge(old: Sequence[WorkFact], new: Sequence[WorkFact]) -> tuple[WorkFact, ...]:
    """Join the work of two ranges; what begins in the middle of a request goes on with the last one."""
    if not old or not new:
        return tuple(old or new)
    return after(sum(fact.before for fact in old), _merged(old, new))


def after(before: int, facts: Sequence[WorkFact]) -> tuple[WorkFact, ...]:
    """Return facts that stand behind `before` earlier requests, those that they count themselves included."""
    missing = before - sum(fact.before for fact in facts)
    if not facts or missing <= 0:
        return tuple(facts)
    return (msgspec.structs.replace(facts[0], before=facts[0].before + missing), *facts[1:])


def _merged(old: Sequence[WorkFact], new: Sequence[WorkFact]) -> tuple[WorkFact, ...]:
    known = {fact.key: fact for fact in old if fact.key}
    first, *rest = new
    if first.key:
        return tuple({**known, **{fact.key: fact for fact in new}}.values())
    joined = _joined(old[-1], first)
    return tuple(
        {**{fact.key: fact for fact in (*old[:-1], joined)}, **{fact.key: fact for fact in rest}}.values()
    )


def _joined(begun: WorkFact, later: WorkFact) -> WorkFact:
    """Join two parts of the work on one request, `later` without its words."""
    if set(later.entries) <= set(begun.entries):
        return begun
    return msgspec.structs.replace(
        begun,
        files=files.merge(begun.files, later.files)[-FILES:],
        ran=commands.merge(begun.ran, later.ran, changed=bool(later.files))[-RUNS:],
        closing=later.closing or begun.closing,
        media=(*begun.media, *later.media)[-MEDIA:],
        found=(*begun.found, *later.found)[-FOUND:],
        answered=later.answered,
        entries=tuple(dict.fromkeys((*begun.entries, *later.entries))),
    )


def bound(facts: Sequence[WorkFact]) -> tuple[WorkFact, ...]:
    """Return the work that is carried on to the next fold; what is not carried is counted."""
    gone = facts[:-CARRIED]
    asked = sum(1 for fact in gone if fact.asked)
    return after(asked + sum(fact.before for fact in facts), facts[-CARRIED:])

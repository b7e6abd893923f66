"""What the assistant reported as done, and the state that it said things were in, in its own words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

from foldline.core.ledger.facts.calls import Use, arguments, strings
from foldline.core.ledger.facts.kinds import ReportFact
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip, sentences, word_set
from foldline.core.log.entries import Said

CARRIED = 60  # reports from fold to fold: the newest
LONGEST = 300
MOST = 200  # reports of one range, the newest
SAME = 0.6  # share of common words, numbers left out, from which a later report says the state anew

# The patterns are for lower-case text: to match without regard to case takes twice as long.
_STATE = (
    r"(?:done|fixed|green|complete[d]?|finished|in place|on hold|live|ready|merged|committed|pushed|deployed|"
    r"saved|scheduled|booked|updated|untouched|up to date|gone|clean|working|resolved|passing|installed|"
    r"(?:re|un)?(?:added|removed|created|deleted|renamed|replaced|moved|closed|cancelled|credited|confirmed|"
    r"approved|booked|wired|"
    r"implemented|reverted|restored|applied|migrated|published|shipped|covered|refused|started|stopped)|"
    r"sent|written|running)"
)
_REPORT = re.compile(
    r"^\W*(?:(?:done|fixed|saved|committed|green|added|created|updated|removed|implemented|renamed|merged|"
    r"pushed|deployed|"
    r"replaced|moved|wrote|refactored|cleaned|finished|completed|deleted|installed|reverted|resolved|sent|"
    r"booked|"
    r"scheduled|filed|all (?:green|done|set)|everything (?:is|works|passes|keeps|builds)|settled|success|"
    r"fertig|erledigt|behoben|gespeichert|feito|pronto|listo|hecho|готово)\b|c'est fait|terminé|corrigé)"
    rf"|\b(?:(?:is|are|it's|that's|everything's) (?:now |all |both |also |already )*{_STATE}\b(?! by\b)|"
    rf"(?:has|have|had) (?:now |all |also )*been {_STATE}"
    rf"|(?:was|were) (?:now |all |also )*{_STATE}\b|(?:is|are) (?:now|all|both|already) \w{{3,}}ed\b|(?:is|"
    rf"are) \w{{3,}}ed\b[^.]{{0,40}}\bnow\b"
    r"|(?:all|both|every|\d+(?: of \d+)?|six|five|four|three|two)\b[^.,;]{0,40}\b(?:pass(?:es|ed)?|"
    r"succeed(?:ed|s)?|work(?:s|ed)?)\b"
    r"|i(?:'ve| have)(?: now| also| already)? \w+(?:ed|t|n|de)\b|i (?:have )?(?:also |now )?(?:added|"
    r"changed|fixed|moved|"
    r"created|updated|removed|replaced|renamed|wrote|implemented|committed|made|split|merged|saved|sent|"
    r"filed|set)\b"
    r"|no longer\b|now (?:works?|passes|returns?|uses?|supports?|creates?|shows?|has|have|says?|handles?|"
    r"includes?|keeps?|reads?)\b"
    r"|(?:works|passes|is fixed|are fixed|builds cleanly|keeps? the rule) now\b|(?:is|are) [\w.,-]+ now\b"
    r"|(?:is|are) [a-z]{2,}-\d[\w-]*\b"
    r"|habe ich\b.{1,80}\b(?:ge\w+(?:t|en)|\w+iert)\b|(?:ist|sind) jetzt\b"
    r"|j'ai \w+é\b|est maintenant\b|he \w+(?:ado|ido)\b|ya está\b)"
    r"|已经?(?:完成|修复|添加|更新|创建|删除|提交)|(?:修复|完成|通过)了|しました|完了|했습니다|완료",
)
_NOT_A_REPORT = re.compile(
    r"[?？:：]\W*$|^\W*(?:here(?:'s| is| are)?|line|why|ok so|good|great|yes|no|i'm|we're|the (?:todo )?list|"
    r"an?|from|there|now|next|first|then|let me|let's|before|if|when|once|should|could|maybe|perhaps|"
    r"because|since|while|"
    r"so,? |but|found|i see|i think|looks like|it seems|to |for |still)\b|\b(?:i'll|i will|i'm going|we'll|"
    r"will be|would be|should be|"
    r"can pass|deferred|restricted|could be|must be|may be|might|to be|let me|need(?:s|ed)? to|want(?:s|ed)"
    r"? to|not yet|still (?:open|fail|need|miss)|"
    r"is not|isn't|are not|aren't|wasn't|supposed|expected to|going to|has to|have to|unless|whether)\b",
)
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.{2,80})$")
_BOLD = re.compile(r"^\s*(?:[-*]\s+)?\*\*([^*]{2,60}?)(:?\*\*:?)\s*(.*)$")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s|^\s{2,}\S")
_PROBLEM = re.compile(
    r"^(?!.*\b(?:fix(?:e[sd])?|resolved|solved|addressed|done|removed|closed|no|gone|summary)\b)"
    r"(?=.*\b(?:impact|problems?|issues?|bugs?|causes?|symptoms?|risks?|observed|findings?)\b)"
)
_UNDO = word_set("release lift cancel undo revert remove delete unset reopen rollback unhold disable")
_SMALL = word_set("the and are was were has have now all with for that this its been also both you your")
_ID = re.compile(r"\d{5,}|\b[0-9a-f]{7,}\b")
_COUNT = re.compile(r"(?i)^(?=.{0,70}$).*\b(?:pass|passes|passed|green)\b|\bgreen: \d+")
_WORD = re.compile(r"[A-Za-zÀ-ÿ_][\w./-]*\w|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2}")


@lru_cache(maxsize=8_192)
def is_report(sentence: str) -> bool:
    """Whether a sentence of the assistant's reports something as done, or the state that things are in."""
    if not 8 <= len(sentence) <= LONGEST or sentence.startswith(("|", "#", ">")):
        return False
    lowered = sentence.replace("’", "'").lower()
    return not _NOT_A_REPORT.search(lowered) and bool(_REPORT.search(lowered))


def collect(
    entries: Sequence[Said], calls: Sequence[Use], replaced: AbstractSet[str] = frozenset()
) -> tuple[ReportFact, ...]:
    """Take the reports from what the assistant said after results, the newest state of each thing.

    One that names a value which edits `replaced` is left out.
    """
    gone = frozenset(taken_back(entries, calls))
    found = (fact for fact in _said(entries) if fact not in gone)
    return newest([fact for fact in found if not names.mentions(fact.text, replaced)])[-MOST:]


def taken_back(entries: Sequence[Said], calls: Sequence[Use]) -> Iterator[ReportFact]:
    """Yield the reports of states that a later call took back."""
    undone = list(_undone(calls))
    place = {entry.id: number for number, entry in enumerate(entries)}
    for fact in _said(entries) if undone else ():
        later = (call for call in undone if place.get(call[0], -1) >= place[fact.entry])
        if any(_turns(fact, words, ids) for _, words, ids in later):
            yield fact


def _said(entries: Sequence[Said]) -> Iterator[ReportFact]:
    """Yield the reports in messages that follow a result."""
    worked = False
    for entry in entries:
        message = entry.message
        if message.results:
            worked = True
        elif message.is_prompt:
            worked = False
        if message.role == "assistant" and worked and message.text:
            for sentence in sentences(_beside_problems(message.text[:20_000])):
                if is_report(sentence):
                    yield ReportFact(clip(sentence.replace("**", ""), LONGEST), entry.id)


def _beside_problems(text: str) -> str:
    """Return a text without what stands under titles such as Impact: the state of a problem is not done work.

    A heading's stretch ends at the next title, that of a bold line at the first paragraph that is no list.
    """
    kept: list[str] = []
    under = ""  # the kind of title that is left out
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        heading = None if fenced else _HEADING.match(line)
        bold = None if fenced or heading else _BOLD.match(line)
        if heading:
            under = "heading" if _PROBLEM.match(heading[1].lower()) else ""
        elif bold and (":" in bold[2] or not bold[3]):
            problem = bool(_PROBLEM.match(bold[1].lower()))
            if problem and bold[3]:
                continue
            under = "bold" if problem else ""
        elif under == "bold" and line.strip() and not _ITEM.match(line):
            under = ""
        if not under:
            kept.append(line)
    return "\n".join(kept)


def _undone(calls: Sequence[Use]) -> Iterator[tuple[str, frozenset[str], tuple[str, ...]]]:
    """Yield (entry, what, ids) of calls whose name says that they take something back: `release_hold`."""
    for use in calls:
        words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+", use.call.name)]
        if use.result is not None and use.passed is not False and _UNDO & set(words):
            what = frozenset(word for word in words if word not in _UNDO)
            ids = tuple(key for text in strings(arguments(use.call)) for key in _ID.findall(text[:2_000]))
            yield use.entry, what, ids


def _turns(fact: ReportFact, what: frozenset[str], ids: Sequence[str]) -> bool:
    """Whether a call that takes something back is about what was reported."""
    return bool(what) and what <= _content(fact.text) and any(key in fact.text for key in ids)


def _content(text: str) -> frozenset[str]:
    """Return the words of a report that say what it is about: no numbers, no function words."""
    if _COUNT.search(text):
        return frozenset(("tests", "pass"))
    return frozenset(
        word for word in map(str.lower, _WORD.findall(text)) if len(word) > 2 and word not in _SMALL
    )


def newest(facts: Sequence[ReportFact]) -> tuple[ReportFact, ...]:
    """Keep of reports that say the same thing, numbers aside, the newest alone."""
    kept: list[ReportFact] = []
    seen: list[frozenset[str]] = []
    for fact in reversed(facts):
        mine = _content(fact.text)
        if any(
            mine == other or len(mine & other) >= SAME * max(1, len(mine | other)) for other in seen[-60:]
        ):
            continue
        kept.append(fact)
        seen.append(mine)
    return tuple(reversed(kept))


def merge(old: Sequence[ReportFact], new: Sequence[ReportFact]) -> tuple[ReportFact, ...]:
    """Merge the reports of two ranges, the newest state of each thing."""
    return newest(tuple(dict.fromkeys((*old, *new))))[-MOST:]


def bound(facts: Sequence[ReportFact]) -> tuple[ReportFact, ...]:
    """Return the reports that are carried on to the next fold."""
    return tuple(facts[-CARRIED:])

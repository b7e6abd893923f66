"""Choices that were made, in the words they were made in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from foldline.core.ledger.facts import requests
from foldline.core.ledger.facts.kinds import DecisionFact, RequestFact
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import sentences, word_set
from foldline.core.log.entries import Said

CARRIED = 60  # choices from fold to fold: the newest
LONGEST = 400
_SCANNED = 30_000
"""Characters of one message in which decisions are looked for."""

# These two are for lower-case text: to match without regard to case takes twice as long.
_WHO = (
    r"(?:team|user|client|customer|boss|manager|lead|board|group|committee|company|majority|everyone|everybody|"
    r"product owner|stakeholders|maintainers|architects|they|he|she|i|we)"
)
_OPTION = (
    r"(?:the |an? )?(?:option|alternative|variant|approach|plan|design|proposal|first|second|third|last|"
    r"latter|former)\b"
)
_DECIDES = (
    rf"{_WHO}(?:'ve| have| has| had)?(?: all| also| finally| both)? (?:chose|voted (?:for|to)|opted|"
    rf"agreed (?:on|to)|went (?:for|with)|(?:picked|selected) {_OPTION})"
    rf"|(?:i|we)(?:'ll| will)? (?:choose|pick|take) {_OPTION}"
)
_CHOICE = re.compile(
    rf"\b(?:{_DECIDES}|"
    r"decided|we(?:'ve| have)? chose|i(?:'ve| have)? chose|chosen|opted (?:for|to)|settled on|"
    r"going with|go with|went with|sticking with|stick with|let's (?:use|keep|stick|switch|drop|avoid)|"
    r"(?:we'll|we will|i'll|i will|we should|we're going to) (?:use|keep|switch to|stay with|drop|avoid|"
    r"store|skip|leave)|"
    r"the (?:fix|solution) (?:is|was) \w+ing\b|"
    r"will use|instead of|rather than|switch(?:ed|ing)? (?:from .{1,60} )?to|replac(?:e|ed|ing) .{1,60} with|"
    r"the (?:plan|approach|decision|design) is|prefer(?:red)? .{1,60} over|no longer (?:use|need)|"
    r"entschieden|statt|stattdessen|wir (?:nehmen|verwenden|bleiben)|décidé|au lieu de|plutôt que|"
    r"decidí|decidimos|en lugar de|usaremos)\b|决定|改用|而不是|采用|选择|ことにし|代わりに|결정",
)
_WEAK = re.compile(
    r"\b(?:instead of|rather than|replac(?:e|ed|ing)|switch(?:ed|ing)?|will use|go with)\b", re.IGNORECASE
)
_ACTOR = re.compile(
    r"\b(?:(?:we|I)(?:['’](?:ll|ve|d))?|let['’]s|now uses?|(?:should|must|please) use|decision|approach|"
    r"the fix)\b|^\W*(?:use|switch|replace|keep)\b",
    re.IGNORECASE,
)
_TICKED = re.compile(r"`[^`]*`")
_NOT_A_CHOICE = re.compile(
    r"\b(?:as (?:decided|discussed|agreed|planned|before)|for now|(?:skill|subagent|todowrite|the \w+ "
    r"(?:tool|agent))|i wonder|or should|"
    r"would you (?:like|prefer)|(?:if|when|whenever|whether|once|unless|until|what|which|how|why) "
    rf"(?:the |a |an |our )?(?:{_DECIDES}))\b|[?:]\W*$|"
    r"^\W*(?:i['’]m \w+ing\b|i(?:['’]ll| will) (?:now|then|also|next|first)\b|"
    r"(?:now|let me|first|next)\b|(?:should (?:i|we)|do you|would you|if you|could|"
    r"maybe|perhaps|option \w)\b|"
    r"(?:\d+[:→]|[+>|]))",
)
_ANSWER = re.compile(
    r"(?:^|[:;,.!–—]\s+)(?:(?:so|then|and|but|yes|yeah|no|ok|okay|please|well|just|right)\b,? )*(?:put|use|"
    r"take|go (?:with|for)|pick|"
    r"keep|leave|make (?:it|them)|scratch|scrap|drop|skip|forget|no (?!need|idea|problem|work|worries|one\b)"
    r"\w+|don['’]t|do not|let['’]s|"
    r"raise|lower|set|stay|stick|store|call it|switch|I (?:want|prefer|stay|choose|take|['’]d)|I['’]d|"
    r"option|only|both|"
    r"(?:one|two|three) is|nimm|lass|wir nehmen|kein|prends|usa|choose|the (?:first|second|last) one)\b|"
    r"^(?:用|选|不要|改)",
    re.IGNORECASE,
)
"""How a sentence begins that answers a question by a choice."""
_LISTED = re.compile(
    r"^[^\n]*\bdecisions?\W*:\W*\n((?:[ \t]*(?:[-*+•]|\d{1,2}[.)])[^\n]+\n?)+)", re.IGNORECASE | re.MULTILINE
)
_SCRAPPED = re.compile(
    r"\b(?:scratch|scrap|forget|drop|get rid of|instead of|no longer use|rather than)\s+(?:the |using |"
    r"about )*([\w.-]{3,40})",
    re.IGNORECASE,
)
_SETS = re.compile(
    r"\b(?:raise|lower|set|change|increase|reduce|bump|make)\s+(?:the |our )?(?:[\w-]+ )"
    r"{0,2}?([A-Za-z][\w-]{2,30}) to \S*\d|"
    r"\bI(?:['’]ll| will)? stay with (?:the )?(\w+)",
    re.IGNORECASE,
)
"""A thing that is given a number, or kept as it is: an older sentence that gives it another is settled."""
_SCRAPS = re.compile(
    r"\W*(?:(?:so|then|ok|okay|please|and)\b,? )*(?:scratch|scrap|forget about) \w.{0,80}\Z", re.IGNORECASE
)
PLAN = 1_500  # characters of a request from which it is a plan
ANSWERS = 6  # sentences of one answer that can be choices
_WORD = re.compile(r"[A-Za-zÀ-ÿ_][\w.-]{2,}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,4}")
_COMMON = word_set(
    "the and for use uses using used with will instead rather than over into from that this have has had "
    "not now "
    "let lets keep going switch switched switching decided decide chose chosen choose because since are was "
    "were "
    "should would can could all our your their its it's i'll we'll we've i've actually also just one new old"
)


def subject_of(text: str) -> frozenset[str]:
    """Return the content words of a choice."""
    return frozenset(
        word for word in (found.lower().strip(".-") for found in _WORD.findall(text)) if word not in _COMMON
    )


def is_choice(sentence: str) -> bool:
    """Whether a sentence states a choice that was made."""
    lowered = sentence.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    if not (12 if sentence.isascii() else 5) <= len(sentence) <= LONGEST or _NOT_A_CHOICE.search(lowered):
        return False
    found = _CHOICE.search(lowered)
    return bool(found) and (
        not _WEAK.fullmatch(found.group()) or bool(_ACTOR.search(_TICKED.sub("", sentence)))
    )


def collect(entries: Sequence[Said], replaced: AbstractSet[str] = frozenset()) -> tuple[DecisionFact, ...]:
    """Take the choices from what the assistant and the user said; a later one replaces what it reverses.

    One that names a value which edits `replaced` is left out.
    """
    return settled(made(entries), replaced)


def made(entries: Sequence[Said]) -> tuple[DecisionFact, ...]:
    """Take all choices, those that were reversed later included."""
    asked = {fact.entry: fact for fact in requests.collect(entries)}
    found: list[DecisionFact] = []
    for entry in entries:
        request = asked.get(entry.id)
        if request is not None:
            found.extend(by_user(request))
        elif entry.message.role == "assistant" and _CHOICE.search(entry.message.text[:_SCANNED].lower()):
            text = entry.message.text[:_SCANNED]
            found.extend(DecisionFact(said, entry.id) for said in sentences(text) if is_choice(said))
    return tuple(found)


def by_user(request: RequestFact) -> Iterator[DecisionFact]:
    """Yield the choices of the user's: listed as such, made in answer to a question, or in so many words."""
    text = request.text[:_SCANNED]
    plan = len(text) > PLAN  # its sentences say what is to be done: the work log says what was
    listed = {said for match in _LISTED.finditer(text) for said in sentences(match.group(1))}
    for number, said in enumerate(sentences(text)):
        answer = bool(request.question) and number < ANSWERS and len(said) <= LONGEST
        answer = (
            answer
            and bool(_ANSWER.search(said))
            and not _NOT_A_CHOICE.search(said.lower())
            and len(subject_of(said)) > 1
        )
        sets = (
            len(said) <= LONGEST
            and not said.endswith("?")
            and bool(_SETS.search(said) or _SCRAPS.match(said))
        )
        if said in listed or answer or sets or (is_choice(said) and not plan):
            yield DecisionFact(said, request.entry, user=True)


def settled(
    facts: Sequence[DecisionFact], replaced: AbstractSet[str] = frozenset()
) -> tuple[DecisionFact, ...]:
    """Drop each choice that a later one repeats or reverses: most of its content words come again.

    One that names a value which edits `replaced` is dropped before.
    """
    found = _Settling([fact for fact in facts if not names.mentions(fact.text, replaced)])
    return tuple(fact for index, fact in enumerate(found.facts) if index not in found.dropped)


def turned(facts: Sequence[DecisionFact]) -> tuple[DecisionFact, ...]:
    """Return the choices that a later one takes back: what it scraps, or gives another number."""
    found = _Settling(facts)
    return tuple(found.facts[index] for index in sorted(found.turned))


class _Settling:
    """The choices in order, which of them no longer hold, and which of these were taken back in words."""

    def __init__(self, facts: Sequence[DecisionFact]) -> None:
        self.facts: list[DecisionFact] = []
        self.dropped: set[int] = set()
        self.turned: set[int] = set()
        self._words: list[frozenset[str]] = []
        self._by_word: dict[str, set[int]] = {}
        for fact in dict.fromkeys(facts):
            self._take_back(fact.text)
            self._repeat(subject_of(fact.text))
            for word in self._words[-1]:
                self._by_word.setdefault(word, set()).add(len(self.facts))
            self.facts.append(fact)

    def _take_back(self, text: str) -> None:
        """Drop what a sentence scraps, or gives another number."""
        for scrapped in _SCRAPPED.findall(text):
            self.turned |= self._by_word.get(scrapped.lower().strip(".-"), set())
        for thing in ("".join(groups).lower() for groups in _SETS.findall(text)):
            for index in self._by_word.get(thing, set()):
                if re.search(r"\d", self.facts[index].text):
                    self.turned.add(index)
        self.dropped |= self.turned

    def _repeat(self, own: frozenset[str]) -> None:
        """Drop what has most of its content words in common with a newer choice."""
        shared = Counter(index for word in own for index in self._by_word.get(word, ()))
        for index, count in shared.items():
            theirs = self._words[index]
            if index not in self.dropped and count >= 2 and count >= 0.7 * min(len(theirs), len(own)):
                self.dropped.add(index)
                for word in theirs:
                    self._by_word[word].discard(index)
        self._words.append(own)


def merge(old: Sequence[DecisionFact], new: Sequence[DecisionFact]) -> tuple[DecisionFact, ...]:
    """Merge the choices of two ranges, `new` following `old`."""
    return settled((*old, *new))


def bound(facts: Sequence[DecisionFact]) -> tuple[DecisionFact, ...]:
    """Return the choices that are carried on to the next fold."""
    return tuple(facts[-CARRIED:])

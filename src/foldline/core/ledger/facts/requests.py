"""What the user asked, word for word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from foldline.core.ledger.facts.kinds import RequestFact
from foldline.core.ledger.text.origin import prompts
from foldline.core.ledger.text.pasted import typed
from foldline.core.ledger.text.sentences import clip, sentences
from foldline.core.log.entries import Said

CARRIED = 20  # requests from fold to fold: the newest, beside the first
REST = 60  # characters of a request below which it is told where the rest of it stands
SHORT_ANSWER = 60  # characters of a request that is shown with the question that it answers
QUESTION = 240  # characters of the assistant's question that an answer is kept with

_BARE = re.compile(
    r"\W*(?:(?:continue|yes|y|yep|yeah|yup|ok(?:ay)?|k|go|go on|go ahead|proceed|resume|sure|thanks?|thank "
    r"you|"
    r"please|do it|do that|please do|go for it|sounds good|looks good|that'?s fine|works for me|agreed|"
    r"correct|run it|yo|ls|are you sure|no|nope|n|next|good|great|perfect|nice|cool|lgtm|hi|hello|hey|test|"
    r"ping|exit|quit|"
    r"ja|nein|weiter|danke|bitte|gut|oui|non|merci|continuez?|vas-y|s[ií]|gracias|sigue|contin[uú]a|sim|não|"
    r"继续|好的?|是的?|可以|对|続けて|はい|네|계속|да|нет|продолжай|[\d.])(?!\w)[\s,.!?。！？]*){1,6}\Z",
    re.IGNORECASE,
)
LONGEST_WORD = 40  # characters of a word to go on
_GO_ON = re.compile(
    r"\W*(?:please )?(?:continue|go on|go ahead|proceed|resume|keep going|carry on|next|weiter|continuez?|"
    r"continúa|sigue|继续|続けて|계속|продолжай)\W*(?:please)?\W*\Z",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"\s*(?:/[a-z][\w:-]*(?:\s+[\w.:-]{1,24})?|<([\w-]+)>[^<]*</\1>"
    r"|(?:<(image|file|attachment)\b[^<>]*(?:/>|>\s*</\2>)\s*){1,20})\s*\Z",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"\W*(?:(?:very |that'?s |all )?(?:thanks?|thank you|great|good|perfect|nice|lovely|super|cool|ok(?:ay)"
    r"?|right|excellent|"
    r"awesome|everything else as \w+|hi|hello|hey|sorry|wow|danke|merci|gracias|谢谢|好的)\b|go ahead\b)"
    r"[^\d`/?]{0,70}\Z",
    re.IGNORECASE,
)


def collect(entries: Sequence[Said]) -> tuple[RequestFact, ...]:
    """Take the user's own words from the messages that a person wrote."""
    asked = _questions(entries)
    return tuple(
        RequestFact("\n".join(spans), entry.id, asked.get(entry.id, ""), entry.message.name or "")
        for entry, spans in prompts(entries)
    )


def _questions(entries: Sequence[Said]) -> dict[str, str]:
    """Map the ids of user messages to the question that the assistant's last words before them put."""
    found: dict[str, str] = {}
    said = ""
    for entry in entries:
        message = entry.message
        if message.role == "assistant":
            said = message.text or said
        elif message.is_prompt:
            last = list(sentences(said[-1200:]))[-2:]
            question = next(
                (text for text in reversed(last) if text.rstrip('*_ )"').endswith(("?", "？"))), ""
            )
            if question:
                found[entry.id] = clip(question, QUESTION)
            said = ""
    return found


def is_bare(text: str) -> bool:
    """Whether a request asks for nothing by itself: "yes", "continue", a slash command, a program's tag."""
    return len(text) <= 120 and bool(_BARE.match(text) or _COMMAND.match(text))


def goes_on(fact: RequestFact) -> bool:
    """Whether a request is a word to go on with the one before it, and answers no question."""
    return not fact.question and len(fact.text) <= LONGEST_WORD and bool(_GO_ON.match(fact.text))


def substantial(requests: Sequence[RequestFact]) -> Sequence[RequestFact]:
    """Return the requests that ask for something in the user's own words, or all of them where none does."""
    asking = [fact for fact in requests if not is_bare(fact.text)]
    return [fact for fact in asking if typed(fact.text).strip()] or asking or requests


def shown(fact: RequestFact) -> str:
    """Return a request as a reader understands it: a bare answer with the question that it answers."""
    if fact.question and (is_bare(fact.text) or len(fact.text) < SHORT_ANSWER):
        return f'{fact.told} (answering: "{fact.question}")'
    return fact.told


def gist(text: str, limit: int, elsewhere: Iterable[str] = ()) -> str:
    """Return the first whole sentences of a request, at most `limit` characters.

    Courtesies before them, pasted lines and what stands `elsewhere` are left out; "" where nothing is left.
    """
    known = set(elsewhere)
    found: list[str] = []
    size = 0
    told = list(sentences(typed(text))) or list(sentences(text))
    left = [sentence for sentence in told if sentence not in known]
    if len(left) < len(told) and sum(map(len, left)) < REST:
        return ""
    for sentence in left:
        if not found and _COURTESY.match(sentence):
            continue
        size += len(sentence) + 1
        if size > limit:
            return " ".join(found) if found else clip(sentence, limit)
        found.append(sentence)
    return " ".join(" ".join(found).split())


def merge(old: Sequence[RequestFact], new: Sequence[RequestFact]) -> tuple[RequestFact, ...]:
    """Merge the requests of two ranges, one for each entry; those read back from a checkpoint cite none."""
    return tuple({fact.entry or fact.text: fact for fact in (*old, *new)}.values())


def bound(facts: Sequence[RequestFact]) -> tuple[RequestFact, ...]:
    """Return the requests that are carried on to the next fold: the first with a task, and the newest."""
    first = substantial(facts)[:1]
    return (*first, *[fact for fact in facts if fact not in first][-CARRIED:])

"""Marks of the user's: what they put between `<keep>` and `</keep>` stays word for word in every later view.

Only a mark that the user typed counts: none in what programs put into a message, in what was pasted, in a
block of code, or between backticks. What stands inside a mark may be anything, a paste too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foldline.core.ledger.text.origin import UserSpeech, is_plan, typed
from foldline.core.log.entries import Said
from foldline.core.log.messages import Text

OPEN, CLOSE = "<keep>", "</keep>"
_BEFORE = 20  # messages before one that say whether a program wrote it: a command, the launch of a skill
_PLACE = "\ue000"  # of private use: encloses the number of a mark in a text without its words
_CODE = re.compile(r"^```.*?(?:^```|\Z)", re.MULTILINE | re.DOTALL)


def marked(entry: Said, before: Sequence[Said]) -> str:
    """Return the words that the user marked in a message, marks apart by an empty line; "" for none.

    `before` are the messages up to it, oldest first.
    """
    if not any(isinstance(part, Text) and CLOSE in part.text for part in entry.message.parts):
        return ""
    speech = UserSpeech()
    for one in before[-_BEFORE:]:
        if one is not entry:
            speech.own(one)
    found = (words for span in speech.own(entry) if not is_plan(span) for words in _typed_marks(span))
    return "\n\n".join(dict.fromkeys(found))


def _typed_marks(span: str) -> Iterator[str]:
    """Yield the words of the marks in a span whose tags the user typed."""
    if _PLACE in span:
        return
    pieces: list[str] = []
    words: list[str] = []
    at = done = 0
    while (start := span.find(OPEN, at)) >= 0:
        at = start + len(OPEN)
        if span[max(start - 1, 0) : start] == "`":
            continue
        end = span.find(CLOSE, at)
        if end < 0:
            break
        pieces += [span[done:start], f"{_PLACE}{len(words)}{_PLACE}"]
        words.append(span[at:end].strip())
        at = done = end + len(CLOSE)
    around = typed(_CODE.sub("", "".join([*pieces, span[done:]]))) if words else ""
    yield from filter(None, (words[int(number)] for number in re.findall(rf"{_PLACE}(\d+){_PLACE}", around)))

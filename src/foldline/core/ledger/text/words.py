"""The plain words of a text that say something: what ties a name to what it is about."""

from __future__ import annotations

import re

_WORD = re.compile(r"(?<![\w/.#-])[A-Za-z][a-z]{3,}(?![\w/-])", re.ASCII)
# Words that agents say about anything: they tie a name to nothing.
_EMPTY_WORDS = (
    "about after again against also already another because been before being both check code content "
    "could current does done each else error every everything false file files find first following from "
    "have here import into just know left let like line lines look looking main make more most much name "
    "need needs next none null other output over path read reading return same should show since some "
    "start string such sure than that their them then there these they this those through true type "
    "understand update using value want well were what when where which while will with work would your "
    "const public static self void"
)
_EMPTY = frozenset(_EMPTY_WORDS.split())


def words(text: str) -> set[str]:
    """Return the plain words of a text that say something, in lower case."""
    return {word for word in map(str.lower, _WORD.findall(text)) if word not in _EMPTY}

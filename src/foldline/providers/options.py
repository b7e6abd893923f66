"""Fields of a request that some servers refuse: several forms of each, tried in order and remembered.

Which model takes `reasoning_effort: none`, `max_tokens` or `thinking: disabled` changes from month to month
and server to server. A server that does not know a field says so with a 400 that names it: then the next form
is sent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from foldline.errors import ProviderError

_REFUSED: Final = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|not (?:permitted|allowed|available|enabled)"
    r"|extra (?:fields|inputs)|invalid (?:value|argument|parameter|field)|no longer|deprecated",
    re.IGNORECASE,
)
# A place in what is said: such a refusal is of one request, whatever else it names.
_SAID: Final = re.compile(r"\b(?:messages|input|system|tools)(?:\.\d|\[\d)")

Body = dict[str, Any]


class Option(msgspec.Struct, frozen=True):
    """One option: words that an error about it contains, and the fields that express it, the best form first.

    The last form should be empty if a reply without the option is better than none.
    """

    name: str
    words: tuple[str, ...]
    forms: tuple[Body, ...]


class Options:
    """The forms that a server accepts. One per provider; nothing in it depends on a call."""

    def __init__(self) -> None:
        self._refused: dict[str, int] = {}

    def fields(self, wanted: Sequence[Option]) -> Body:
        """Return the fields for a request, each option in the first form that was not refused."""
        found: Body = {}
        for option in wanted:
            form = option.forms[min(self._refused.get(option.name, 0), len(option.forms) - 1)]
            for key, value in form.items():
                known = found.get(key)
                found[key] = {**cast("Body", known), **value} if isinstance(known, dict) else value
        return found

    def learn(self, wanted: Sequence[Option], error: ProviderError) -> bool:
        """Take a refusal into account; return whether there is another form to try."""
        text = error.text
        if error.kind != "bad_request" or not _REFUSED.search(text) or _SAID.search(text):
            return False
        for option in wanted:
            place = self._refused.get(option.name, 0)
            if place + 1 < len(option.forms) and any(word in text for word in option.words):
                self._refused[option.name] = place + 1
                return True
        return False

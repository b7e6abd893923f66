"""Fields of a request that some servers refuse: several forms of each, tried in order and remembered.

Which models accept `reasoning_effort: none`, `max_tokens` or `thinking: disabled` differs by server and
changes often. A server that does not know a field answers with a 400 that names it; then the next form is
sent.
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
# A place in the messages: such a refusal concerns one request, whatever else it names.
_IN_MESSAGES: Final = re.compile(r"\b(?:messages|input|system|tools)(?:\.\d|\[\d)")

Body = dict[str, Any]


class Option(msgspec.Struct, frozen=True):
    """One option: words that an error about it contains, and its fields in several forms, the best first.

    The last form should be empty if a reply without the option is better than no reply.
    """

    name: str
    words: tuple[str, ...]
    forms: tuple[Body, ...]


class Options:
    """The forms that a server accepts: one instance per provider, shared by all calls."""

    def __init__(self) -> None:
        self._refused: dict[str, int] = {}

    def fields(self, options: Sequence[Option]) -> Body:
        """Return the fields for a request, each option in the first form that was not refused."""
        fields: Body = {}
        for option in options:
            form = option.forms[min(self._refused.get(option.name, 0), len(option.forms) - 1)]
            for key, value in form.items():
                before = fields.get(key)
                fields[key] = {**cast("Body", before), **value} if isinstance(before, dict) else value
        return fields

    def learn(self, options: Sequence[Option], error: ProviderError, sent: Body) -> bool:
        """Record the refusal of the fields that were sent; return whether there are others to try."""
        text = error.text
        if error.kind != "bad_request" or not _REFUSED.search(text) or _IN_MESSAGES.search(text):
            return False
        if self.fields(options) != sent:  # another call was refused too, and came first
            return True
        for option in options:
            index = self._refused.get(option.name, 0)
            if index + 1 < len(option.forms) and any(word in text for word in option.words):
                self._refused[option.name] = index + 1
                return True
        return False

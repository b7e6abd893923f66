"""Responses of the Gemini API: the gateway puts the chunks of a stream together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foldline.dialects.gemini.write import one_turn
from foldline.dialects.payload import Fields, fields_of, items_of
from foldline.providers.base import Delta


def _candidate(response: Any) -> Fields:
    return fields_of(next(iter(items_of(fields_of(response).get("candidates"))), None))


def is_last(chunk: Any) -> bool:
    """Return whether a chunk is the last with content."""
    return _candidate(chunk).get("finishReason") is not None


class ContentAssembler:
    """Put the chunks of a stream together into a GenerateContentResponse."""

    ended = answered = False  # usage may follow the finish reason

    def __init__(self) -> None:
        self._body: Fields = {}
        self._candidate: Fields = {}
        self._contents: list[Fields] = []

    def take(self, event: Fields) -> Iterator[Delta]:
        """Take the next chunk; yield its texts."""
        candidate = _candidate(event)
        self._body |= event
        self._candidate |= candidate
        content = fields_of(candidate.get("content"))
        if content:
            self._contents.append(content)
        for part in map(fields_of, items_of(content.get("parts"))):
            if isinstance(text := part.get("text"), str) and text:
                yield Delta("thinking" if part.get("thought") is True else "text", text)

    def whole(self) -> Fields | None:
        """Return the response; None if no chunk had a finish reason."""
        if self._candidate.get("finishReason") is None:
            return None
        content: Fields = one_turn(self._contents) if self._contents else {"role": "model", "parts": []}
        return {**self._body, "candidates": [{**self._candidate, "content": content}]}

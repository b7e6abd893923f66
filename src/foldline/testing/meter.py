"""Count a request in tokens, and simulate the provider's prompt cache."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final, cast

import msgspec

from foldline.core.log.codec import encode
from foldline.core.log.messages import Usage
from foldline.core.measure.tokens import MESSAGE_OVERHEAD, OFFLINE, Counter, message_tokens, tools_tokens
from foldline.dialects import get
from foldline.dialects.values import ANTHROPIC
from foldline.testing.request import Asked

# Both providers cache from 1,024 tokens on; OpenAI reports whole steps of 128.
CACHE_LEAST: Final = 1_024
CACHE_STEP: Final = 128
_MARK: Final = b'"cache_control"'
_REMEMBERED: Final = 100_000  # counts kept by content, bounded for long runs


class Piece(msgspec.Struct, frozen=True):
    """A part of a prompt in the provider's order: its tokens, and whether it ends in a cache mark."""

    digest: bytes
    tokens: int
    marked: bool = False


class Meter:
    """Count requests, each message once, and remember which prompt prefixes were cached."""

    def __init__(self, counter: Counter = OFFLINE) -> None:
        self._counter = counter
        self._counts: dict[bytes, int] = {}
        self._cached: set[bytes] = set()

    def pieces(self, asked: Asked) -> list[Piece]:
        """Return the prompt in parts: tools, system prompt, messages."""
        found: list[Piece] = []
        if asked.tools:
            found.append(self._piece(b"tools", asked.tools, asked.dialect))
        if asked.system:
            found.append(self._piece(b"system", asked.system, asked.dialect))
        found.extend(self._piece(b"message", message, asked.dialect) for message in asked.messages)
        return found

    def count(self, asked: Asked) -> int:
        """Count the input of a request in tokens: messages, system prompt and tools."""
        return sum(piece.tokens for piece in self.pieces(asked))

    def output(self, text: str) -> int:
        """Count the tokens of what the model wrote."""
        return self._counter.count(text)

    def usage(self, asked: Asked, output: int) -> Usage:
        """Report a request's usage, and remember its prompt as cached.

        OpenAI's cache is automatic; Anthropic's holds what stands before a mark (`cache_control`).
        """
        pieces = self.pieces(asked)
        chain = _chain(asked.dialect, pieces)
        total = chain[-1][1] if chain else 0
        read = max((tokens for key, tokens in chain if key in self._cached), default=0)
        if asked.dialect == ANTHROPIC:
            last = _last_mark(asked, pieces)
            marked = chain[last][1] if last is not None else 0
            written = marked - read if marked >= CACHE_LEAST else 0
            read = min(read, marked)
            self._cached.update(
                key for key, tokens in chain[: (last or 0) + 1] if tokens >= CACHE_LEAST and marked
            )
            written = max(0, written)
            return Usage(input=total - read - written, cache_read=read, cache_write=written, output=output)
        self._cached.update(key for key, tokens in chain if tokens >= CACHE_LEAST)
        read -= read % CACHE_STEP
        return Usage(input=total - read, cache_read=read, output=output)

    def _piece(self, kind: bytes, value: Any, dialect: str) -> Piece:
        raw = encode(value)
        marked = _MARK in raw
        if marked:
            raw = encode(unmarked(value))
        digest = sha256(kind + raw).digest()
        tokens = self._counts.get(digest)
        if tokens is None:
            tokens = self._tokens(kind, value, dialect)
            if len(self._counts) >= _REMEMBERED:
                self._counts.clear()
            self._counts[digest] = tokens
        return Piece(digest, tokens, marked)

    def _tokens(self, kind: bytes, value: Any, dialect: str) -> int:
        if kind == b"tools":
            return tools_tokens(value, self._counter)
        if kind == b"system" and isinstance(value, str):
            return MESSAGE_OVERHEAD + self._counter.count(value)
        shape = get(dialect)
        message = shape.decode_system(value) if kind == b"system" else shape.decode(value)
        return message_tokens(message, self._counter)


def unmarked(value: Any) -> Any:
    """Return a JSON value without cache marks, which may move while the prompt stays the same."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: unmarked(item) for key, item in fields.items() if key != "cache_control"}
    if isinstance(value, list):
        return [unmarked(item) for item in cast("list[Any]", value)]
    return value


def _chain(dialect: str, pieces: list[Piece]) -> list[tuple[bytes, int]]:
    """Return each prefix of the prompt: its digest and its tokens."""
    found: list[tuple[bytes, int]] = []
    key = dialect.encode()
    tokens = 0
    for piece in pieces:
        key = sha256(key + piece.digest).digest()
        tokens += piece.tokens
        found.append((key, tokens))
    return found


def _last_mark(asked: Asked, pieces: list[Piece]) -> int | None:
    if asked.body.get("cache_control"):  # a mark on the request counts at its end
        return len(pieces) - 1
    return next((index for index in reversed(range(len(pieces))) if pieces[index].marked), None)

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

CACHE_MINIMUM: Final = 1_024  # tokens, of both providers
CACHE_STEP: Final = 128  # OpenAI rounds cached tokens down to a multiple
_MARK: Final = b'"cache_control"'
_REMEMBERED: Final = 100_000  # counts of pieces that are kept, so that long runs do not fill the memory


class Piece(msgspec.Struct, frozen=True):
    """A part of a prompt: a digest, its tokens, and whether it ends in a cache mark."""

    digest: bytes
    tokens: int
    marked: bool = False


class Meter:
    """Count requests, each message once, and remember which prompt prefixes were cached."""

    def __init__(self, counter: Counter = OFFLINE) -> None:
        self._counter = counter
        self._counts: dict[bytes, int] = {}
        self._cached: set[bytes] = set()

    def pieces(self, request: Asked) -> list[Piece]:
        """Return the prompt in parts, in the provider's order: tools, system prompt, messages."""
        pieces: list[Piece] = []
        if request.tools:
            pieces.append(self._piece(b"tools", request.tools, request.dialect))
        if request.system:
            pieces.append(self._piece(b"system", request.system, request.dialect))
        pieces.extend(self._piece(b"message", message, request.dialect) for message in request.messages)
        return pieces

    def count(self, request: Asked) -> int:
        """Count the input of a request in tokens: messages, system prompt and tools."""
        return sum(piece.tokens for piece in self.pieces(request))

    def output(self, text: str) -> int:
        """Count the tokens of what the model wrote."""
        return self._counter.count(text)

    def usage(self, request: Asked, output: int) -> Usage:
        """Report a request's usage, and remember its prompt as cached.

        OpenAI caches every prefix; Anthropic only prefixes up to the last mark (`cache_control`).
        """
        pieces = self.pieces(request)
        prefixes = _prefixes(request, pieces)
        total = prefixes[-1][1] if prefixes else 0
        read = max((tokens for key, tokens in prefixes if key in self._cached), default=0)
        if request.dialect == ANTHROPIC:
            last = _last_mark(request, pieces)
            marked = prefixes[last][1] if last is not None else 0
            written = max(0, marked - read) if marked >= CACHE_MINIMUM else 0
            read = min(read, marked)
            self._cached.update(
                key for key, tokens in prefixes[: (last or 0) + 1] if tokens >= CACHE_MINIMUM and marked
            )
            return Usage(input=total - read - written, cache_read=read, cache_write=written, output=output)
        self._cached.update(key for key, tokens in prefixes if tokens >= CACHE_MINIMUM)
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
        codec = get(dialect)
        message = codec.decode_system(value) if kind == b"system" else codec.decode(value)
        return message_tokens(message, self._counter)


def unmarked(value: Any) -> Any:
    """Return a JSON value without cache marks: a client may move them between requests."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: unmarked(item) for key, item in fields.items() if key != "cache_control"}
    if isinstance(value, list):
        return [unmarked(item) for item in cast("list[Any]", value)]
    return value


def _prefixes(request: Asked, pieces: list[Piece]) -> list[tuple[bytes, int]]:
    """Return the digest and the tokens of each prefix of the prompt; a model reads only its own cache."""
    prefixes: list[tuple[bytes, int]] = []
    key = encode([request.dialect, request.model])
    tokens = 0
    for piece in pieces:
        key = sha256(key + piece.digest).digest()
        tokens += piece.tokens
        prefixes.append((key, tokens))
    return prefixes


def _last_mark(request: Asked, pieces: list[Piece]) -> int | None:
    """Return the index of the last piece with a mark; a mark on the request counts for its last piece."""
    if request.body.get("cache_control"):
        return len(pieces) - 1
    return next((index for index in reversed(range(len(pieces))) if pieces[index].marked), None)

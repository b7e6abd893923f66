"""Signatures of thinking, issued and checked like a provider's: they cannot be invented, moved or reused.

A signature is an HMAC over the prompt before it (the prefix) and the thinking. Earlier thinking is not part
of the prefix, as with the provider.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final, Literal

from foldline.core.log.codec import encode
from foldline.dialects.payload import fields_of, items_of
from foldline.testing.meter import unmarked

Binding = Literal["prefix", "block"]

_SECRET: Final = b"foldline.testing"  # the same in every run: a client may use several servers
_MAGIC: Final = "Zm9sZGxpbmU"  # the beginning of every signature
_THINKING: Final = ("thinking", "redacted_thinking")


class Signer:
    """Issue and check signatures. `binds`: to the prefix and the block, or only to the block."""

    def __init__(self, binds: Binding = "prefix") -> None:
        self.binds = binds

    def prefix(self, system: Any, messages: Sequence[Any]) -> bytes:
        """Return the digest of the system prompt and messages before a reply, without thinking."""
        if self.binds == "block":
            return b""
        digest = sha256(encode(unmarked(system)))
        for message in messages:
            _update(digest, message)
        return digest.digest()

    def sign(self, prefix: bytes, thinking: str) -> str:
        """Return the signature of thinking that follows a prefix."""
        mac = hmac.new(_SECRET, prefix + thinking.encode("utf-8", "surrogatepass"), sha256)
        return _MAGIC + base64.b64encode(mac.digest()).decode()

    def bad(self, system: Any, messages: Sequence[Any]) -> list[tuple[int, int]]:
        """Return the indices (message, block) of thinking with an invalid signature."""
        if not any(map(_has_thinking, messages)):
            return []
        invalid: list[tuple[int, int]] = []
        digest = sha256(encode(unmarked(system)))
        for index, message in enumerate(messages):
            prefix = digest.digest() if self.binds == "prefix" else b""
            for place, block in _blocks(message):
                if block.get("type") == "thinking" and not self._is_valid(prefix, block):
                    invalid.append((index, place))
            _update(digest, message)
        return invalid

    @staticmethod
    def ours(block: dict[str, Any]) -> bool:
        """Return whether a Signer issued a block's signature, for any content."""
        return str(block.get("signature")).startswith(_MAGIC)

    def _is_valid(self, prefix: bytes, block: dict[str, Any]) -> bool:
        thinking, signature = block.get("thinking"), block.get("signature")
        if not isinstance(thinking, str) or not isinstance(signature, str):
            return False
        return hmac.compare_digest(self.sign(prefix, thinking).encode(), signature.encode())

    def seal(self, text: str) -> str:
        """Return text in place of the Responses API's encrypted reasoning: encoded, with an HMAC."""
        raw = text.encode("utf-8", "surrogatepass")
        return base64.urlsafe_b64encode(hmac.new(_SECRET, raw, sha256).digest() + raw).decode()

    def sealed(self, value: str) -> bool:
        """Return whether this signer issued the encrypted reasoning."""
        try:
            raw = base64.urlsafe_b64decode(value.encode("ascii", "replace"))
        except ValueError:
            return False
        return hmac.compare_digest(hmac.new(_SECRET, raw[32:], sha256).digest(), raw[:32])


def _blocks(message: Any) -> list[tuple[int, dict[str, Any]]]:
    content = items_of(fields_of(message).get("content"))
    return [(place, fields_of(block)) for place, block in enumerate(content) if isinstance(block, dict)]


def _has_thinking(message: Any) -> bool:
    return any(block.get("type") in _THINKING for _, block in _blocks(message))


def _update(digest: Any, message: Any) -> None:
    """Add a message to the prefix; a string counts as one text block."""
    fields = fields_of(message)
    content = fields.get("content")
    blocks = [block for _, block in _blocks(fields) if block.get("type") not in _THINKING]
    if isinstance(content, str):
        blocks = [{"type": "text", "text": content}]
    digest.update(encode([fields.get("role"), unmarked(blocks)]) + b"\n")

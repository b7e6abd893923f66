"""Count the tokens of texts, messages and tools: the counter protocol and the offline counter.

The offline counter needs no vocabulary. It maps each UTF-8 byte of a text to one of 16 classes and sums the
probability that a token starts between two neighbours, one weight per pair of classes. The weights
(`weights.py`) were fitted against o200k_base on many kinds of text; `docs/results/README.md` has the errors.
"""

from __future__ import annotations

import re
from typing import Any, Final, Protocol

from foldline.core.log.codec import encode
from foldline.core.log.messages import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.steps import STEP
from foldline.core.measure.byteclasses import (
    BOX_LEAD,
    FOUR_BYTES,
    FOUR_BYTES_MORE,
    LEFT,
    LETTER_RUN,
    LETTER_RUN_CLASSES,
    LETTERS_A_TOKEN,
    RIGHT,
    RUNS,
)
from foldline.core.measure.media import media_tokens
from foldline.core.measure.weights import WEIGHTS

# OpenAI's cookbook for the o200k models: 3 tokens frame a message, 1 names its role.
MESSAGE_OVERHEAD: Final = 4
# Delimiters, field names and id of a call or result. No provider publishes it; calibration corrects it.
CALL_OVERHEAD: Final = 8
NO_OUTPUT: Final = "[no output]"  # the text of an empty result, for dialects that require one
# The same for one tool definition.
TOOL_OVERHEAD: Final = 8

# Long runs without a break in an opaque block are encrypted or binary. Encrypted reasoning has 3 bytes in 4
# characters, about 4 bytes a token. The cap limits images inside.
_BLOB: Final = re.compile(r"[A-Za-z0-9+/=_-]{1000,}")
_BLOB_CHARS_A_TOKEN: Final = 5
_BLOB_TOKENS_MOST: Final = 4_000

_RUN: Final = 16
_EQUAL: Final = b"\0" * (_RUN - 1)

_STEP: Final = 1 << 18  # bytes processed at once, to limit memory


class Counter(Protocol):
    """Counts tokens. `name` identifies the rules, so that counts of two counters are never mixed."""

    @property
    def name(self) -> str:
        """The name of the rules, such as `foldline` or `o200k_base`."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens in `text`: 0 for "", never negative, the same for the same text."""
        ...


def pair_codes(data: bytes) -> bytes:
    """Return one byte for each two neighbours in `data`: left class x 16 + right class.

    The nibbles are combined as one large integer, which is many times faster than a loop.
    """
    left = int.from_bytes(data[:-1].translate(LEFT), "little")
    right = int.from_bytes(data[1:].translate(RIGHT), "little")
    return (left | right).to_bytes(len(data) - 1, "little")


def _weighed(data: bytes) -> int:
    """Return the summed weights of all neighbours in `data`."""
    return sum(pair_codes(data).translate(WEIGHTS))


def repeats(data: bytes) -> bool:
    """Return whether `data` may hold a run of 16 equal bytes, or of a three-byte box-drawing character.

    All neighbours are compared at once, as in `pair_codes`; equal ones give zero.
    """
    if len(data) < _RUN:
        return False
    differ = int.from_bytes(data[:-1], "little") ^ int.from_bytes(data[1:], "little")
    return _EQUAL in differ.to_bytes(len(data) - 1, "little") or BOX_LEAD in data


def take_runs(data: bytes) -> tuple[bytes, float]:
    """Remove long runs of one character, which merge into few tokens; return the rest and their tokens.

    The tokens include the correction for characters of four bytes.
    """
    tokens = data.count(FOUR_BYTES) * FOUR_BYTES_MORE
    if not repeats(data):
        return data, tokens
    for run, cost in RUNS:
        if run in data:
            tokens += data.count(run) * cost
            data = data.replace(run, b"")
    classes = data.translate(RIGHT)
    if any(run in classes for run in LETTER_RUN_CLASSES):
        length = len(data)
        data = LETTER_RUN.sub(b"", data)
        tokens += (length - len(data)) / LETTERS_A_TOKEN
    return data, tokens


class OfflineCounter:
    """A content-aware estimate of o200k_base tokens, at 15 MB a second or more, without dependencies."""

    name = "foldline"

    def count(self, text: str) -> int:
        """Return the estimated tokens in `text`: 0 for "", else at least 1. Lone surrogates are allowed."""
        if not text:
            return 0
        data, runs = take_runs(text.encode("utf-8", "surrogatepass"))
        data = b"\n" + data  # a text begins with a token, like a line
        if len(data) <= _STEP:
            weight = _weighed(data)
        else:
            weight = sum(
                _weighed(data[start : start + _STEP + 1]) for start in range(0, len(data) - 1, _STEP)
            )
        return max(1, round(weight / 255 + runs))


OFFLINE: Final[Counter] = OfflineCounter()


def json_text(value: Any) -> str:
    """Return the compact JSON of a native value, for counting."""
    return encode(value).decode("utf-8")


def opaque_tokens(part: Opaque, counter: Counter) -> int:
    """Count a block by its JSON text; long runs of base64 count by size, within a cap."""
    text = json_text(part.data)
    blobs = sum(min(len(blob) // _BLOB_CHARS_A_TOKEN, _BLOB_TOKENS_MOST) for blob in _BLOB.findall(text))
    return counter.count(_BLOB.sub("", text)) + blobs


def part_tokens(part: Part, counter: Counter) -> int:
    """Count one part of a message with its framing. Signatures of thinking do not count."""
    match part:
        case Text(text=text) | Thinking(text=text):
            return counter.count(text)
        case ToolCall(name=name, arguments=arguments):
            arguments_text = arguments if isinstance(arguments, str) else json_text(arguments)
            return CALL_OVERHEAD + counter.count(name) + counter.count(arguments_text)
        case ToolResult(content=content):
            content_tokens = sum(part_tokens(inner, counter) for inner in content)
            return CALL_OVERHEAD + (content_tokens or counter.count(NO_OUTPUT))
        case Media():
            return media_tokens(part)
        case Opaque(kind=kind) if kind == STEP:
            return 0
        case _:
            return opaque_tokens(part, counter)


def message_tokens(message: Message, counter: Counter = OFFLINE) -> int:
    """Count a message: all its parts and its framing, at least `MESSAGE_OVERHEAD`."""
    return MESSAGE_OVERHEAD + sum(part_tokens(part, counter) for part in message.parts)


def text_tokens(text: str | None, counter: Counter = OFFLINE) -> int:
    """Count a text sent as a separate message, such as a system prompt; 0 for none."""
    return MESSAGE_OVERHEAD + counter.count(text) if text else 0


def tools_tokens(tools: Any, counter: Counter = OFFLINE) -> int:
    """Count tool definitions in a provider's native form (a list of JSON objects); 0 for none.

    They count by their JSON text. Providers render them differently, which calibration corrects.
    """
    if not tools:
        return 0
    return sum(TOOL_OVERHEAD + counter.count(json_text(tool)) for tool in tools)

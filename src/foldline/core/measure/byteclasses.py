"""The byte classes of the offline counter, and the long runs that it removes first.

Left and right classes differ: the left byte may end a token or, as a lead byte, name the script of a
character; the right byte may begin a token. Letters are grouped by frequency in words, which separates prose
and names from base64.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_UPPER_COMMON: Final = b"AEIOUCSTMPRLDNB"
_UPPER_RARE: Final = b"JKQVWXZYFGH"
_DIGITS: Final = b"0123456789"


def _span(first: int, last: int) -> bytes:
    return bytes(range(first, last + 1))


# Bytes in no group belong to the last one: other punctuation and control characters.
LEFT_GROUPS: Final[tuple[tuple[str, bytes], ...]] = (
    ("line break", b"\n\r"),
    ("blank", b" \t"),
    ("vowel", b"aeiou"),
    ("consonant", b"bcdfghlmnprsty"),
    ("rare letter", b"jkqvwxz"),
    ("capital", _UPPER_COMMON),
    ("rare capital", _UPPER_RARE),
    ("digit", _DIGITS),
    ("joiner", b"_-/."),
    ("lead of Latin", _span(0xC2, 0xCD)),
    ("lead of Greek, Cyrillic, Hebrew, Arabic", _span(0xCE, 0xDF)),
    ("lead of kana, symbols, Indic, emoji", _span(0xE0, 0xE3) + b"\xee\xef" + _span(0xF0, 0xF7)),
    ("lead of Han", _span(0xE4, 0xE9)),
    ("lead of Hangul", _span(0xEA, 0xED)),
    ("continuation", _span(0x80, 0xBF)),
    ("other", b""),
)
RIGHT_GROUPS: Final[tuple[tuple[str, bytes], ...]] = (
    ("line break", b"\n\r"),
    ("blank", b" \t"),
    ("vowel", b"aeiou"),
    ("consonant", b"bcdfghlmnprsty"),
    ("rare letter", b"jkqvwxz"),
    ("capital", _UPPER_COMMON + _UPPER_RARE),
    ("digit", _DIGITS),
    ("underscore", b"_"),
    ("joiner", b"-/."),
    ("quote", b"\"'`"),
    ("continuation 80-9F", _span(0x80, 0x9F)),
    ("continuation A0-BF", _span(0xA0, 0xBF)),
    ("lead of Latin, Greek, Cyrillic", _span(0xC2, 0xD4)),
    ("lead of Hebrew, Arabic", _span(0xD5, 0xDF)),
    ("lead of three or four bytes", _span(0xE0, 0xF7)),
    ("other", b""),
)

# Tokens that o200k_base needs for 16 of a character within a long run of it.
_RUN_TOKENS: Final = {
    " ": 1 / 8,
    "\t": 1.0,
    "\n": 1.0,
    "─": 1.0,
    "═": 2.0,
    "━": 2.0,
    "\0": 8.0,
    **dict.fromkeys("~+", 1 / 2),
    **dict.fromkeys("=-_#*./", 1 / 4),
}
BOX_LEAD: Final = "─".encode()[:1]  # the first byte of all those that take three
RUNS: Final = tuple(((character * 16).encode(), tokens) for character, tokens in _RUN_TOKENS.items())


def class_table(groups: Sequence[tuple[str, bytes]], shift: int) -> bytes:
    """Return a table for `bytes.translate` that maps each byte to its group's number, shifted left."""
    table = bytearray([len(groups) - 1 << shift]) * 256
    for number, (_, members) in enumerate(groups):
        for byte in members:
            table[byte] = number << shift
    return bytes(table)


LEFT: Final = class_table(LEFT_GROUPS, 4)
RIGHT: Final = class_table(RIGHT_GROUPS, 0)

# A character of four bytes (emoji, flags, skin tones, rare Han) takes 1.5 to 4 tokens of o200k_base; the
# weights, fitted on text with few of them, count about 1.1.
FOUR_BYTES: Final = b"\xf0"  # the first byte of each
FOUR_BYTES_MORE: Final = 0.7

# A run of one letter takes one token for 8 letters. Searching for 52 letters is slow, so they are searched
# only if 16 bytes in a row have the same class, which is rare.
LETTER_RUN_CLASSES: Final = tuple(bytes([number]) * 16 for number in (2, 3, 4, 5))
LETTER_RUN: Final = re.compile(rb"([A-Za-z])\1{15,}")
LETTERS_A_TOKEN: Final = 8

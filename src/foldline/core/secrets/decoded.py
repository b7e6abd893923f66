"""What a text says once it is decoded: colour and line breaks cut no key, escapes and base64 hide none.

What no reader sees (colour, zero-width characters, the break of a continued line) is left out; percent signs,
escapes and entities are read as what they spell. The rules look at the outcome alone.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from foldline.core.secrets.span import BREAK, GUTTER, SecretSpan

_BLANK = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff"
)
_ESCAPED_BLANK = "u(?:00[aA][dD]|200[b-fB-F]|202[a-eA-E]|206[0-9a-fA-F]|[fF][eE](?:0[0-9a-fA-F]|[fF]{2}))"
# as GUTTER, but for `12:`, which may be the rest of a line
_BEFORE_REST = r"(?:[ \t]{0,8}[0-9]{1,7}[ \t]?[|\u2192\t]|[\w./\-]{1,120}:[0-9]{1,7}:|\+|> ?)?"
_NO_ITEM = r"(?!- |\[[A-Z]|#+ |\.{3} )"  # no line is continued by the next item of a page
_COLOUR = r"(?:\[[0-9;:?]{0,30}[A-Za-z]|\(B)"
# The set of letters that each begins with is what makes the search fast.
_PIECE = re.compile(
    rf"[\\%&\x1b\x9b{_BLANK}](?:"
    rf"(?P<unseen>(?<=\\)(?:\r?\n|\\\\(?:r\\)?n){_BEFORE_REST}(?:  |\t)*+{_NO_ITEM}"  # a continued line
    rf"|(?<=\\)\\{{0,2}}(?:(?:u00[19][bB]|x[19][bB]|033|e){_COLOUR}|{_ESCAPED_BLANK})"
    rf"|(?<=[\x1b\x9b]){_COLOUR}"
    rf"|(?<=[{_BLANK}])[{_BLANK}]*)"
    r"|(?<=\\)\\{0,2}(?:u\{(?P<braced>[0-9a-fA-F]{1,5})\}|u(?P<four>[0-9a-fA-F]{4})|x(?P<two>[0-9a-fA-F]{2}))"
    r"|(?<=\\)\\{0,6}(?P<letter>[\"'rt]|(?<!\\\\\\)n)"
    r"|(?<=%)(?P<percent>(?:25){0,3}(?:[0-7][0-9a-fA-F]|[c-fC-F][0-9a-fA-F](?:%(?:25){0,3}[89a-bA-B][0-9a-fA-F]){1,3}))"
    r"|(?<=&)(?P<entity>\#[0-9]{2,6}|\#[xX][0-9a-fA-F]{2,5}|[a-z]{2,8});)"
)


class DecodedText:
    """A text with some pieces read otherwise, and the place of each character in the original."""

    def __init__(self, original: str) -> None:
        said: list[str] = []
        self._read, self._stands = [0], [0]  # where a piece begins and ends, in both texts
        done = size = 0
        for match in _PIECE.finditer(original):
            said += [original[done : match.start()], _said(match)]
            size += match.start() - done
            self._read += [size, size + len(said[-1])]
            self._stands += match.span()
            size += len(said[-1])
            done = match.end()
        self.text = "".join([*said, original[done:]]) if done else original

    @property
    def changed(self) -> bool:
        """Whether anything was read otherwise."""
        return len(self._read) > 1

    def original(self, span: SecretSpan) -> SecretSpan:
        """Return a span of the text as it reads as one of the original; it says what it read."""
        if not self.changed:
            return span
        first = bisect_right(self._read, span.start) - 1
        last = bisect_left(self._read, span.end)
        last -= last == len(self._read) or self._read[last] > span.end
        start = self._stands[first] + span.start - self._read[first]
        end = self._stands[last] + span.end - self._read[last]
        return SecretSpan(start, end, span.kind, (*span.said, self.text[span.start : span.end]))


def as_read(text: str) -> str:
    """Return a text as it reads."""
    return _PIECE.sub(_said, text)


def _said(piece: re.Match[str]) -> str:
    """Return the character that a piece spells; nothing for one that is not seen."""
    if piece["unseen"] is not None:
        return ""
    if piece["entity"]:
        return html.unescape(piece[0])
    if letter := piece["letter"]:
        return _LETTERS_OF.get(letter, letter)
    if piece["percent"]:
        said = piece[0]
        while len(said) > 3 and said.startswith("%25"):
            said = said.replace("%25", "%")
        return bytes.fromhex(said.replace("%", "")).decode("utf-8", "replace")
    said = chr(int(piece["braced"] or piece["four"] or piece["two"], 16))
    return piece[0] if "\ud800" <= said <= "\udfff" else said


_LETTERS_OF = {"n": "\n", "r": "\r", "t": "\t"}

# Base64 of ASCII: the highest bit of each byte is 0, so that three letters of four are of half the alphabet.
_FOUR = r"[A-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_\-]"
_LETTERS = r"[A-Za-z0-9+/_\-]"
_ENCODED = re.compile(
    rf"(?<![A-Za-z0-9_\-])(?:{_FOUR}){{3}}{_LETTERS}{{4,}}+"
    rf"(?:{BREAK}{GUTTER}{_LETTERS}{{4,}}+(?=={{0,2}}(?:\s|\\|[\"']|$)))*+={{0,2}}"
)
_GAP = re.compile(BREAK + GUTTER)
_TEXT = re.compile(r"[\t\n\r\x1b -~]{9}")
_URL_SAFE = str.maketrans("-_", "+/")


def encoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and meaning of what is base64 of a text."""
    for match in _ENCODED.finditer(text):
        letters = _GAP.sub("", match[0]).rstrip("=").translate(_URL_SAFE)
        try:
            meant = base64.b64decode(letters[: len(letters) - (len(letters) % 4 == 1)] + "==")
        except binascii.Error:
            continue
        if _TEXT.match(said := meant.decode("utf-8", "replace")):
            yield *match.span(), as_read(said)

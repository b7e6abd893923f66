"""The concrete things that a text names, and where a later text names them: the units of retention.

This code is separate from the ledger's: a score that shared it could not see what the ledger overlooks.
`docs/replay.md` describes the kinds and the rules.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Literal

import msgspec

_URL = re.compile(r"https?://[^\s\"'<>)\]}`\\,]+")
_RUN = re.compile(
    r"[\w@.+~/#-]{3,}"
)  # all that the other kinds are made of: a run is read once, wherever it stands

_SUFFIXES = (
    "py pyi go rs ts tsx js jsx mjs cjs java kt rb php c h cc cpp hpp cs swift vue svelte astro nix "
    "md mdx txt css html json jsonl yaml yml toml sql proto lock cfg ini env csv log sh omp"
)
_PART = r"[\w@.+-]"
_PATH = re.compile(
    rf"(?<![\w/.-])(?:~|\.\.?)?/?(?:{_PART}+/)+{_PART}*\w"  # with a slash
    rf"|(?<![\w/.-])[\w+-]+\.(?:{'|'.join(_SUFFIXES.split())})\b"  # or with a suffix that only files have
)
_LETTERS = re.compile(r"[a-zA-Z]{2}")
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_HEX = re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b")  # letters and digits, both
_CODE = re.compile(
    r"(?<![\w-])(?:"
    r"[A-Z]{2,10}-\d{1,6}"  # a ticket
    r"|#[A-Z]?\d{2,8}"  # an issue
    r"|(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{6,8}"  # a booking code
    r"|[a-z]+(?:_[a-z]+)+_\d{3,6}"  # a numbered record
    r")(?![\w-])"
)
_NUMBER = re.compile(r"(?<![\w.])\d{4,}(?![\w.])")
_DULL = re.compile(r"(?:19|20)\d\d|\d{0,3}000+|1024|2048|4096")  # years, round numbers, powers
_IDENTIFIER = re.compile(r"\b(?:[A-Za-z]\w*_\w+|[a-z][a-z0-9]*(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]+){2,})\b")
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]{3,}")
_QUOTED = re.compile(r'"([^"\n\\]{6,60})"|\'([^\'\n\\]{6,60})\'')
_WORD_OF_THREE = re.compile(r"[A-Za-z]{3}")
_SHORT_HASH = re.compile(r"[0-9a-f]{7}")

DIGITS = 7  # of a hash, as git shows
NAME_LEAST, NAME_MOST = 6, 60  # characters of an identifier
RUN_MOST = 400  # characters of a run that are read; the rest is data
FILE_LEAST = 8  # characters that make a file name distinctive


EntityKind = Literal["url", "path", "id", "number", "identifier", "flag", "quote"]


class Entity(msgspec.Struct, frozen=True, order=True):
    """A concrete thing: its kind and the key that its spellings share."""

    kind: EntityKind
    key: str


def entities(text: str) -> set[Entity]:
    """Return the entities in a text, without quoted phrases."""
    named = {Entity("url", match.group().rstrip(".:;")) for match in _URL.finditer(text)}
    for run in set(_RUN.findall(_URL.sub(" ", text))):
        named |= _entities_in_run(run[:RUN_MOST])
    return named


@lru_cache(maxsize=100_000)
def _entities_in_run(run: str) -> frozenset[Entity]:
    """Return the entities in one run of name characters."""
    named = {Entity("path", key) for match in _PATH.finditer(run) if (key := _path_key(match.group()))}
    named |= {Entity("id", match.group()) for match in _UUID.finditer(run)}
    named |= {Entity("id", match.group()[:DIGITS]) for match in _HEX.finditer(_UUID.sub(" ", run))}
    named |= {Entity("id", match.group()) for match in _CODE.finditer(run)}
    named |= {
        Entity("number", match.group())
        for match in _NUMBER.finditer(run)
        if not _DULL.fullmatch(match.group())
    }
    named |= {Entity("flag", match.group()) for match in _FLAG.finditer(run)}
    named |= {  # the stem of a file name does not count twice
        Entity("identifier", match.group())
        for match in _IDENTIFIER.finditer(_PATH.sub(" ", run))
        if NAME_LEAST <= len(match.group()) <= NAME_MOST
    }
    return frozenset(named)


def _path_key(path: str) -> str:
    """Return the last two parts, which an absolute and a relative path share; "" if too short."""
    parts = [part for part in path.rstrip("/.").split("/") if part not in ("", ".", "..", "~")]
    key = "/".join(parts[-2:])
    return key if len(key) >= 5 and _LETTERS.search(key) else ""


def phrases(text: str) -> Iterator[Entity]:
    """Yield the quoted phrases of several words."""
    for match in _QUOTED.finditer(text):
        phrase = (match[1] or match[2]).strip()
        if NAME_LEAST <= len(phrase) <= NAME_MOST and " " in phrase and _WORD_OF_THREE.search(phrase):
            yield Entity("quote", phrase)


def quoted(text: str) -> set[Entity]:
    """Return all quoted texts."""
    return {Entity("quote", match[1] or match[2]) for match in _QUOTED.finditer(text)}


class Reading:
    """Finds entities in a text; `common` are names that many unrelated projects share."""

    def __init__(self, text: str, common: AbstractSet[str]) -> None:
        self.text = text
        self._common = common

    def names(self, entity: Entity) -> bool:
        """Whether the text names an entity as a separate word; a distinctive file name needs no folder."""
        return next(self.places(entity, self._file_name(entity) or entity.key), None) is not None

    def mentions(self, entity: Entity) -> Iterator[int]:
        """Yield the indices at which the text names an entity."""
        return self.places(entity, self._file_name(entity) or entity.key)

    def spelt(self, entity: Entity) -> Iterator[int]:
        """Yield the indices of an entity with its folder, or of its file name alone if that never occurs."""
        key = entity.key if entity.key in self.text else self._file_name(entity) or entity.key
        return self.places(entity, key)

    def places(self, entity: Entity, key: str) -> Iterator[int]:
        """Yield the indices of a key as a separate word; more may follow the seven digits of a hash."""
        text, size, at = self.text, len(key), self.text.find(key)
        is_hash = entity.kind == "id" and _SHORT_HASH.fullmatch(key) is not None
        while at >= 0:
            if is_hash or not (
                (at and _in_word(text[at - 1])) or (at + size < len(text) and _in_word(text[at + size]))
            ):
                yield at
                at = text.find(key, at + size)
            else:
                at = text.find(key, at + 1)

    def _file_name(self, entity: Entity) -> str | None:
        """Return the file name of a path if it is distinctive, else None."""
        folder, _, name = entity.key.rpartition("/")
        distinctive = "." in name and len(name) >= FILE_LEAST and name not in self._common
        return name if entity.kind == "path" and folder and distinctive else None


def _in_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


class TextOffsets:
    """Maps an index in texts joined by line breaks to the index of the text."""

    def __init__(self, texts: list[str]) -> None:
        self._starts: list[int] = []
        at = 0
        for text in texts:
            self._starts.append(at)
            at += len(text) + 1

    def index(self, place: int) -> int:
        """Return the index of the text at `place`."""
        return bisect_right(self._starts, place) - 1

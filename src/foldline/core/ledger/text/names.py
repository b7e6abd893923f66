"""Find the concrete names in a text: paths, URLs, ids, numbers, identifiers, flags.

A text is first cut into runs of the characters that names are made of; each distinct run is then read once.
What a run means follows from its shape alone, so any language and any tool will do; a script that is
written without spaces is no part of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import msgspec

MAX_LINE = 2_000  # characters of one line that are read; longer ones are data, not words
MAX_NAME = 160

CHARACTERS = r"\w./@~+#:$%-"  # of which names are made
URL = r"https?://[^\s\"'<>)\]}`\\,|]{4,400}"
SPACELESS = "\u0e00-\u0eff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff01-\uffef"
"""Of scripts that put no spaces between words, nor between words and a name."""
_RUN = re.compile(rf"[{CHARACTERS}]{{3,}}")
_URL = re.compile(URL)
_SPACELESS = re.compile(f"[{SPACELESS}]")
_HEXADECIMAL = frozenset("0123456789abcdef")
# Suffixes that mark a file when no slash does; after a slash any suffix will do.
_SUFFIXES_WORDS = (
    "astro bash bat c cc cfg cjs conf cpp cs css csv cts cu cxx dart db diff dockerfile ejs el env ex exs "
    "fish go gradle graphql h hbs hpp hs html http ini ipynb java jl js json json5 jsonc jsonl jsx kt kts "
    "less lock log lua m md mdx mjs mk ml mts nix patch php pl plist png po prisma proto ps1 py pyi r rb "
    "rs rst sass scala scss sh sql sqlite svelte svg swift tf toml ts tsx txt vue wasm xml yaml yml zig "
    "zsh"
)
_SUFFIXES = frozenset(_SUFFIXES_WORDS.split())
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_HUMPS = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]|[A-Za-z0-9]_[A-Za-z0-9]")
_TICKET = re.compile(r"[A-Z][A-Z0-9]{1,9}-\d{1,6}|#[A-Za-z]?\d{1,8}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLACE = re.compile(r"(?::\d+)+(?::.*)?$")  # file.py:12:3
_CONTEXT = re.compile(r"(\.\w{1,8})-(\d{1,6})-")  # a line around a search hit: file.py-12-text
_DIFF = re.compile(r"(?:\bdiff --git|---|\+\+\+) [ab]/")  # in a line of a diff that names its files
_SIDE = re.compile(r"(?<= )[ab]/")
_NOWHERE = frozenset(("dev/null", "usr/bin", "bin/bash", "bin/env", "bin/sh"))
_LETTERS = re.compile(r"[A-Za-z]{2}")
_CAPITAL_CODE = re.compile(r"(?=.*\d)(?=.*[A-Z])[A-Z0-9]{6,12}")
_JOINTS = re.compile(r"[.:#@+%~-]+")
_ROUND = re.compile(r"(?:19|20)\d\d|\d{0,3}0{3,}")
_POWERS = frozenset(("1024", "2048", "4096", "8192", "16384", "32768", "65536"))


NameKind = Literal["path", "url", "id", "number", "identifier", "flag"]


class Name(msgspec.Struct, frozen=True, gc=False):
    """A name as written; its spellings share a key: of a path the last two parts, of an id seven letters."""

    kind: NameKind
    key: str
    text: str


def find(text: str) -> list[Name]:
    """List the names of a text in order, each occurrence; lines are read up to `MAX_LINE` characters."""
    lines = [line[:MAX_LINE] for line in text.split("\n")]
    by_line = "://" in text or " a/" in text or " b/" in text or _CONTEXT.search(text)
    return [name for piece in (lines if by_line else ["\n".join(lines)]) for name in in_line(piece)]


def in_line(line: str) -> list[Name]:
    """List the names of one line in order (URLs first)."""
    found: list[Name] = []
    if "://" in line:
        for match in _URL.finditer(line):
            url = match.group().rstrip(".:;")
            found.append(Name("url", url, url))
        line = _URL.sub(" ", line)
    if (" a/" in line or " b/" in line) and _DIFF.search(line):
        line = _SIDE.sub("", line)
    if "-" in line:
        line = _CONTEXT.sub(r"\1:\2: ", line, count=1)
    if not line.isascii():
        line = _SPACELESS.sub(" ", line)
    for run in _RUN.findall(line):
        found += read_run(run)
    return found


@lru_cache(maxsize=16_384)
def read_run(run: str) -> tuple[Name, ...]:
    """Read one run of name characters: the names it holds, often none."""
    run = run.strip(".:%~$+@") if not run.startswith(("./", "../", "~/", "@")) else run.rstrip(".:%")
    if len(run) < 3 or len(run) > MAX_NAME:
        return ()
    special = _special(run)
    if special is not None:
        return special
    if "/" in run:
        path = _path(run)
        if path is not None:
            return path
        return tuple(name for part in run.split("/") for name in _words(part))
    place = _PLACE.search(run)
    if place:
        run = run[: place.start()]
    if _has_suffix(run):
        return (Name("path", run, run),)
    return tuple(_words(run))


def _special(run: str) -> tuple[Name, ...] | None:
    """Flags, tickets, ids and numbers; None where the run is none of them."""
    if run.startswith("--"):
        flag = run[2:].split(":", 1)[0].rstrip("-.")
        return (Name("flag", "--" + flag, "--" + flag),) if len(flag) >= 4 and flag[0].islower() else ()
    if run.isdigit():
        plain = len(run) >= 4 and not _ROUND.fullmatch(run) and run not in _POWERS
        return (Name("number", run, run),) if plain else ()
    if _TICKET.fullmatch(run) or _CAPITAL_CODE.fullmatch(run):
        return (Name("id", run, run),)
    if len(run) >= 7 and _HEXADECIMAL.issuperset(run) and not run.isalpha():
        return (Name("id", run[:7], run),)  # git shows seven digits of an id
    if len(run) == 36 and _UUID.fullmatch(run):
        return (Name("id", run, run),)
    return None


def _path(run: str) -> tuple[Name, ...] | None:
    """Read a run with a slash as a path; None where its parts say that it is none."""
    place = _PLACE.search(run)
    if place:
        run = run[: place.start()]
    run = run.split(":", 1)[0].rstrip("/.")
    parts = [part for part in run.split("/") if part not in ("", ".", "..", "~")]
    key = "/".join(parts[-2:])
    if (
        len(parts) < 2
        and not (parts and _has_suffix(parts[0]))
        and not run.startswith(("./", "../", "~/", "/"))
    ):
        return None
    if len(key) < 5 or key in _NOWHERE or not _LETTERS.search(key):
        return None
    return (Name("path", key, run),)


def _has_suffix(run: str) -> bool:
    stem, dot, suffix = run.rpartition(".")
    return bool(dot) and suffix in _SUFFIXES and len(stem) >= 2 and not stem.endswith(".")


def _words(run: str) -> Iterator[Name]:
    """Yield the identifiers of a run such as `module.someFunction`."""
    for part in _JOINTS.split(run):
        if 6 <= len(part) <= 60 and _HUMPS.search(part) and _IDENTIFIER.fullmatch(part):
            yield Name("identifier", part, part)
        elif (
            7 <= len(part) <= 40
            and _HEXADECIMAL.issuperset(part)
            and not part.isalpha()
            and not part.isdigit()
        ):
            yield Name("id", part[:7], part)
        elif len(part) >= 4 and part.isdigit() and not _ROUND.fullmatch(part) and part not in _POWERS:
            yield Name("number", part, part)

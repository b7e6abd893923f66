"""The span of a secret in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec


class SecretSpan(msgspec.Struct, frozen=True, order=True):
    """A secret at text[start:end]; `kind` is what its mark says, `said` how else the secret is spelled."""

    start: int
    end: int
    kind: str
    said: tuple[str, ...] = ()


def joined(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Return spans in order, those that overlap as one; the first of them names its kind."""
    found: list[SecretSpan] = []
    for span in sorted(spans):
        last = found[-1] if found else None
        if last is None or span.start >= last.end:
            found.append(span)
        elif span != last:
            said = tuple(dict.fromkeys((*last.said, *span.said)))
            found[-1] = SecretSpan(last.start, max(last.end, span.end), last.kind, said)
    return found


# what `cat -n`, `grep -n`, a diff or a quote puts before a line, and how lines end
GUTTER = r"(?:(?:[\w./\-]{1,120}:)?[ \t]{0,8}[0-9]{1,7}[ \t]?[:|\u2192\t\-]|[+>|])?"
BREAK = r"\r?\n"

_REACH = 400  # characters before a needle, and ten times as many after it, that its pattern is tried on


def lines_with(text: str, needle: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of lines that hold a needle, of long ones as far as a secret may reach; none overlap.

    Looking there alone is much faster than looking for a pattern in all of a text.
    """
    done = 0
    at = text.find(needle)
    while at >= 0:
        start = max(text.rfind("\n", max(0, at - _REACH), at) + 1, at - _REACH, done)
        line = text.find("\n", at + len(needle), at + 10 * _REACH)
        done = line if line >= 0 else min(len(text), at + 10 * _REACH)
        yield start, done
        at = text.find(needle, done)


Rule = tuple[str, str, re.Pattern[str]]  # a kind, a text that must be there, and the pattern around it


def compiled(rows: Iterable[tuple[str, str, str]]) -> tuple[Rule, ...]:
    """Return rules with their patterns compiled."""
    return tuple((kind, needle, re.compile(pattern)) for kind, needle, pattern in rows)


def searched(text: str, rules: Sequence[Rule]) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield what rules find in a text, with its kind."""
    for kind, needle, pattern in rules:
        if needle in text:
            for line in lines_with(text, needle):
                yield from ((kind, match) for match in pattern.finditer(text, *line))

"""Private keys and other secrets of several lines: whole, clipped at either end, or with line numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from foldline.core.secrets.span import BREAK, GUTTER, SecretSpan, lines_with

_EDGE = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# a line of base64, or an armour header, behind what `cat -n`, `diff`, `grep -n` or a quote put before it
_GUTTER = r"(?:[ \t]{0,40}+(?:[\w./\-]{0,80}+[:\-])?[0-9]{0,7}+[:|\u2192>+\-]?[ \t]{0,4}+)"
_BODY = r"(?:[A-Za-z0-9+/=]{16,}+|=[A-Za-z0-9+/]{4}|(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\n]{0,80})"
_NEXT = re.compile(rf"(?:[ \t\"',]{{0,8}}(?:\\[nr]|\r|\n)){{1,4}}{_GUTTER}[\"' ]{{0,4}}{_BODY}")
_LAST = re.compile(
    rf"(?:\\[nr]|\r|\n){{1,4}}{_GUTTER}[\"' ]{{0,4}}[A-Za-z0-9+/]{{4,76}}={{0,2}}[\"',]{{0,2}}(?=\\|\s|$)"
)
_SOLID = re.compile(r"[A-Za-z0-9+/=]{32}")  # else it is the name of a key's edges in code, or a placeholder
_MOST = 20_000  # characters of one key: 16,384 bits take 13,000
_PUTTY = re.compile(r"(?<=Private-Lines: )[0-9]{1,3}\s*\n(?:[A-Za-z0-9+/=]{4,}+\s*\n?){1,100}")
_JWK = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\\?\"\s*:\s*\\?\"(?P<secret>[A-Za-z0-9_\-]{22,}+)")
_KIND = "private key"


def blocks(text: str) -> Iterator[SecretSpan]:
    """Yield private keys in a text."""
    if "PRIVATE KEY" in text:
        yield from _armoured(text)
    if "Private-Lines: " in text:
        for match in _PUTTY.finditer(text):
            yield SecretSpan(*match.span(), _KIND)
    if '"kty' in text:
        for match in _JWK.finditer(text):
            yield SecretSpan(*match.span("secret"), _KIND)
    if "Secret" in text and "data" in text:
        yield from _of_kubernetes(text)


def _armoured(text: str) -> Iterator[SecretSpan]:
    """Yield what stands between the edges of a key; where one is missing, as far as it looks like a key."""
    open_at: re.Match[str] | None = None
    done = 0
    for edge in _EDGE.finditer(text):
        if edge[1] == "BEGIN":
            if open_at is not None:
                yield from _clipped(text, open_at)
            open_at = edge
        elif open_at is not None and edge.start() - open_at.end() <= _MOST:
            if _SOLID.search(text, open_at.end(), edge.start()):
                yield SecretSpan(open_at.start(), edge.end(), _KIND)
            open_at, done = None, edge.end()
        else:
            start = _body_start(text, edge.start(), done)
            if start < edge.start():
                yield SecretSpan(start, edge.end(), _KIND)
            open_at, done = None, edge.end()
    if open_at is not None:
        yield from _clipped(text, open_at)


def _clipped(text: str, head: re.Match[str]) -> Iterator[SecretSpan]:
    """Yield a key without its foot, unless it is a head alone."""
    end = _body_end(text, head.end())
    if end > head.end():
        yield SecretSpan(head.start(), end, _KIND)


def _body_end(text: str, at: int) -> int:
    """Return where the lines end that follow the head of a key; the line that was cut off counts."""
    first = at
    while at - first < _MOST and (match := _NEXT.match(text, at)):
        at = match.end()
    if at > first and (match := _LAST.match(text, at)):
        at = match.end()
    return at


_LINE = re.compile(rf"(?:\\[nr]|\r|\n|^){_GUTTER}[\"' ]{{0,4}}{_BODY}[\"',]{{0,2}}(?=\s|\\|$)")


def _body_start(text: str, end: int, done: int) -> int:
    """Return where the lines begin that lead to the foot of a key whose head is missing."""
    first = max(done, end - _MOST)
    lines = list(_LINE.finditer(text, first, end))
    start = end
    for line in reversed(lines):
        if text[line.end() : start].strip(" \t\r\n\\nr\"',+->|0123456789:"):
            break
        start = line.start()
    return start


# ---- a Secret of Kubernetes: whatever stands in its data, in YAML or in JSON

_SECRET = re.compile(r"(?:\b|\\n)kind\\?[\"']?\s{0,4}:\s{0,4}\\?[\"']?Secret\b")
_DOCUMENT = "\n---"
_DATA = re.compile(rf"(?:^|{BREAK}){GUTTER}(?P<indent>[ \t]*)(?:data|stringData):[ \t]*{BREAK}")
_ENTRY = re.compile(
    rf"{GUTTER}"
    r"(?P<indent>[ \t]*)[\w.\-]{1,100}:[ \t]+[\"']?(?P<secret>[^\s\"'\\|>{<$][^\n\"'\\]{3,4000})"
)
_BREAK = re.compile(BREAK)
_JSON_DATA = re.compile(r"\\?\"(?:data|stringData)\\?\"\s{0,4}:\s{0,4}\{(?P<inner>[^{}]{1,20000})\}")
_JSON_VALUE = re.compile(r":\s{0,4}\\?\"(?P<secret>[^\"\\]{4,4000})")


def _of_kubernetes(text: str) -> Iterator[SecretSpan]:
    done = 0
    for line in lines_with(text, "Secret"):
        match = _SECRET.search(text, *line)
        if match is None or match.start() < done:
            continue
        start = max(text.rfind(_DOCUMENT, done, match.start()), done)
        end = text.find(_DOCUMENT, match.end())
        done = len(text) if end < 0 else end
        for data in _DATA.finditer(text, start, done):
            yield from _entries(text, data)
        for data in _JSON_DATA.finditer(text, start, done):
            for value in _JSON_VALUE.finditer(text, *data.span("inner")):
                yield SecretSpan(*value.span("secret"), "secret")


def _entries(text: str, data: re.Match[str]) -> Iterator[SecretSpan]:
    at, outer = data.end(), len(data["indent"])
    while (entry := _ENTRY.match(text, at)) and len(entry["indent"]) > outer:
        yield SecretSpan(*entry.span("secret"), "secret")
        line = _BREAK.search(text, entry.end())
        if line is None:
            return
        at = line.end()

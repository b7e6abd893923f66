"""Private keys and other secrets of several lines: whole, clipped at either end, or with line numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from foldline.core.secrets.span import BREAK, GUTTER, SecretSpan, lines_with

_EDGE = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# lines of base64 or armour headers, behind what `cat -n`, `diff`, `grep -n` or a quote put before them
_GUTTER = r"(?:[ \t]{0,40}+(?:[\w./\-]{0,80}+[:\-])?[0-9]{0,7}+[:|\u2192>+\-]?[ \t]{0,4}+)[\"' ]{0,4}"
_BODY = r"(?:[A-Za-z0-9+/=]{16,}+|=[A-Za-z0-9+/]{4}|(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\n]{0,80})"
_ROWS = re.compile(
    rf"(?:(?<![^\n]){_GUTTER}{_BODY})?(?:(?:[ \t\"',]{{0,8}}{BREAK}){{1,4}}{_GUTTER}{_BODY}){{0,400}}+"
    rf"(?:(?:{BREAK}){{1,4}}{_GUTTER}[A-Za-z0-9+/]{{4,76}}={{0,2}}[\"',]{{0,2}}(?=\s|\\|$))?"  # the last one
)
_FILLER = " \t\r\n\\nr\"',+->|0123456789:"  # what may stand between the rows and the foot
_SOLID = re.compile(r"[A-Za-z0-9+/=]{32}")  # else it is the name of a key's edges in code, or a placeholder
_MOST = 20_000  # characters of one key: 16,384 bits take 13,000
_PUTTY = re.compile(r"(?<=Private-Lines: )[0-9]{1,3}\s*\n(?:[A-Za-z0-9+/=]{4,}+\s*\n?){1,100}")
_JWK = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\"\s*:\s*\"(?P<secret>[A-Za-z0-9_\-]{22,}+)")
_KIND = "private key"


def blocks(text: str) -> Iterator[SecretSpan]:
    """Yield private keys, and what stands in secrets of Kubernetes."""
    if "PRIVATE KEY" in text:
        yield from _armoured(text)
    if "Private-Lines: " in text:
        yield from (SecretSpan(*match.span(), _KIND) for match in _PUTTY.finditer(text))
    if '"kty' in text:
        yield from (SecretSpan(*match.span("secret"), _KIND) for match in _JWK.finditer(text))
    if "Secret" in text and ("data" in text or "Data" in text):
        yield from _of_kubernetes(text)


def _armoured(text: str) -> Iterator[SecretSpan]:
    """Yield what stands between the edges of a key; where one is missing, as far as it looks like a key."""
    done = 0
    for edge, after in pairwise([*_EDGE.finditer(text), None]):
        if edge is None or edge.start() < done:
            continue
        start = end = edge.start()
        first, done = done, edge.end()
        if edge[1] == "END":
            start = _body_start(text, first, end)
            end = edge.end() if start < end else start
        elif after is not None and after[1] == "END" and after.start() - edge.end() <= _MOST:
            done = after.end()
            end = done if _SOLID.search(text, edge.end(), after.start()) else start
        elif (rows := _ROWS.match(text, edge.end())) and rows[0]:
            end = rows.end()
        if end > start:
            yield SecretSpan(start, end, _KIND)


def _body_start(text: str, first: int, end: int) -> int:
    """Return where the lines begin that lead to the foot of a key whose head is missing."""
    rows = [one for one in _ROWS.finditer(text, max(first, end - _MOST), end) if one[0]]
    return rows[-1].start() if rows and not text[rows[-1].end() : end].strip(_FILLER) else end


# ---- a Secret of Kubernetes: whatever stands in its data, in YAML or in JSON

_SECRET = re.compile(r"\bkind[\"']?\s{0,4}:\s{0,4}[\"']?Secret\b")
_DOCUMENT = "\n---"
_DATA = re.compile(rf"(?m)^{GUTTER}(?P<indent>[ \t]*)(?:data|stringData):[ \t]*{BREAK}")
_ENTRY = re.compile(
    rf"{GUTTER}(?P<indent>[ \t]*)[\w.\-]{{1,100}}:[ \t]+[\"']?"
    r"(?P<secret>[^\s\"'|>{<$][^\n\"']{3,4000})[^\n]*\n?"
)
_JSON_DATA = re.compile(r"\"(?:data|stringData)\"\s{0,4}:\s{0,4}\{(?P<inner>[^{}]{1,20000})\}")
_JSON_VALUE = re.compile(r":\s{0,4}\"(?P<secret>[^\"]{4,4000})")


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
            at = data.end()
            while (entry := _ENTRY.match(text, at)) and len(entry["indent"]) > len(data["indent"]):
                yield SecretSpan(*entry.span("secret"), "secret")
                at = entry.end()
        for data in _JSON_DATA.finditer(text, start, done):
            for value in _JSON_VALUE.finditer(text, *data.span("inner")):
                yield SecretSpan(*value.span("secret"), "secret")

"""Secrets by their names: what stands after `password`, `secret`, `token`, `api_key` ..., if it is a value.

The less the place says, the more the form of the value must: `PASSWORD=` in an environment file takes nearly
anything, `token:` in a text only what looks drawn at random.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from foldline.core.secrets.decoded import UNSEEN, as_read
from foldline.core.secrets.plain import (
    FILLER,
    is_count,
    is_mixed,
    is_name,
    is_odd,
    is_plain,
    is_prose,
    is_random,
    masked,
    written_out,
)
from foldline.core.secrets.span import BREAK, GUTTER, SecretSpan

# (letters that a name begins with, what follows); a text without the letters is not searched for the name
_NAME_ROWS = (
    ("pass", r"(?:word|wd|phrase|code|wort|(?=[\"'\\]{0,4}\s{0,3}[:=]))"),
    ("pwd", ""),
    ("secret", ""),
    ("credential", ""),
    ("token", ""),
    ("contrase\u00f1a", ""),
    ("mot_de_passe", ""),
    ("connection", "_?string"),
    ("webhook", "_?url"),
    ("key", ""),
    ("auth", ""),
    ("pat", r"(?=[\"']{0,2}\s{0,3}[:=])"),
    ("dsn", r"(?=[\"']{0,2}\s{0,3}[:=])"),
    ("psk", ""),
    ("cookie", "(?=_)"),
    ("salt", r"(?=[\"']{0,2}\s{0,3}[:=])"),
)
_NAMES = tuple((letters, re.compile(letters + rest)) for letters, rest in _NAME_ROWS)
_KEY_OF = re.compile(
    r"(?:api|app|application|access|account|secret|private|signing|signature|encryption|encrypt|auth|master|service|"
    r"shared|storage|admin|client|license|consumer|deploy|hmac|jwt|ssh|webhook|session|cookie|write|ingest|"
    r"integration|personal|server|host|function|subscription|rest|aes|crypt|cipher|root|sas|preshared|wireguard|"
    r"vapid|primary|secondary|project|team|org|bot|user)[_\-. ]?$"
)
_ENV_KEY = re.compile(r"(?:^|[\s\"'`;])(?:export[ ])?[a-z][a-z0-9]*(?:_[a-z0-9]+)*_$")
_AUTH_OF = re.compile(r"(?:^|[\s\"'_\-./,{(;])(?:http|basic|npm|registry|docker|_)?_?$")
_NOT_AFTER = re.compile(
    r"(?:page|continuation|pagination|public|partition|idempotency|cursor|cancell?ation|[0-9]{12}:|"
    r"(?<![a-z])(?:next|prev|previous|sync|cancel|stop|pad|eos|bos|sep|unk|mask|max|min|num|pub|foreign|sort|cache|"
    r"image|tag|resume|special|design|css))[_\-. ]?$"
)
_SUFFIX = re.compile(
    r"(?:s(?=[\"'\\]{0,4}\s{0,3}[:=]))?(?:_base|[_\-]?[0-9]{1,3}(?![0-9a-z])|[_\-](?:prod(?:uction)?|dev(?:elopment)?|"
    r"test|testing|staging|stage|live|local|main|primary|secondary|old|new|current|value|default|plain|b64|"
    r"base64|v[0-9]|key|string|raw|eu|us|ci|rw|ro|admin|root|user|db|secret|password|backup|dsn))*",
    re.IGNORECASE,
)
_EXPRESSION = r"[a-z_$][\w.$]{0,60}(?:\([^()\n]{0,40}\)|\[[^\[\]\n]{0,40}\])?"
_TO_VALUE = re.compile(
    r"(?P<open>[\"'\\\])]{0,4})(?P<gap>[ \t]{0,24})"
    r"(?:(?P<sep>:[ ]?&?[a-z'][\w.\[\]|?' ]{1,30}[ ]=(?=[ ])|:=|:-(?=[^\s{}]{1,99}\})|=>|=|:"
    r"|,(?=[ \t]*\\{0,3}[\"']))"
    r"|(?P<tag>(?:[ ][\w:.\-]{1,30}=\"[^\"\n]{0,60}\"){0,3}>)"
    r"|(?P<word>(?<=[a-z])[ \t](?:is|was|to|set to|=|est|es|ist|lautet|\u00e8|:)?(?::[ ])?))"
    r"(?P<space>[ \t]{0,24}(?:[|>][+\-]?[ \t]*)?"
    rf"(?:{BREAK}{GUTTER}[ \t]{{1,24}})?"
    rf"(?:{_EXPRESSION}[ ](?:\+|\.|\|\||\?\?|or)[ ](?=\\{{0,3}}[\"'`]))?"  # name + "...", name or "..."
    r"(?:[brfus$@]{1,2}(?=\\{0,3}[\"'])|base64:|!!binary[ ]|\[\]byte\()?(?=\S))",
    re.IGNORECASE,
)
# a name and its value as two fields: `name: DB_PASSWORD` then `value: ...`; `key="Password" value="..."`
_FIELD_BEFORE = re.compile(
    r"\b(?:name|key|id|var|variable|parameter|property|field)\\?[\"']?\s{0,3}[:=>]\s{0,3}\\?[\"']?[\w.\-]{0,60}$",
    re.IGNORECASE,
)
_TO_FIELD = re.compile(
    rf"\\?[\"']?[,;]?(?:[ \t]{{1,60}}|[ \t]{{0,4}}{BREAK}{GUTTER}[ \t]{{0,60}})(?:-\s)?"
    r"\\?[\"']?(?:string)?value\\?[\"']?\s{0,3}[:=]\s{0,3}"
    r"|\\?[\"'],\\?[\"']value\\?[\"']\s{0,3}:\s{0,3}|</(?:name|key)>\s{0,40}<value>",
    re.IGNORECASE,
)
_CLIPPED = 15  # characters of a value with an ellipsis that shows how a secret begins, and no more
_IS_HEAD = re.compile(r"(?:[_\-]|^.{0,5})(?:\.\.\.|\u2026)$")  # "sk-ant-...", not "hunter2..."
_JUDGED = 200  # characters of a value by which it is judged
# (opening, what stands inside as far as it is judged by, closing)
_QUOTED = tuple(
    tuple(re.compile(part) for part in parts)
    for parts in (
        (r"\\{1,3}\"", r"[^\n\\\"]{0,200}+", r"\\{1,3}\""),
        (r"\\{1,3}'", r"[^\n\\']{0,200}+", r"\\{1,3}'"),
        (r"\"\"\"|'''", r"[^\n\"']{0,200}+", r"\"\"\"|'''"),
        (r"\"", r"(?:[^\n\"\\]|\\.){0,200}+", r"\""),
        (r"'", r"(?:[^\n'\\]|\\.){0,200}+", r"'"),
        (r"`", r"[^\n`]{0,200}+", r"`"),
    )
)
_OPENING = re.compile("|".join(opening.pattern for opening, _, _ in _QUOTED))
_PARTS = 5  # parts of a shell's word that are read
_WORD = re.compile(r"[\w!#%^*+=@.\-]{1,200}+(?=[\s;&|]|$)")
_UNBROKEN = re.compile(r"(?:[^\s,;)\]}]\S*)?")
_VARIABLE = re.compile(r"\$[A-Za-z_]\w*")
_BESIDE = 64  # characters beside a variable by which they are judged
_BETWEEN = " _-./:"  # what stands between a variable and the words beside it
_NEXT_PAIR = r"[ ]?[A-Za-z][\w .\-]{0,30}[:=]"
_BARE = re.compile(
    rf"(?:[^\s\"'`<>|;&,\\]|;(?!\s|$|{_NEXT_PAIR})|&(?!&|\s|$|{_NEXT_PAIR}|amp;)|,(?!\s|$|{_NEXT_PAIR}|[\"'\[{{])"
    r"|\\(?![nrt\"'\\]|$)|[\"'](?=[^\s\"'`,;:\])}])){1,200}+"
)
_OBJECT = re.compile(r"\{\\{0,3}[\"'][\w$.\-]{1,60}\\{0,3}[\"']\s{0,3}:")  # an object that begins, no value
_QUOTED_REST = re.compile(r"(?:[^\n\"'\\`]|\\[^\"'nr])*+")
_SOLID = re.compile(r"[^\s\"'`<>|;&,\\]*+")
_TAGGED = re.compile(r"(?:<!\[CDATA\[)?(?P<inner>[^<>\n]{1,400})(?=\]\]>|</)")
_FLAG = re.compile(r"(?:^|[\s\"',\[])--?[\w\-.]{0,30}$")
_ENV = re.compile(r"(?:^|[^\w.$\-])(?:export[ ])?[A-Z][A-Z0-9_]*$")
_IS_WHOLE = re.compile(r"(?:^|[\"'`(\[{,])[\w.\-]*$")  # what stands before the end of a name, and no more
_STRONG = re.compile(r"pass|pwd|contrase|psk|mot_")


class _Part(NamedTuple):
    """A part of a value at text[start:end]; its closing quotes end at `behind`."""

    start: int
    end: int
    behind: int

    @property
    def closed(self) -> bool:
        return self.behind > self.end


def named(text: str) -> Iterator[SecretSpan]:
    """Yield the values in a text that a name says are secret."""
    lower = _lower(text)
    shown = None
    for letters, name in _NAMES:
        done = 0
        for match in name.finditer(lower) if letters in lower else ():
            start, end = match.span()
            if start >= done and _names_a_secret(match[0], lower[max(0, start - 40) : start]):
                shown = masked(text) if shown is None else shown
                found = _after(text, shown, start, end)
                if found is not None:
                    done = found.end
                    yield found


def is_secret_field(name: str, value: str) -> bool:
    """Whether the value of a field of this name is a secret: `{"password": "..."}` once it is parsed."""
    said, value = f'"{as_read(name)}": "', UNSEEN.sub("", value)
    return _may_name_a_secret(said) and any(
        span.start <= len(said)
        for span in named(f'{said}{value.replace(chr(34), chr(39)).replace(chr(10), " ")}"')
    )


@lru_cache(maxsize=1_024)
def _may_name_a_secret(said: str) -> bool:
    """Whether a secret's name stands in what is said before a value: most fields have few names."""
    lower = _lower(said)
    return any(
        _names_a_secret(match[0], lower[max(0, match.start() - 40) : match.start()])
        for letters, name in _NAMES
        if letters in lower
        for match in name.finditer(lower)
    )


def _lower(text: str) -> str:
    """Return a text in lower case and in the same length: one letter grows in lower case."""
    return text.replace("\u0130", "I").lower()


def _names_a_secret(name: str, before: str) -> bool:
    if _NOT_AFTER.search(before):
        return False
    if name == "key":
        return _KEY_OF.search(before) is not None or _ENV_KEY.search(before) is not None
    if name == "auth":
        return _AUTH_OF.search(before) is not None
    return True


def _after(text: str, shown: str, start: int, end: int) -> SecretSpan | None:
    """Return the value behind the name at text[start:end], if it is a secret; `shown` is the text masked."""
    name = text[start:end].lower()
    if text[start:end] in ("PASS", "Pass") and text[end : end + 1] == ":" and text[start - 1 : start] != "_":
        return None  # the verdict of a test
    kind = _kind(name)
    suffix = _SUFFIX.match(text, end)
    end = suffix.end() if suffix else end
    to_field = _TO_FIELD.match(text, end)
    field = to_field is not None and _FIELD_BEFORE.search(text, max(0, start - 90), start) is not None
    match = to_field if field else _TO_VALUE.match(text, end)
    if match is None:
        return None
    tagged = not field and match["tag"] is not None
    read = (
        text if shown[start] == FILLER == shown[match.end()] else shown
    )  # both in one template: it is no template
    found = _tagged(read, match.end()) if tagged else _value(read, match.end())
    if found is None:
        return None
    at, stop, quoted, value = found
    place = "field" if field else _place(text, start, match)
    if place == "list" or not is_likely(name, value, place, quoted=quoted or field or tagged):
        return None
    rest = (_QUOTED_REST if quoted else _SOLID).match(text, stop) if stop - at >= _JUDGED else None
    return SecretSpan(at, rest.end() if rest else stop, kind)


def _place(text: str, start: int, match: re.Match[str]) -> str:
    """Return what the place of a value says: env, flag, prose, comma, list (no place at all), or assigned."""
    before = text[max(0, start - 60) : start]
    if match["word"] is not None:
        return "flag" if not match["word"].strip() and _FLAG.search(before) else "prose"
    if match["sep"] == ",":
        alone = _IS_WHOLE.search(before) and not set(match["open"]) & {")", "]"}
        return "comma" if alone else "list"
    name = text[start : match.start()]
    if (
        match["sep"] == "="
        and not match["gap"]
        and name.upper() == name
        and (not before or _ENV.search(before) or before[-1] in " \t\n\"'-")
    ):
        return "env"
    return "assigned"


def _tagged(text: str, at: int) -> tuple[int, int, bool, str] | None:
    match = _TAGGED.match(text, at)
    return (*match.span("inner"), True, match["inner"]) if match else None


def _value(text: str, at: int) -> tuple[int, int, bool, str] | None:
    """Return start and end of the value at a place, whether it is quoted, and its text.

    What is quoted may hold spaces. Parts of a shell's word that stand side by side are one value: "$A"'...'.
    """
    first = _quoted(text, at)
    if first is None:
        return _bare(text, at)
    parts = [first]
    while (
        len(parts) < _PARTS
        and text[parts[-1].behind - 1] in "\"'"
        and parts[-1].closed
        and (part := _next_part(text, parts[-1].behind))
    ):
        parts.append(part)
    said = (text[part.start : part.end] for part in parts)
    value = "".join(FILLER if _VARIABLE.fullmatch(part) else part for part in said)
    return first.start, parts[-1].end, True, value


def _quoted(text: str, at: int) -> _Part | None:
    """Return what is in quotes at a place, as far as it is judged by."""
    for opening, inner, closing in _QUOTED:
        if mark := opening.match(text, at):
            match = inner.match(text, mark.end())
            end = match.end() if match else mark.end()
            if closed := closing.match(text, end):
                return _Part(mark.end(), end, closed.end())
            return _Part(mark.end(), end, end) if end - mark.end() >= _JUDGED else None
    return None


def _next_part(text: str, at: int) -> _Part | None:
    """Return what stands in quotes right behind other quotes, or the word that goes on there."""
    if match := _WORD.match(text, at):
        return _Part(match.start(), match.end(), match.end())
    if text.startswith("`", at) or (text.startswith('"', at) and text[at - 2] == "\\"):
        return None  # a fence; the end of the JSON that all of it stands in
    part = _quoted(text, at)
    return part if part is not None and _UNBROKEN.fullmatch(text, part.start, part.end) else None


def _bare(text: str, at: int) -> tuple[int, int, bool, str] | None:
    """Return the value at a place that is not in quotes, or in ones that do not end."""
    mark = _OPENING.match(text, at)
    at = mark.end() if mark else at
    match = _BARE.match(text, at)
    if match is None or _OBJECT.match(text, at):
        return None
    value = match[0]
    if len(value) <= _CLIPPED and _IS_HEAD.search(value):
        return None
    if not value.startswith(("$", "%", "{", "(")):
        value = value.rstrip(",;:)]}\"'.\u2026")
    return at, at + len(value), False, value


def is_likely(name: str, value: str, place: str, *, quoted: bool) -> bool:
    """Whether the value after a secret's name is one."""
    value = value.strip()
    if FILLER in value:
        value = value.replace(FILLER, "")[:_BESIDE].lstrip(
            "!*&"
        )  # beside a variable they open no tag or anchor
        if is_plain(value):
            return False
        value = value.strip(_BETWEEN)
    if is_plain(value):
        return False
    value = written_out(value)
    if len(value) < 6 or is_prose(value) or (name.startswith("token") and is_count(value)):
        return False
    strong = _STRONG.match(name) is not None
    mixed, odd = is_mixed(value), is_odd(value)
    if " " in value:
        return (strong and (mixed or odd or value.count(" ") >= 3)) or (mixed and odd)
    if place == "env":
        return not value.isdigit() and not value.lower().endswith(
            (".json", ".pem", ".txt", ".yaml", ".yml", ".key")
        )
    if place in ("prose", "comma"):
        return (
            len(value) >= 8
            and (mixed or (odd and quoted))
            and not is_name(value)
            and (is_random(value) or (mixed and odd) or (strong and place == "comma"))
        )
    if place == "flag":
        return not value.startswith("-") and (mixed or odd) and not is_name(value)
    if is_name(value):
        return False
    if strong:
        return mixed or (odd and (quoted or not value.endswith(("?", "=")))) or is_random(value)
    if place == "field":
        return mixed or odd or is_random(value)
    return (len(value) >= 16 and (mixed or is_random(value))) or (
        len(value) >= 8 and mixed and (odd or is_random(value))
    )


def _kind(name: str) -> str:
    if _STRONG.match(name):
        return "password"
    return next((word for word in ("secret", "credential", "token") if word in name), "key")

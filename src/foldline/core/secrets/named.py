"""Secrets by their names: what follows `password`, `secret`, `token`, `api_key` ..., if it is a value.

The less the place says, the more the form of the value must: `PASSWORD=` in an environment file takes nearly
anything, `token:` in a text only what looks drawn at random.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from foldline.core.secrets.decoded import as_read
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
)
from foldline.core.secrets.span import BREAK, GUTTER, SecretSpan

_KEY_OF = (
    r"(?:(?:api|app|application|access|account|secret|private|signing|signature|encryption|encrypt|auth|master|"
    r"service|shared|storage|admin|client|license|consumer|deploy|hmac|jwt|ssh|webhook|session|cookie|write|"
    r"ingest|integration|personal|server|host|function|subscription|rest|aes|crypt|cipher|root|sas|preshared|"
    r"wireguard|vapid|primary|secondary|project|team|org|bot|user)[_\-. ]?"
    r"|(?:^|[\s\"'`;])(?:export[ ])?[a-z][a-z0-9]*(?:_[a-z0-9]+)*_)$"
)
_AUTH_OF = r"(?:^|[\s\"'_\-./,{(;])(?:http|basic|npm|registry|docker|_)?_?$"
_ASSIGNED = r"(?=[\"']{0,4}\s{0,3}[:=])"
# (letters that a name begins with, what follows, what leads up to it)
_NAMES = tuple(
    (letters, re.compile(letters + rest), re.compile(before))
    for letters, rest, before in (
        ("pass", rf"(?:word|wd|phrase|code|wort|{_ASSIGNED})", ""),
        *((name, "", "") for name in ("pwd", "secret", "credential", "token", "psk")),
        *((name, "", "") for name in ("contrase\u00f1a", "mot_de_passe")),
        *((name, _ASSIGNED, "") for name in ("pat", "dsn", "salt")),
        ("connection", "_?string", ""),
        ("webhook", "_?url", ""),
        ("cookie", "(?=_)", ""),
        ("key", "", _KEY_OF),
        ("auth", "", _AUTH_OF),
    )
)
_NOT_AFTER = re.compile(
    r"(?:page|continuation|pagination|public|partition|idempotency|cursor|cancell?ation|[0-9]{12}:|"
    r"(?<![a-z])(?:next|prev|previous|sync|cancel|stop|pad|eos|bos|sep|unk|mask|max|min|num|pub|foreign|sort|cache|"
    r"image|tag|resume|special|design|css))[_\-. ]?$"
)
_SUFFIX = re.compile(
    r"(?:s(?=[\"']{0,4}\s{0,3}[:=]))?(?:_base|[_\-]?[0-9]{1,3}(?![0-9a-z])|[_\-](?:prod(?:uction)?|dev(?:elopment)?|"
    r"test|testing|staging|stage|live|local|main|primary|secondary|old|new|current|value|default|plain|b64|"
    r"base64|v[0-9]|key|string|raw|eu|us|ci|rw|ro|admin|root|user|db|secret|password|backup|dsn))*",
    re.IGNORECASE,
)
_EXPRESSION = r"[a-z_$][\w.$]{0,60}(?:\([^()\n]{0,40}\)|\[[^\[\]\n]{0,40}\])?"
_TO_VALUE = re.compile(
    r"(?P<open>[\"'\])]{0,4})(?P<gap>[ \t]{0,24})"
    r"(?:(?P<sep>:[ ]?&?[a-z'][\w.\[\]|?' ]{1,30}[ ]=(?=[ ])|:=|:-(?=[^\s{}]{1,99}\})|=>|=|:"
    r"|,(?=[ \t]*[\"']))"
    r"|(?P<tag>(?:[ ][\w:.\-]{1,30}=\"[^\"\n]{0,60}\"){0,3}>)"
    r"|(?P<word>(?<=[a-z])[ \t](?:is|was|to|set to|=|est|es|ist|lautet|\u00e8|:)?(?::[ ])?))"
    r"(?P<space>[ \t]{0,24}(?:[|>][+\-]?[ \t]*)?"
    rf"(?:{BREAK}{GUTTER}[ \t]{{1,24}})?"
    rf"(?:{_EXPRESSION}[ ](?:\+|\.|\|\||\?\?|or)[ ](?=\\{{0,3}}[\"'`]))?"  # name + "...", name or "..."
    r"(?:[brfus$@]{1,2}(?=[\"'])|base64:|!!binary[ ]|\[\]byte\()?(?=\S))",
    re.IGNORECASE,
)
# a name and its value as two fields: `name: DB_PASSWORD` then `value: ...`; `key="Password" value="..."`
_FIELD_BEFORE = re.compile(
    r"\b(?:name|key|id|var|variable|parameter|property|field)[\"']?\s{0,3}[:=>]\s{0,3}[\"']?[\w.\-]{0,60}$",
    re.IGNORECASE,
)
_TO_FIELD = re.compile(
    rf"[\"']?[,;]?(?:[ \t]{{1,60}}|[ \t]{{0,4}}{BREAK}{GUTTER}[ \t]{{0,60}})(?:-\s)?"
    r"[\"']?(?:string)?value[\"']?\s{0,3}[:=]\s{0,3}"
    r"|[\"'],[\"']value[\"']\s{0,3}:\s{0,3}|</(?:name|key)>\s{0,40}<value>",
    re.IGNORECASE,
)
_JUDGED = 200  # characters of a value by which it is judged
_QUOTES = ('"""', "'''", '"', "'", "`")
_INSIDE = {  # a quote between letters is part of what is quoted
    quote: re.compile(rf"(?:[^\n{quote[0]}]|(?<=\w){quote[0]}(?=\w)){{0,{_JUDGED}}}+") for quote in _QUOTES
}
_PARTS = 5  # parts of a shell's word that are read
_WORD = re.compile(r"[\w!#%^*+=@.\-]{1,200}+(?=[\s;&|]|$)")
_UNBROKEN = re.compile(r"(?:[^\s,;)\]}]\S*)?")
_VARIABLE = re.compile(r"\$[A-Za-z_]\w*")
_BESIDE = 64  # characters next to a variable that are judged
_BETWEEN = " _-./:"  # what separates a variable from the words next to it
_NEXT_PAIR = r"[ ]?[A-Za-z][\w .\-]{0,30}[:=]"
_BARE = re.compile(
    rf"(?:[^\s\"'`<>|;&,\\]|;(?!\s|$|{_NEXT_PAIR})|&(?!&|\s|$|{_NEXT_PAIR}|amp;)|,(?!\s|$|{_NEXT_PAIR}|[\"'\[{{])"
    r"|\\(?![\"'\\]|$)|[\"'](?=[^\s\"'`,;:\])}])){1,200}+"
)
_CLIPPED = re.compile(r"(?=.{1,15}$)(?:.*[_\-]|.{0,5})(?:\.\.\.|\u2026)$")  # "sk-ant-...", not "hunter2..."
_OBJECT = re.compile(r"\{[\"'][\w$.\-]{1,60}[\"']\s{0,3}:")  # an object that begins, no value
_REST = {
    True: re.compile(r"[^\n\"'`]*+"),
    False: re.compile(r"[^\s\"'`<>|;&,]*+"),
}  # of a long value, quoted or not
_TAGGED = re.compile(r"(?:<!\[CDATA\[)?(?P<inner>[^<>\n]{1,400})(?=\]\]>|</)")
_FLAG = re.compile(r"(?:^|[\s\"',\[])--?[\w\-.]{0,30}$")
_ENV = re.compile(r"(?:^|[^\w.$\-])(?:export[ ])?[A-Z][A-Z0-9_]*$")
_IS_WHOLE = re.compile(r"(?:^|[\"'`(\[{,])[\w.\-]*$")  # all that may precede the end of a name
_FOLDER = re.compile(r"[~/]|[A-Za-z]:[\\/]")
_STRONG = re.compile(r"pass|pwd|contrase|psk|mot_")


class _Value(NamedTuple):
    """A value at text[start:end]; where it is in quotes, they end at `behind`."""

    start: int
    end: int
    text: str
    behind: int = 0


def named(text: str) -> Iterator[SecretSpan]:
    """Yield the values in a text that a name says are secret."""
    names, done = sorted(_names(_lower(text))), 0
    shown = masked(text) if names else ""
    for start, end in names:
        if start >= done and (found := _after(text, shown, start, end)) is not None:
            done = found.end
            yield found


def is_secret_field(name: str, value: str) -> bool:
    """Whether the value of a field of this name is a secret: `{"password": "..."}` once it is parsed."""
    said = f'"{as_read(name)}": "'
    read = as_read(value).replace('"', "'").replace("\n", " ")
    return _may_name_a_secret(said) and any(span.start <= len(said) for span in named(f'{said}{read}"'))


@lru_cache(maxsize=1_024)
def _may_name_a_secret(said: str) -> bool:
    """Whether the text before a value holds the name of a secret: most fields have few names."""
    return any(_names(_lower(said)))


def _lower(text: str) -> str:
    """Return a text in lower case and in the same length: one letter grows in lower case."""
    return text.replace("\u0130", "I").lower()


def _names(lower: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of names of secrets."""
    for letters, name, leads in _NAMES:
        for match in name.finditer(lower) if letters in lower else ():
            before = lower[max(0, match.start() - 40) : match.start()]
            if leads.search(before) and not _NOT_AFTER.search(before):
                yield match.span()


def _after(text: str, shown: str, start: int, end: int) -> SecretSpan | None:
    """Return the value after the name at text[start:end], if it is a secret; `shown` is the text masked."""
    name = text[start:end].lower()
    if text[start:end] in ("PASS", "Pass") and text[end : end + 1] == ":" and text[start - 1 : start] != "_":
        return None  # the verdict of a test
    suffix = _SUFFIX.match(text, end)
    end = suffix.end() if suffix else end
    kind = _kind(text[start:end].lower())
    field = _TO_FIELD.match(text, end) if _FIELD_BEFORE.search(text, max(0, start - 90), start) else None
    match = field or _TO_VALUE.match(text, end)
    if match is None:
        return None
    if shown[start] == FILLER == shown[match.end()]:  # both inside one "template": it is none
        shown = text
    tagged = _TAGGED.match(shown, match.end()) if not field and match["tag"] else None
    if tagged is not None:
        value = _Value(*tagged.span("inner"), tagged["inner"], tagged.end())
    elif not field and match["tag"]:
        return None
    else:
        value = _value(shown, match.end())
    place = "field" if field else _place(text, start, match)
    if value is None or place == "list":
        return None
    quoted = value.behind > 0
    if not is_likely(name, value.text, place, quoted=quoted or field is not None):
        return None
    rest = _REST[quoted].match(text, value.end) if value.end - value.start >= _JUDGED else None
    return SecretSpan(value.start, rest.end() if rest else value.end, kind)


def _place(text: str, start: int, match: re.Match[str]) -> str:
    """Return what the place of a value says: env, flag, prose, comma, list (no place at all), or assigned."""
    before = text[max(0, start - 60) : start]
    if match["word"] is not None:
        return "flag" if not match["word"].strip() and _FLAG.search(before) else "prose"
    if match["sep"] == ",":
        alone = _IS_WHOLE.search(before) and not set(match["open"]) & {")", "]"}
        return "comma" if alone else "list"
    capitals = match["sep"] == "=" and not match["gap"] and text[start : match.start()].isupper()
    env = capitals and (not before or before[-1] in " \t\n\"'-" or _ENV.search(before))
    return "env" if env else "assigned"


def _value(text: str, at: int) -> _Value | None:
    """Return the value at a place; what is quoted may hold spaces.

    Adjacent parts of a shell word are one value: "$A"'...'.
    """
    first = _quoted(text, at)
    if first is None:
        return _bare(text, at)
    parts = [first]
    while len(parts) < _PARTS and (part := _next_part(text, parts[-1])):
        parts.append(part)
    said = "".join(FILLER if _VARIABLE.fullmatch(part.text) else part.text for part in parts)
    return _Value(first.start, parts[-1].end, said, parts[-1].behind)


def _quoted(text: str, at: int) -> _Value | None:
    """Return what is in quotes at a place, as far as it is judged by."""
    quote = next((quote for quote in _QUOTES if text.startswith(quote, at)), "")
    inner = _INSIDE[quote].match(text, at + len(quote)) if quote else None
    if inner is None:
        return None
    closed = text.startswith(quote, inner.end())
    if not closed and len(inner[0]) < _JUDGED:
        return None
    return _Value(*inner.span(), inner[0], inner.end() + len(quote) * closed)


def _next_part(text: str, last: _Value) -> _Value | None:
    """Return the quoted text right after other quotes, or the rest of the word."""
    at = last.behind
    if at == last.end or text[at - 1] not in "\"'" or text.startswith("`", at):  # a fence
        return None
    if match := _WORD.match(text, at):
        return _Value(*match.span(), match[0], match.end())
    part = _quoted(text, at)
    return part if part is not None and _UNBROKEN.fullmatch(part.text) else None


def _bare(text: str, at: int) -> _Value | None:
    """Return the value at a place that is not in quotes, or in ones that do not end."""
    at += next((len(quote) for quote in _QUOTES if text.startswith(quote, at)), 0)
    match = _BARE.match(text, at)
    if match is None or _OBJECT.match(text, at) or _CLIPPED.match(match[0]):
        return None
    value = match[0]
    if not value.startswith(("$", "%", "{", "(")):
        value = value.rstrip(",;:)]}\"'.\u2026")
    return _Value(at, at + len(value), value)


def is_likely(name: str, value: str, place: str, *, quoted: bool) -> bool:
    """Whether the value after a secret's name is one."""
    value = value.strip()
    if FILLER in value:
        value = value.replace(FILLER, "")[:_BESIDE].lstrip("!*&")  # they open no tag or anchor there
        if is_plain(value):
            return False
        value = value.strip(_BETWEEN)
    if is_plain(value) or len(value) < 6 or is_prose(value) or (name.startswith("token") and is_count(value)):
        return False
    if name == "pwd" and _FOLDER.match(value):
        return False
    strong = _STRONG.match(name) is not None
    mixed, odd = is_mixed(value), is_odd(value)
    if " " in value:
        return (strong and (mixed or odd or value.count(" ") >= 3)) or (mixed and odd)
    if value.isdigit():
        told = place in ("env", "assigned", "field") and name != "pass"
        return told and strong and len(value) >= 8
    if place == "env":
        return not value.lower().endswith(_FILES)
    if is_name(value):
        return False
    drawn = is_random(value) or (mixed and odd)
    if place in ("prose", "comma"):
        sure = drawn or (strong and place == "comma")
        return len(value) >= 8 and (mixed or (odd and quoted)) and sure
    if place == "flag":
        return not value.startswith("-") and (mixed or odd)
    if place == "field" or strong:
        return mixed or drawn or (odd and (quoted or not value.endswith(("?", "="))))
    return len(value) >= 8 and (mixed or is_random(value)) and (len(value) >= 16 or (mixed and drawn))


_FILES = (".json", ".pem", ".txt", ".yaml", ".yml", ".key")


def _kind(name: str) -> str:
    """Return the kind for a mark: the last telling word of a name, as in `SECRET_KEY_BASE`."""
    if _STRONG.match(name):
        return "password"
    words = ("secret", "credential", "token", "key")
    return max(words, key=name.rfind) if any(word in name for word in words) else "key"

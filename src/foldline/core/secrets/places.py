"""Secrets by their place: the password of a URL, a header, an option of a command.

One line a place. The group `secret` of a pattern is what goes, unless it is a variable or a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from foldline.core.secrets.plain import is_literal, is_mixed, is_name, is_odd, is_random
from foldline.core.secrets.span import SecretSpan, compiled, lines_with, searched

_HEAD = (
    r"(?:[\"']{0,4}\s{0,3}[:=]|(?<=\([\"']\w{13})[\"'],)\s{0,3}[\"'`]{0,4}(?:[A-Za-z\-]{3,16}\s+)?"
    r"(?P<secret>[^\s\"'\\,;`]{8,}+)"
)
_PGPASS = (
    r"(?<![\w.\-*])(?:[\w.\-]{1,100}|\*):(?:[0-9]{4,5}|\*):(?:[A-Za-z_][\w\-]{0,60}|\*):(?:[\w.\-]{1,60}|\*):"
    r"(?P<secret>[^\s\"'\\]{4,200})(?=\s|\\|[\"']|$)"
)
# (kind, a word that must be there, pattern)
_ROWS = (
    ("password", "mount", r"\bmount\b[^\n]{0,300}?[, ]pass(?:word)?=(?P<secret>[^\s,\"']{4,200})"),
    ("password", "pass:", r"(?<=[ =\"'])pass:(?P<secret>[^\s\"'|;&]{4,200})"),
    ("password", "send ", r"\bsend (?:-- )?\"(?P<secret>[^\"\s]{6,100})\r\""),
    ("password", "dentified ", r"(?i:\bidentified (?:with \w+ )?by )'(?P<secret>[^'\n]{4,200})'"),
    ("password", "DENTIFIED ", r"(?i:\bidentified (?:with \w+ )?by )'(?P<secret>[^'\n]{4,200})'"),
    ("password", "PASSWORD '", r"\bPASSWORD '(?P<secret>[^'\n]{4,200})'"),
    ("password", "password '", r"\bpassword '(?P<secret>[^'\n]{4,200})'"),
    ("password", "login", r"\b(?:machine\s+\S{1,200}|default)\s+login\s+\S+\s+password\s+(?P<secret>\S{4,})"),
    ("password", "login", r"(?m)^\s*login\s+\S{1,200}\s+password\s+(?P<secret>\S{4,300})"),
    ("password", "password", r"(?m)^[ \t]*(?:enable )?password (?:[057] )?(?P<secret>[^\s\\(]{8,})[ \t]*$"),
    ("credentials", "uthorization", f"uthorization{_HEAD}"),
    ("credentials", "AUTHORIZATION", f"AUTHORIZATION{_HEAD}"),
    ("token", "earer", r"\b[Bb]earer\s+(?P<secret>[A-Za-z0-9_\-.~+/=]{16,}+)"),
    ("credentials", "Basic ", r"\bBasic (?P<secret>(?=[A-Za-z+/]{0,40}[0-9])[\w+/]{12,}+={0,2})(?![\w ])"),
    ("key", "AccountKey=", r"AccountKey=(?P<secret>[A-Za-z0-9+/=]{40,}+)"),
    ("key", "SharedAccessKey=", r"SharedAccessKey=(?P<secret>[A-Za-z0-9+/=]{30,}+)"),
    ("token", "_auth", r"_auth(?:Token)?\s{0,3}=\s{0,3}[\"']?(?P<secret>[^\s\"'$]{8,400})"),
    ("credentials", '"auth"', r"\"auth\"\s{0,3}:\s{0,3}\"(?P<secret>[A-Za-z0-9+/=]{12,}+)"),
    ("signature", "ignature=", r"[?&;](?:X-(?:Amz|Goog)-)?[Ss]ignature=(?P<secret>[\w%+/=\-~]{16,}+)"),
    ("signature", "sig=", r"[?&;]sig=(?P<secret>[A-Za-z0-9%+/=_\-]{16,}+)"),
    ("token", "X-Amz-Security-Token=", r"X-Amz-Security-Token=(?P<secret>[A-Za-z0-9%+/=_\-]{16,}+)"),
    *(("password", f":{port}:", _PGPASS) for port in ("5432", "5433", "6432", "*")),
    ("key", "set aws_", r"\bset aws_(?:secret_access_key|session_token) [\"']?(?P<secret>[\w+/=]{20,}+)"),
)  # fmt: skip

# places where a value must look drawn at random
_QUERY = re.compile(r"[?&;](?P<name>[A-Za-z][\w.\-]{1,40}+)=(?P<secret>[^\s\"'&#<>;\\)\]`,]{8,})")
_QUERY_NAME = re.compile(
    r"(?:key|token|secret|passw(?:or)?d|pwd|pass|auth|code|sid|session|sessionid|credential|hash|hmac|jwt|ticket|"
    r"apikey|access)$"
)
_PASSWORDS = ("pass", "pwd", "token", "apikey", "api_key", "access_token", "key", "secret")
_COOKIE = re.compile(
    r"(?:\b(?:set-)?cookies?[\"']?\s{0,2}[:=]\s{0,2}[\"'`]?|(?<=\s)(?:-b|--cookie)[ =][\"']?)"
    r"(?P<pairs>[\w.\-%]{1,60}=[^\n\"'`\\]{6,4000})",
    re.IGNORECASE,
)
_PAIR = re.compile(r"(?P<name>[\w.\-%]{1,60})=(?P<secret>[^\s;,]{8,})")
_ATTRIBUTES = frozenset(("path", "domain", "expires", "max-age", "samesite", "version", "comment"))
_PLACES = compiled(_ROWS)

_USER = re.compile(r"://(?P<user>[^\s/:@\"'<>`?#]{0,100}+):(?P<rest>[^\s\"'<>`]{1,300}+)")
_ALONE = re.compile(r"://(?P<secret>[^\s/:@\"'<>`?#]{20,200}+)@(?=[\w\[])")  # a token in the place of a user
_HOST = re.compile(r"@(?=\[?[A-Za-z0-9$_{%][\w.\-${}%]*(?::[0-9]|[/?#,\])}:;.]|$))")
_PORT = re.compile(r"[0-9]{1,5}(?:[/?#]|$)")


def placed(text: str) -> Iterator[SecretSpan]:
    """Yield the secrets in known places of a text."""
    for kind, match in searched(text, _PLACES):
        value = match["secret"]
        if is_literal(value) and (kind != "credentials" or _is_drawn(value)):
            yield SecretSpan(*match.span("secret"), kind)
    if "://" in text and "@" in text:
        yield from _in_urls(text)
    if "=" in text:
        yield from _in_queries(text)
        yield from _in_cookies(text)


def _is_drawn(value: str) -> bool:
    return (is_mixed(value) or is_odd(value) or is_random(value)) and not is_name(value)


def _in_urls(text: str) -> Iterator[SecretSpan]:
    """Yield the passwords of URLs: up to the last `@` that a host follows; one may hold `@` and `/`.

    A user without one is a token where it is long and looks drawn at random.
    """
    for match in _ALONE.finditer(text):
        value = match["secret"]
        if is_literal(value) and is_mixed(value) and is_random(value):
            yield SecretSpan(*match.span("secret"), "token")
    for match in _USER.finditer(text):
        rest = match["rest"]
        hosts = list(_HOST.finditer(rest)) if "@" in rest and not _PORT.match(rest) else []
        if not hosts or "://" in rest[: hosts[0].start()]:
            continue
        last = hosts[0]
        for host in hosts[1:]:
            between = rest[last.end() : host.start()]
            if "?" in between or "://" in between or "," in between:
                break  # the `@` of a query, of another URL, or of a list of servers
            last = host
        password = rest[: last.start()]
        if is_literal(password) and not rest[last.end() :].startswith(("sha256:", "sha512:")):
            start = match.start("rest")
            yield SecretSpan(start, start + len(password), "password")


def _in_queries(text: str) -> Iterator[SecretSpan]:
    for match in _QUERY.finditer(text):
        name, value = match["name"].lower(), match["secret"]
        if not _QUERY_NAME.search(name) or is_name(value) or not is_literal(value):
            continue
        mixed = is_mixed(value)
        sure = mixed and (len(value) >= 16 or (is_odd(value) and name.startswith(_PASSWORDS)))
        if sure or is_random(value):
            yield SecretSpan(*match.span("secret"), "token" if "token" in name else "key")


def _in_cookies(text: str) -> Iterator[SecretSpan]:
    for needle in ("ookie", "OOKIE", " -b "):
        for start, end in lines_with(text, needle) if needle in text else ():
            for match in _COOKIE.finditer(text, start, end):
                yield from _cookies(text, *match.span("pairs"))


def _cookies(text: str, start: int, end: int) -> Iterator[SecretSpan]:
    for pair in _PAIR.finditer(text, start, end):
        value = pair["secret"]
        if pair["name"].lower() in _ATTRIBUTES or is_name(value) or not is_literal(value):
            continue
        if is_random(value) or (len(value) >= 16 and is_mixed(value)):
            yield SecretSpan(*pair.span("secret"), "cookie")

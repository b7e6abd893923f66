"""Secrets out of everything that a summariser reads and everything that a checkpoint stores.

Three kinds of rule, each linear in the text:

1. shapes: tokens that say by their form what they are (a vendor's prefix, a JWT, a private key block);
2. places: the password of a URL, an Authorization header, `curl -u`;
3. names: what stands after `password`, `secret`, `token`, `api_key` ... and `=` or `:`, if it looks like a
   value and not like code, a placeholder or a count.

Bare hashes, UUIDs and base64 match none of them. Every shape starts and ends at the border of its own
alphabet, so taking one secret out can never uncover or hide another: redacting twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

import msgspec

MARK = "[redacted: "

_START = r"(?<![A-Za-z0-9_\-])"
_END = r"(?![A-Za-z0-9_\-])"


def _token(body: str) -> re.Pattern[str]:
    return re.compile(f"{_START}(?:{body}){_END}")


# kind, words of which one must stand in the text (a cheap test), shape
_SHAPES: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    (
        "private key",
        ("PRIVATE KEY",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[^\-]*+(?:-(?!----)[^\-]*+)*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:(?:\\[nrt]|\s)*+[A-Za-z0-9+/=]{16,}+)*+)"
        ),
    ),
    ("AWS key", ("AKIA", "ASIA"), _token(r"A(?:KIA|SIA)[A-Z0-9]{16}")),
    ("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _token(r"gh[pousr]_[A-Za-z0-9]{36,}+")),
    ("GitHub token", ("github_pat_",), _token(r"github_pat_[A-Za-z0-9_]{22,}+")),
    ("GitLab token", ("glpat-",), _token(r"glpat-[A-Za-z0-9_\-]{16,}+")),
    ("Anthropic key", ("sk-ant-",), _token(r"sk-ant-[A-Za-z0-9_\-]{16,}+")),
    ("API key", ("sk-",), _token(r"sk-(?=[A-Za-z_\-]{0,200}[0-9])[A-Za-z0-9_\-]{20,}+")),
    (
        "Stripe key",
        ("k_live_", "k_test_", "whsec_"),
        _token(r"(?:[rs]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}+"),
    ),
    ("Slack token", ("xox", "xapp-"), _token(r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9\-]{10,}+")),
    (
        "Slack webhook",
        ("hooks.slack.com/",),
        re.compile(r"(?<=hooks\.slack\.com/services/)T[A-Z0-9]+/B[A-Z0-9]+/\w+"),
    ),
    ("Google key", ("AIza",), _token(r"AIza[A-Za-z0-9_\-]{35}")),
    ("Google token", ("ya29.",), _token(r"ya29\.[A-Za-z0-9_\-]{20,}+")),
    ("Google secret", ("GOCSPX-",), _token(r"GOCSPX-[A-Za-z0-9_\-]{20,}+")),
    ("npm token", ("npm_",), _token(r"npm_[A-Za-z0-9]{36}")),
    ("PyPI token", ("pypi-",), _token(r"pypi-[A-Za-z0-9_\-]{50,}+")),
    ("Hugging Face token", ("hf_",), _token(r"hf_[A-Za-z0-9]{30,}+")),
    ("Groq key", ("gsk_",), _token(r"gsk_[A-Za-z0-9]{32,}+")),
    ("xAI key", ("xai-",), _token(r"xai-[A-Za-z0-9]{40,}+")),
    ("SendGrid key", ("SG.",), _token(r"SG\.[A-Za-z0-9_\-]{16,}+\.[A-Za-z0-9_\-]{16,}+")),
    ("DigitalOcean token", ("do",), _token(r"do[opr]_v1_[a-f0-9]{64}")),
    ("Databricks token", ("dapi",), _token(r"dapi[a-f0-9]{32}")),
    ("JWT", ("eyJ",), _token(r"eyJ[A-Za-z0-9_\-]{8,}+\.eyJ[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]{8,}+")),
)

_PLACES: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    # the group `secret` is what goes
    ("password", "://", re.compile(r"://[^\s/:@\"'<>]{0,100}+:(?P<secret>[^\s/@\"'<>]{1,300}+)@")),
    (
        "credentials",
        "uthorization",
        re.compile(
            r"[Aa]uthorization[\"'\\]{0,4}\s{0,3}[:=]\s{0,3}[\"'\\]{0,4}"
            r"(?:[A-Za-z]{3,12}\s+)?(?P<secret>[^\s\"'\\,;]{8,}+)"
        ),
    ),
    ("token", "earer", re.compile(r"\b[Bb]earer\s+(?P<secret>[A-Za-z0-9_\-.~+/=]{16,}+)")),
    (
        "password",
        "curl",
        re.compile(
            r"\bcurl\b[^\n|;]{0,300}?\s(?:-u|--user)[ =][\"']?[^\s:\"']{1,100}:(?P<secret>[^\s\"']{3,300})"
        ),
    ),
    ("key", "AccountKey=", re.compile(r"AccountKey=(?P<secret>[A-Za-z0-9+/=]{40,}+)")),
    ("signature", "sig=", re.compile(r"[?&]sig=(?P<secret>[A-Za-z0-9%+/=_\-]{20,}+)")),
)

_NAMES = tuple(
    re.compile(word) for word in ("passw(?:or)?d", "passphrase", "secret", "credentials?", "token", "key")
)
_KEY_OF = re.compile(r"(?:api|access|secret|private|signing|encryption|auth|master)[_\-]?$")
_NAMED = re.compile(
    r"(?:_base|_[0-9]{1,3})?[\"'\\]{0,4}(?P<gap>\s{0,3})(?P<sep>[:=]|(?<=[a-z]) )(?P<space>[ \t]{0,3})"
    r"(?:\\{0,3}[\"'](?P<quoted>[^\s\"'\\]{1,200})|(?P<bare>[^\s\"'`;&|<>,\\]{1,200}))",
    re.IGNORECASE,
)
_REST = {"quoted": re.compile(r"[^\s\"'\\]*+"), "bare": re.compile(r"[^\s\"'`;&|<>,\\]*+")}
_DIGIT, _LETTER, _ODD = re.compile(r"[0-9]"), re.compile(r"[^\W\d_]"), re.compile(r"[!@#^&+=]")
_FLAG = re.compile(r"(?:^|\s)--[\w\-]{0,24}$")
_PAGING = re.compile(
    r"(?:page|next|continuation|sync|cancellation|cancel|stop|pad|eos|bos)[_\-]?$", re.IGNORECASE
)
_CODE = re.compile(
    r"[(){}\[\]$*]|^%|^[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+$|^[<@/.~]|process\.env|environ|\.\.\.|…|://"
)
_PLACEHOLDER = re.compile(
    r"^(?:x{3,}|your[_\-]?\w*|my[_\-]\w+|changeme|example\w*|dummy\w*|placeholder\w*|none|null|true|false|"
    r"undefined|string|bytes|str)$",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """Replace every secret in `text` by `[redacted: kind]`.

    Linear in the text; redacting twice changes nothing. Text without a secret is returned as it is.
    """
    for kind, needles, shape in _SHAPES:
        if any(needle in text for needle in needles):
            text = shape.sub(f"{MARK}{kind}]", text)
    for kind, needle, place in _PLACES:
        if needle in text:
            text = _replace(text, kind, place.finditer(text), _is_literal)
    return _redact_named(text)


Facts = TypeVar("Facts", bound=msgspec.Struct)


def redact_facts(facts: Facts) -> Facts:
    """Redact every string in a struct of facts (a `Ledger`), nested ones included; citations stay.

    Where one look at all of them together finds nothing to redact, the same object comes back.
    """
    whole = "\n".join(strings_in(facts))
    return facts if redact(whole) == whole else _redact_struct(facts)


_CITATIONS = frozenset(("entry", "entries"))


def strings_in(value: Any) -> Iterable[str]:
    """Return the distinct strings in structs, tuples and dicts, without the entry ids that facts cite."""
    found: dict[str, None] = {}
    _gather(value, found)
    return found


def _gather(value: Any, found: dict[str, None]) -> None:
    if isinstance(value, str):
        found[value] = None
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name not in _CITATIONS:
                _gather(getattr(value, name), found)
    elif isinstance(value, dict):
        found.update(dict.fromkeys(cast("dict[str, Any]", value)))
    elif isinstance(value, tuple):
        for item in cast("tuple[Any, ...]", value):
            _gather(item, found)


def _redact_struct(facts: Facts) -> Facts:
    changed: dict[str, Any] = {}
    for name in facts.__struct_fields__:
        before = getattr(facts, name)
        after = before if name in _CITATIONS else _redact_value(before)
        if after is not before:
            changed[name] = after
    return msgspec.structs.replace(facts, **changed) if changed else facts


def _redact_value(value: Any) -> Any:
    """The value with its strings redacted; the same object where nothing changed."""
    if isinstance(value, str):
        cleaned = redact(value)
        return value if cleaned == value else cleaned
    if isinstance(value, msgspec.Struct):
        return _redact_struct(value)
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        redacted = tuple(_redact_value(item) for item in items)
        return items if all(a is b for a, b in zip(items, redacted, strict=True)) else redacted
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        clean = {redact(key): inner for key, inner in named.items()}
        return named if clean.keys() == named.keys() else clean
    return value


def _replace(
    text: str, kind: str, found: Iterator[re.Match[str]], is_secret: Callable[[re.Match[str]], bool]
) -> str:
    """Put the mark in place of the group `secret` of each match that is one."""
    pieces: list[str] = []
    done = 0
    for match in found:
        start, end = match.span("secret")
        if start >= done and is_secret(match):
            pieces += [text[done:start], f"{MARK}{kind}]"]
            done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _is_literal(match: re.Match[str]) -> bool:
    """Whether what stands in a secret's place is a value, not a variable, a placeholder or a mark."""
    value = match["secret"]
    return not value.startswith("[redacted") and not _looks_like_code(value)


def _looks_like_code(value: str) -> bool:
    return bool(_CODE.search(value) or _PLACEHOLDER.match(value)) or len(set(value)) < 3


def _redact_named(text: str) -> str:
    """Redact what stands after the name of a secret, where it looks like a value."""
    pieces: list[str] = []
    done = 0
    for start, end in _secret_names(text):
        match = _NAMED.match(text, end)
        if match is None or end < done or not _is_named_secret(text, start, end, match):
            continue
        group = "bare" if match["quoted"] is None else "quoted"
        value_start, value_end = match.span(group)
        rest = _REST[group].match(text, value_end)
        pieces += [text[done:value_start], f"{MARK}{_kind(text[start:end])}]"]
        done = rest.end() if rest else value_end
    return "".join([*pieces, text[done:]]) if pieces else text


def _secret_names(text: str) -> list[tuple[int, int]]:
    """Where the words that name a secret stand; the one letter that grows in lower case keeps its length."""
    lower = text.replace("\u0130", "I").lower()
    spans: list[tuple[int, int]] = []
    for name in _NAMES:
        for match in name.finditer(lower):
            if name is _NAMES[-1] and not _KEY_OF.search(lower[max(0, match.start() - 11) : match.start()]):
                continue
            spans.append(match.span())
    return sorted(spans)


def _kind(name: str) -> str:
    name = name.lower()
    return "password" if name.startswith("pass") else name.removesuffix("s")


def _is_named_secret(text: str, start: int, end: int, match: re.Match[str]) -> bool:
    """Whether the value after a secret's name is one: the less its place says, the more its form must."""
    name, quoted = text[start:end], match["quoted"]
    value: str = (match["bare"] if quoted is None else quoted).rstrip(".…")  # clipped, not masked
    if len(value) < 6 or _PAGING.search(text[max(0, start - 14) : start]):
        return False
    mixed = bool(_DIGIT.search(value) and _LETTER.search(value))
    odd = bool(_ODD.search(value))
    before = text[max(0, start - 40) : start]
    if match["sep"] == " ":  # a flag: --password VALUE
        likely = bool(_FLAG.search(before)) and not value.startswith("-") and (mixed or odd)
    elif name.isupper() and match["sep"] == "=" and not match["gap"]:  # .env: NAME=VALUE
        likely = not value.isdigit()
    elif name[:4].lower() == "pass":
        likely = mixed or odd
    else:
        likely = len(value) >= 16 and mixed
    return likely and "[redacted" not in value and not _looks_like_code(value)

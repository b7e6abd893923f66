"""Values that are not secret: code, a placeholder, prose, a name, what a template inserts.

What a template puts into a value (`${user}` in "${user}-tail") is code: only the rest can be a secret.
"""

from __future__ import annotations

import re

MARK = "[redacted: "

_CODE = re.compile(
    r"^[+.)] |^[\w.$>\-]*\(|\)$|^[{}\[\]()]+$|^[#$]?\{[\w$.? ]+\}?|"
    r"^\$\{|^\$\(|^\$[A-Za-z_]\w*(?:[:/]|$)|^\{\{|\}\}$|^%[({]|^%\w+%$|"
    r"^[A-Za-z_]\w*(?:(?:\??\.|::|->)[A-Za-z_]\w*)+[)\]};,]*$|^[A-Za-z_][\w.]*[\[(]|^[<~]|^(?:\.{1,2})?/[\w.\-]+/(?!.*=$)|"
    r"^--[a-z]|process\.env|environ\b|[gG]etenv|\.\.\.|\u2026|^(?!.*@)[a-z]+://|^[a-z+]+://[^:@/]*:?@|^(?:vault|ssm|sops|op|file|env|arn|secret|"
    r"secretsmanager|ref|projects|keyvault|kms)[:/]|^&?[!*&][A-Za-z_]\w*$|=>|^(?:new|await|return|func|lambda|"
    r"function|not|if|null|None|nil|self|this|os|env|config|settings)\b(?=[\s.(\[]|$)|^@[\w./\-]+$|^\\"
)
_PLACEHOLDER = re.compile(
    r"^(?:[xX*.#_\-0]{3,}|<[^>]*>?|\[[\w \-.:]*\]?|change[_\-]?me[\w\-]*|none|null|nil|true|false|yes|no|"
    r"on|off|undefined|(?:your|my|the|some|insert|enter|put|add|replace|paste|change|set)"
    r"(?:[_\- ]?[a-z]{1,20}+){1,8}"
    r"[_\-]?[0-9]?|"
    r"(?:example|dummy|placeholder|fake|sample|todo|redacted|masked|hidden|secret|password|passwd|token|test|"
    r"testing|default|foobar|foo|bar|required|optional|enabled|disabled|unset|empty|missing|invalid|valid|"
    r"expired)[\w\-]{0,3}|(?:example|dummy|placeholder|fake|sample)[_\-]?\w*|"
    r"[\w\-]{2,20}[_\-]x{3,}|(?:x+[_\-]?)*x{4,}\w{0,4}|\w{0,12}[xX*\u2022]{6,}\w{0,6}|\w{2,12}[_\-](?:your|my)[_\-]\w+(?:[_\-]\w+)*|"
    r"(?:u?int|float|varchar|char|utf|u|i|f|string|str|sha|bytes|bytea|base|text|number|bool|boolean|any|"
    r"object|binary|uuid|password|secret)(?:[0-9]{0,3}|\([0-9]{1,5}\))(?:\[\])?)[;,.)\]}?!|]*$",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"(?:[a-z_]{1,20}[:=])?[0-9][0-9.,_]*[km%]?(?:[/\u2192][0-9][0-9.,_]*[km%]?)?$", re.IGNORECASE
)
_WORDS_OF_PROSE = re.compile(
    r"\b(?:a|an|and|are|at|be|been|by|can|cannot|characters?|chars?|confirm|create|current|do|does|enter|expired?|"
    r"field|for|forgot|from|has|have|if|in|incorrect|invalid|is|it|its|least|long|longer|match|missing|must|need|"
    r"new|no|not|of|old|on|or|password|passwords|please|repeat|required|reset|secret|should|show|that|the|this|to|"
    r"token|too|type|update|use|used|was|when|will|with|wrong|you|your)\b",
    re.IGNORECASE,
)
_SEGMENT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9]*(?:[_\-./:][A-Za-z0-9]+)*[:.]?$")
_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[^\W\d_]")
_ODD = re.compile(r"[!@^&+=$%*~?]|(?<=.)#")
_VOWEL = re.compile(r"[aeiouyAEIOUY]")


def is_plain(value: str) -> bool:
    """Whether a value is a reference, a placeholder, a type or a mark of ours, whatever its name says."""
    return (
        MARK[:-2] in value
        or len(set(value)) < 3
        or _CODE.search(value) is not None
        or _PLACEHOLDER.match(value) is not None
    )


def is_literal(value: str) -> bool:
    """Whether a value is one, not a variable, a placeholder or a mark."""
    return len(value) >= 3 and not is_plain(value) and not value.startswith("$")


def is_count(value: str) -> bool:
    """Whether a value is a number of tokens: `in:1200`, `12.3k/200k`."""
    return _COUNT.match(value) is not None


def is_prose(value: str) -> bool:
    """Whether a value of several words says something to a reader."""
    return " " in value.strip() and (
        _WORDS_OF_PROSE.search(value) is not None or value.rstrip().endswith((".", "!", "?", ":"))
    )


def is_mixed(value: str) -> bool:
    """Whether a value holds letters and digits."""
    return _DIGIT.search(value) is not None and _LETTER.search(value) is not None


def is_odd(value: str) -> bool:
    """Whether a value holds signs that occur in passwords but not in names."""
    return _ODD.search(value) is not None


def is_name(value: str) -> bool:
    """Whether a value of several words names something, in any spelling of code: `reset_email_v2`.

    Digits count as part of a name where they are few and at the end of a word.
    """
    if _NAME.match(value) is None:
        return False
    parts = _SEGMENT.findall(value)
    words = [part for part in parts if part.isalpha()]
    digits = [part for part in parts if part.isdigit()]
    if len(words) < 2 or any(len(number) > 4 for number in digits) or len(digits) > max(1, len(words) // 2):
        return False
    short = sum(len(word) < 3 for word in words)
    least = 3.2 if re.search(r"[_\-./:]", value) else 4.0
    if sum(map(len, words)) < least * len(words):
        return False
    return short * 2 <= len(words) and all(
        _VOWEL.search(word) or len(word) < 4 or word.isupper() for word in words
    )


def is_random(value: str) -> bool:
    """Whether a value looks drawn, not written: digits among the letters, or case that changes everywhere."""
    if is_name(value) or _LETTER.search(value) is None:
        return False
    runs = [part for part in re.split(r"[^A-Za-z0-9]+", value) if part]
    changes = sum(len(_SEGMENT.findall(run)) - 1 for run in runs)
    return changes >= 3 or (changes >= 1 and len(value) >= 12 and is_mixed(value))


# ---- templates

FILLER = "\ufdd0"  # replaces each character that a template inserts; no text holds it

# None of them may hold the character that opens it, so that no run of openings is looked at twice.
_INSERTED = re.compile(
    r"\$\{\{[^{}\n]{1,120}\}\}"  # ${{ secrets.NAME }}
    r"|(?P<open>\$\{!?\w{1,60}:?[-=])(?P<default>[^{}\n]{0,200})\}"  # ${NAME:-default}
    r"|[$#]\{(?:[^{}\n]|\{[^{}\n]{0,40}\}){1,120}\}"  # ${name}, #{name}
    r"|\$\([^()\n]{1,120}\)"  # $(command)
    r"|\{\{[^{}\n]{1,120}\}\}"  # {{ name }}
    r"|<%[^%\n]{1,120}%>"  # <%= name %>
    r"|%\(\w{1,60}\)[sdr]"  # %(name)s
    r"|\{\$?[A-Za-z_](?:[\w.]|->){0,60}"  # {name}, {name[0]!r:>8}, {$name}
    r"(?:(?:\[[^\[\]{}\n]{0,40}\]|\([^(){}\n]{0,40}\))[\w.]{0,40}){0,4}"
    r"(?:![rsa])?(?::[^{}\s\"']{0,12})?\}"
)
_OPENINGS = ("${", "#{", "$(", "{", "<%", "%(")


def masked(text: str) -> str:
    """Return a text of the same length with a filler for each character that a template puts in.

    A default value is left: `${NAME:-default}` says it word for word. Linear in the text.
    """
    if not any(opening in text for opening in _OPENINGS):
        return text
    return _INSERTED.sub(_filled, text)


def _filled(match: re.Match[str]) -> str:
    default = match["default"]
    if default is None:
        return FILLER * len(match[0])
    return f"{FILLER * len(match['open'])}{default}{FILLER}"

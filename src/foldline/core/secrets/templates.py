"""What a template puts into a value (`${user}` in "${user}-tail") is code: only the rest can be a secret."""

from __future__ import annotations

import re

FILLER = "\ufdd0"  # stands for each character of what a template puts in; no text holds it

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

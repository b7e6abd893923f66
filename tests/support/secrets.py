"""Secrets made anew from the shapes in tests/data, and what only looks like one; the disguises of both."""

import base64
import random
import re
import string
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

DATA = Path(__file__).parents[1] / "data"
PIECE = 12  # characters of a secret that must stand nowhere
_CLASSES = {
    "an": string.ascii_letters + string.digits,
    "low": string.ascii_lowercase + string.digits,
    "up": string.ascii_uppercase + string.digits,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "url": string.ascii_letters + string.digits + "_-",
    "b64c": string.ascii_letters + string.digits + "+/",
    "dig": string.digits,
    "pw": string.ascii_letters + string.digits + "!#%^*",
}
_SLOT = re.compile(r"<([A-Za-z]+|b64c)([0-9]+)>|<pem ([A-Z]+)>|<(pgp|pemline|pemcut)>")


class Secret(NamedTuple):
    """A secret, the text that it stands in, and what of it is secret: a prefix of a vendor's is not."""

    name: str
    text: str
    hidden: tuple[str, ...]

    def shown_in(self, text: str) -> str | None:
        """Return a piece of it that stands in a text; None where there is none."""
        return next(iter(leaked([self], text).values()), None)


def leaked(secrets: Sequence[Secret], text: str) -> dict[str, str]:
    """Return the secrets that stand in a text, each with a piece of it."""
    there = {text[at : at + PIECE] for at in range(len(text) - PIECE + 1)}
    found = {}
    for secret in secrets:
        for part in secret.hidden:
            pieces = (part[at : at + PIECE] for at in range(len(part) - PIECE + 1))
            whole = part if len(part) < PIECE and part in text else None
            if piece := next((piece for piece in pieces if piece in there), whole):
                found[secret.name] = piece
    return found


def load(name: str, seed: int = 1) -> tuple[list[Secret], list[str]]:
    """Return the secrets of a file in tests/data, drawn by a seed, and the texts that hold none."""
    return _drawn(name, "secrets", seed), tomllib.loads((DATA / name).read_text())["innocents"]


def load_disguised(name: str, seed: int = 1) -> list[Secret]:
    """Return the secrets of a file that are written in a disguise of their own."""
    return _drawn(name, "disguised", seed)


def _drawn(name: str, rows: str, seed: int) -> list[Secret]:
    draw = random.Random(seed)
    return [_made(*row, draw) for row in tomllib.loads((DATA / name).read_text()).get(rows, [])]


def _made(name: str, shape: str, around: str, draw: random.Random) -> Secret:
    drawn: list[str] = []

    def fill(slot: re.Match[str]) -> str:
        text = _block(slot, draw) if slot[3] or slot[4] else _letters(slot[1], int(slot[2]), draw)
        drawn.append(text)
        return text

    secret = _SLOT.sub(fill, shape)
    hidden = [secret] if "<" not in shape or not any(len(piece) >= PIECE for piece in drawn) else drawn
    lines = [line.strip() for text in hidden for line in re.split(r"\\n|\n", text) if "-----" not in line]
    return Secret(name, around.format(secret), tuple(line for line in lines if len(line) >= 8))


def _letters(kind: str, count: int, draw: random.Random) -> str:
    letters = [draw.choice(_CLASSES[kind]) for _ in range(count)]
    if kind not in ("dig", "hex") and count > 3:  # a secret of letters alone is not a fair draw
        letters[count // 2] = draw.choice("23456789")
        letters[1] = draw.choice("abcdefgh") if kind != "up" else "K"
    if kind == "hex" and count > 3:
        letters[0], letters[1] = "4", "b"
    return "".join(letters)


def _block(slot: re.Match[str], draw: random.Random) -> str:
    kind = slot[3] or ("PGP" if slot[4] == "pgp" else "")
    rows = ["".join(draw.choice(_CLASSES["b64c"]) for _ in range(64)) for _ in range(24)]
    rows.append("".join(draw.choice(_CLASSES["b64c"]) for _ in range(30)) + "==")
    name = f"{kind} PRIVATE KEY BLOCK" if kind == "PGP" else f"{kind} PRIVATE KEY".strip()
    lines = [f"-----BEGIN {name}-----", *rows]
    if slot[4] != "pemcut":
        lines.append(f"-----END {name}-----")
    return ("\\n" if slot[4] == "pemline" else "\n").join(lines)


# ---- disguises: what a text looks like, character by character


def _cut(text: str, every: int, marks: Sequence[str]) -> list[str]:
    """Put a mark behind each so many characters; none before what begins a line of a diff or a quote."""
    draw = random.Random(len(text))
    return [
        letter + draw.choice(marks)
        if at % every == every - 2 and text[at + 1 : at + 2] not in tuple("+>")
        else letter
        for at, letter in enumerate(text)
    ]


def _spelled(text: str, spell: Callable[[str], str]) -> list[str]:
    return [letter if letter.isalnum() and letter.isascii() else spell(letter) for letter in text]


DISGUISES: dict[str, Callable[[str], list[str]]] = {
    "line continuation": lambda text: _cut(text, 11, ["\\\n"]),
    "zero width": lambda text: _cut(text, 9, ["\u200b", "\u200d", "\ufeff", "\u2060", "\u00ad"]),
    "colour": lambda text: _cut(text, 9, ["\x1b[31m", "\x1b[0m", "\x1b[1;36m"]),
    "percent": lambda text: _spelled(text, lambda letter: quote(letter, safe="")),
    "escapes": lambda text: _spelled(text, lambda letter: f"\\u{ord(letter):04x}"),
    "base64": lambda text: [base64.b64encode(text.encode()).decode()],
}


def disguised(text: str, disguise: str) -> str:
    """Return a text in a disguise."""
    return "".join(DISGUISES[disguise](text))


def in_disguise(secret: Secret, disguise: str) -> Secret:
    """Return a secret in a disguise; hidden is what is left of it between the marks, and the whole without them."""
    seen = DISGUISES[disguise](secret.text)
    hidden = list(secret.hidden)
    if len(seen) == 1:
        hidden += seen
    for part in secret.hidden if len(seen) > 1 else ():
        start = secret.text.index(part)
        units = seen[start : start + len(part)]
        hidden += "".join(unit[0] + "\0" * (len(unit) > 1) for unit in units).split("\0")
    return Secret(secret.name, "".join(seen), tuple(dict.fromkeys(one for one in hidden if len(one) >= 8)))

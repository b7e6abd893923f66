"""Secrets made anew from the shapes in tests/data, and what only looks like one."""

import random
import re
import string
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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
        return next(iter(shown([self], text).values()), None)


def shown(secrets: Sequence[Secret], text: str) -> dict[str, str]:
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
    data = tomllib.loads((DATA / name).read_text())
    draw = random.Random(seed)
    return [_made(*row, draw) for row in data["secrets"]], data["innocents"]


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

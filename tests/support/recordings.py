"""Recorded sessions that go well, and such as no policy can save, each for one reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.calling import SESSION, coding_session, write_lines

GOOD = SESSION
RULE = "Never change the file src/legacy/part{}.py without asking me first."
TOO_FEW = 6_000  # tokens of a window that has no room for the rules of `with_rules`


def with_rules(path: Path) -> Path:
    """A session whose user states more rules than a tenth of a small window can hold."""
    said = coding_session(8)
    said[0] = {"role": "user", "content": "\n".join(RULE.format(n) for n in range(80))}
    return write_lines(path, said)


def with_bad_image(path: Path) -> Path:
    """A session with a picture of a kind that the API refuses; it is message 12."""
    source = {"type": "base64", "media_type": "image/bmp", "data": "AAAA"}
    picture: dict[str, Any] = {"role": "user", "content": [{"type": "image", "source": source}]}
    said = coding_session(3)
    return write_lines(path, [*said[:12], picture, *said[12:]])

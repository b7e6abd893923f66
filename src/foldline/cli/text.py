"""Make text from sessions and errors safe for a terminal."""

from __future__ import annotations

import re

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean(text: str) -> str:
    """Return text without control characters (a session may hold any) and lone surrogates."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))

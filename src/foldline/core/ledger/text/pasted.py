"""Lines that were pasted into a message rather than written: a stack's frames, a terminal's screen."""

from __future__ import annotations

import re

_PASTED = re.compile(
    r"\s*at (?:async )?\S.{0,300}[:(]\d{1,7}(?::\d{1,7})?\)?\s*$"  # a frame: at run (src/app.ts:12:5)
    r"|\s*File \"[^\"\n]{1,300}\", line \d"
    r"|.{0,200}[─━═╌┄│┃]{3}"  # the lines of a box
    r"|.{0,40}[\u2801-\u28ff]\s"  # a spinner
    r"|\s*Node\.js v\d"
    r"|\s*'?/\S*/(?:TemporaryItems|tmp)/.{0,200}\.(?:png|jpe?g)'?\s*$"  # a screenshot's own path
)


def is_pasted(line: str) -> bool:
    """Whether a line is one that no person types."""
    return bool(_PASTED.match(line))

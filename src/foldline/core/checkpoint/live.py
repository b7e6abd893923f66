"""Live state and the standing of the work, as a checkpoint shows them: frozen until the next boundary.

Live state is what a program says of itself (todos, open files, running sub-agents). It is data beside the
summary, taken from callbacks when the boundary is made, never from the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence

from foldline.core.checkpoint.serialize import shorten
from foldline.core.cut.shorten import level
from foldline.core.decide.continuation import Continuation
from foldline.core.log.entries import Live
from foldline.core.measure.tokens import Counter
from foldline.core.secrets.redact import redact

LIVE_HEAD = "State of the program around you when this checkpoint was made:"
LIVE_SHARE = 10  # live state takes at most usable / LIVE_SHARE
QUESTION_CAP = 600  # characters of an open question that the checkpoint quotes

_STANDS = {
    "question": "The user was asked this and has not answered. Do not go on before they do.",
    "calls": "The user was asked this through a tool and has not answered. Do not go on before they do.",
    "aborted": "The user stopped the last reply. Do not go on by yourself: wait for what they say.",
    "cut_off": "The last reply was cut off before its end. Go on from where the work stands.",
    "done": "What was asked for was done. Do not begin anything by yourself: wait for what the user says.",
}


def live_blocks(live: Sequence[Live]) -> list[str]:
    """Return the blocks of a checkpoint that hold live state; none where there is none."""
    blocks = [f'<live-state name="{one.name}">\n{one.text.strip()}\n</live-state>' for one in live]
    return [LIVE_HEAD, *blocks] if blocks else []


def standing_block(standing: Continuation | None) -> str:
    """Say whose turn it is, where no message that is kept shows it; "" where nothing needs to be said."""
    told = _STANDS.get((standing.because or standing.state) if standing is not None else "", "")
    if standing is None or not told:
        return ""
    asked = " ".join(standing.question.split())
    quote = f"\n> {redact(asked)[:QUESTION_CAP]}" if asked else ""
    return f'<standing state="{standing.state}">\n{told}{quote}\n</standing>'


def fitted(live: Sequence[Live], usable: int, counter: Counter) -> tuple[Live, ...]:
    """Return live state without secrets, in about a tenth of usable: the largest texts lose their middles."""
    clean = [Live(one.name, redact(one.text.strip())) for one in live if one.text.strip()]
    sizes = [counter.count(one.text) for one in clean]
    cap = level(sizes, max(usable // LIVE_SHARE, 1))
    return tuple(Live(one.name, _within(one.text, cap, counter)) for one in clean)


def _within(text: str, cap: int, counter: Counter) -> str:
    """Return a text in at most `cap` tokens: without its middle, or its end where a note of that is too long.

    What fits stays as it is, so that what was fitted once does.
    """
    size = counter.count(text)
    if size <= cap:
        return text
    room = len(text) * cap // size
    for tenths in (10, 8, 6):
        short = shorten(text, room * tenths // 10)
        if counter.count(short) <= cap:
            return short
    while room > 1 and counter.count(_begun(text, room)) > cap:
        room = room * 9 // 10
    return _begun(text, room)


def _begun(text: str, characters: int) -> str:
    return f"{text[:characters].rstrip()}…"

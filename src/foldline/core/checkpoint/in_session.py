"""The request for a summary as one more message of the session itself: the rest comes from the cache.

The model sees its own conversation, system prompt and tools, so nothing is said twice: the message says what
is wanted, and how much of the end stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from foldline.core.checkpoint import prompts
from foldline.core.checkpoint.request import RequestKind, SummaryRequest
from foldline.core.checkpoint.summary import in_language
from foldline.core.log.entries import Said
from foldline.core.secrets.redact import redact

QUOTED = 200  # characters of the first kept message by which it is known again
KINDS: tuple[RequestKind, ...] = ("first", "update", "split_turn", "handoff")

_STOP = """\
Stop the work here. This message comes from the program that keeps this conversation, not from the user: \
it asks for a checkpoint, which takes the place of the conversation. Whoever goes on with the work reads \
the checkpoint and never sees again what it stands for. Do not go on with the work, do not answer what is \
open, and do not call tools: answer with the checkpoint alone."""
_KEPT = """\
The end of the conversation stays as it is, from the message on that begins with the words in <kept>. The \
checkpoint is for what comes before it; of the rest say only what a later value or decision changed."""
_TURN = "That message stands in the middle of a turn: the checkpoint also says how that turn began."
_CARRY = """\
The conversation begins with an earlier checkpoint. Take it into yours: keep what still holds and may \
still be needed, in its words; replace each value, decision or rule that was changed since by its newest \
form; shorten what is long finished."""
_HANDOFF = """\
The work goes on in a new conversation, for the goal in <goal>: carry over what serves that goal, the \
rules of the user's that bind it included, and leave out the rest."""


def ask(request: SummaryRequest) -> str:
    """Return the message that asks for the summary of the conversation it is appended to."""
    request = in_language(request)
    kept = _opening(request.kept)
    goal, focus = redact(request.goal or ""), redact(request.instructions or "")
    pieces = [
        _STOP,
        f"{_KEPT}\n{prompts.between('kept', kept)}" if kept else "",
        _TURN if request.kind == "split_turn" else "",
        _CARRY if request.previous else "",
        f"{_HANDOFF}\n{prompts.between('goal', goal)}" if request.kind == "handoff" and goal else "",
        prompts.rules("the user's own messages say", "what programs put into messages"),
        prompts.constraints([redact(fact.text) for fact in request.ledger.constraints]),
        *prompts.shape(request.family, request.kind),
        f"The user wants special attention paid to this:\n{prompts.between('focus', focus)}" if focus else "",
        *prompts.limits(request.story_tokens, request.language, request.rejected),
    ]
    return "\n\n".join(piece for piece in pieces if piece)


def _opening(kept: Sequence[Said]) -> str:
    """The words by which the first kept message that says something is known again."""
    for entry in kept:
        message = entry.message
        text = message.text or next((result.text for result in message.results), "")
        if words := " ".join(text.split()):
            return redact(words)[:QUOTED]
        if message.calls:
            return f"(a call of {message.calls[0].name})"
    return ""

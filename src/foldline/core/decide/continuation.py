"""Whose turn it is, read from the newest messages rather than from a summary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from foldline.core.log.codec import prepared
from foldline.core.log.messages import Message, ToolCall
from foldline.core.log.steps import finishes

State = Literal["mid_tool", "waiting", "done"]
Because = Literal["", "calls", "results", "prompt", "cut_off", "question", "aborted"]

QUESTION_REACH = 4_000  # characters at the end of a reply that are searched for a question to the user

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？؟])")

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)
_QUESTION = re.compile(r"\?(?=[\"'”’»)\]*_]*(?:\s|$))|[？؟]")
_LIST_ITEM = re.compile(r"\s*(?:[-*•]|\(?\w{1,2}[.)])\s")
_ASKS = re.compile(
    r"\b(?:please (?:confirm|choose|decide|advise|clarify|let me know (?:which|whether|if you want|how))"
    r"|let me know (?:which|whether|how|what)|(?:waiting|wait) for your|awaiting your"
    r"|before i (?:proceed|continue|go on)"
    r"|i need (?:your|you to)|tell me which)\b",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"\b(?:anything else|something else|other questions|more questions|further questions"
    r"|how (?:else )?(?:can|may) i (?:help|assist))\b",
    re.IGNORECASE,
)
_ASKING_TOOL = re.compile(
    r"ask.?(?:user|human|question|follow)|request.?user|user.?(?:input|question)|confirm", re.IGNORECASE
)


class Continuation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of the session: `mid_tool`, `waiting` for the user, or `done`.

    In `mid_tool` the model continues: `because` is calls (some unanswered; `calls` has their ids), results,
    prompt (not answered yet) or cut_off (a reply that ended too early). `waiting` is because of a question
    (its text in `question`), calls of a tool that asks the user, or aborted (the user stopped the reply).
    """

    state: State
    because: Because = ""
    calls: tuple[str, ...] = ()
    question: str = ""


prepared(Continuation)


def continuation(messages: Sequence[Message]) -> Continuation:
    """Return the state of the session after its newest messages; reads back to the last reply only.

    Reminders and system messages at the end do not count. A reply that ends with a question waits for the
    user; a courtesy ("anything else?") does not.
    """
    last = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "assistant"), None)
    if last is None:
        has_prompt = any(message.is_prompt for message in messages)
        return Continuation("mid_tool", "prompt") if has_prompt else Continuation("done")
    after, reply = messages[last + 1 :], messages[last]
    if any(message.is_prompt for message in after):
        return Continuation("mid_tool", "prompt")
    answered = {result.call_id for message in after for result in message.results}
    own_results = {result.call_id for result in reply.results}
    open_calls = tuple(call for call in reply.calls if call.id not in answered | own_results)
    if open_calls:
        return _continuation_at_calls(open_calls)
    if answered or not finishes(reply):
        return Continuation("mid_tool", "results")
    return _continuation_at_end(reply)


def _continuation_at_calls(calls: tuple[ToolCall, ...]) -> Continuation:
    ids = tuple(call.id for call in calls)
    if not any(_ASKING_TOOL.search(call.name) for call in calls):
        return Continuation("mid_tool", "calls", ids)
    asked = [call.arguments for call in calls if isinstance(call.arguments, dict)]
    values = (arguments.get(key) for arguments in asked for key in ("question", "prompt", "message", "text"))
    question = next((value for value in values if isinstance(value, str)), "")
    return Continuation("waiting", "calls", ids, question=question)


def _continuation_at_end(reply: Message) -> Continuation:
    """Return the state after a reply without calls: cut off, aborted, waiting for an answer, or done."""
    if reply.stop in ("length", "error"):
        return Continuation("mid_tool", "cut_off")
    if reply.stop == "aborted":
        return Continuation("waiting", "aborted")
    question = _question(reply.text)
    return Continuation("waiting", "question", question=question) if question else Continuation("done")


def _question(text: str) -> str:
    """Return the question at the end of a reply, or ""."""
    paragraphs = [p for p in _CODE.sub("", text[-QUESTION_REACH:]).split("\n\n") if p.strip()]
    ending = paragraphs[-1:]
    if len(paragraphs) > 1 and all(_LIST_ITEM.match(line) for line in ending[0].splitlines() if line.strip()):
        ending = paragraphs[-2:]  # a list of answers may follow a question
    sentences = [s for p in ending for s in _SENTENCE_END.split(p) if s.strip()]
    for sentence in reversed(sentences):
        if not _COURTESY.search(sentence) and (_QUESTION.search(sentence) or _ASKS.search(sentence)):
            return sentence.strip()
    return ""

"""Choose which model writes a summary, and in which form: the cheapest way that fits, and why.

There are three ways: the session's model with the session's prefix, which its provider has cached; the same
model with the conversation as text; another model (`Policy.summary_model`) with that text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from foldline.core.checkpoint.prompts import KINDS, ask_in_session
from foldline.core.checkpoint.request import Prefix, SummaryRequest
from foldline.core.decide.price import Form, Way, bare, by_price, choice_note, in_session
from foldline.core.measure.tokens import MESSAGE_OVERHEAD, Counter
from foldline.dialects import ANTHROPIC
from foldline.dialects.cache_marks import MARKS, marks
from foldline.providers.base import Call
from foldline.summarizers.candidate import Candidate
from foldline.summarizers.parts import size_of


class SummaryWay(msgspec.Struct, frozen=True):
    """One way to write a summary: a model and a form."""

    candidate: Candidate
    form: Form


def choices(
    request: SummaryRequest,
    own: Candidate,
    other: Candidate | None,
    prefix: Prefix | None,
    counter: Counter,
) -> tuple[list[SummaryWay], str]:
    """Return the ways to write a summary, the best first, and why it is the best.

    After a rejected reply the conversation is sent as text, first to the session's own model. A session with
    secrets is also sent as text: its messages still contain them.
    """
    if request.attempt:
        ways = [SummaryWay(own, "bare"), *([SummaryWay(other, "bare")] if other else [])]
        return ways, f"asked again, of {own.name}"
    as_text = prefix is None or request.secrets or not _fits(request, own, prefix, counter)
    if as_text and other is None:
        reason = " from text: the session contains secrets" if prefix and request.secrets else ""
        return [SummaryWay(own, "bare")], f"written by {own.name}{reason}"
    size = size_of(request, counter)
    priced: list[tuple[SummaryWay, Way]] = []
    if other is not None:
        priced.append((SummaryWay(other, "bare"), _bare(request, other, size)))
    if not as_text and prefix is not None:
        way = in_session(
            own.name,
            own.price,
            prompt=prefix.tokens,
            asked=_question_tokens(request, counter),
            output=request.tokens,
            cache=prefix.cache,
        )
        priced.append((SummaryWay(own, "in-session"), way))
    priced.append((SummaryWay(own, "bare"), _bare(request, own, size)))
    if prefix is None or not prefix.cache.warm:  # if prices are unknown: text is shorter than a cold prefix
        priced.sort(key=lambda pair: pair[0].form == "in-session")
    return _by_price(priced)


def _by_price(priced: Sequence[tuple[SummaryWay, Way]]) -> tuple[list[SummaryWay], str]:
    ways = by_price([way for _, way in priced])
    order = [next(i for i, (_, other) in enumerate(priced) if other is way) for way in ways]
    return [priced[index][0] for index in order], choice_note(ways)


def _bare(request: SummaryRequest, model: Candidate, size: int) -> Way:
    calls = max(1, math.ceil(size / model.room(request)))
    return bare(model.name, model.price, prompt=size, calls=calls, output=request.tokens)


def _question_tokens(request: SummaryRequest, counter: Counter) -> int:
    return MESSAGE_OVERHEAD + counter.count(ask_in_session(request))


def _fits(request: SummaryRequest, own: Candidate, prefix: Prefix, counter: Counter) -> bool:
    """Return whether the session's next request has room for the question and the reply."""
    if request.refused or request.kind not in KINDS:
        return False
    prompt = prefix.tokens + _question_tokens(request, counter)
    window = own.window
    return prompt <= min(window.input_limit, window.context - own.max_tokens(request))


def asked_in_session(request: SummaryRequest, own: Candidate, prefix: Prefix) -> Call:
    """Return the session's next request with one more message that asks for the summary.

    Everything before it is unchanged, including tools and thinking, so that it is found in the cache. If the
    session uses cache marks (Anthropic), its last message gets one.
    """
    messages = list(prefix.messages)
    marked = marks(messages, prefix.system, prefix.tools)
    if own.provider.dialect == ANTHROPIC and prefix.cache.warm and messages and marked < MARKS:
        messages[-1] = _with_mark(messages[-1])
    messages.append({"role": "user", "content": ask_in_session(request)})
    return Call(
        messages=messages, system=prefix.system, tools=prefix.tools, max_tokens=own.max_tokens(request)
    )


def _with_mark(message: Any) -> Any:
    """Return an Anthropic message with a cache mark on its last block, if that block can have one."""
    fields = cast("dict[str, Any]", message)
    content = fields.get("content")
    blocks: list[Any] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    )
    if not blocks or blocks[-1].get("type") in ("thinking", "redacted_thinking"):
        return message
    blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
    return {**fields, "content": blocks}

"""Choose which model writes a summary, and in which form: the cheapest way that fits, and why.

There are three: the session's own model with the session's own prefix, which its provider has cached; the
same model with the conversation as text; another model (`Policy.summary_model`) with that text.
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
    """One way to take: which model, in which form."""

    candidate: Candidate
    form: Form


def choices(
    request: SummaryRequest,
    own: Candidate,
    other: Candidate | None,
    prefix: Prefix | None,
    counter: Counter,
) -> tuple[list[SummaryWay], str]:
    """Return the ways to have a summary written, the best first, and why it is the best.

    After a reply that was rejected the conversation is sent as text, and by the session's own model first.
    What holds secrets is never asked for in the session, whose messages still say them.
    """
    if request.attempt:
        again = [SummaryWay(own, "bare"), *([SummaryWay(other, "bare")] if other else [])]
        return again, f"asked again, of {own.name}"
    alone = prefix is None or request.secrets or not _fits(request, own, prefix, counter)
    if alone and other is None:
        why = " from text: the session holds secrets" if prefix and request.secrets else ""
        return [SummaryWay(own, "bare")], f"written by {own.name}{why}"
    size = size_of(request, counter)
    found: list[tuple[SummaryWay, Way]] = []
    if other is not None:
        found.append((SummaryWay(other, "bare"), _bare(request, other, size)))
    if not alone and prefix is not None:
        way = in_session(
            own.name,
            own.price,
            prompt=prefix.tokens,
            asked=_asked(request, counter),
            output=request.tokens,
            cache=prefix.cache,
        )
        found.append((SummaryWay(own, "in-session"), way))
    found.append((SummaryWay(own, "bare"), _bare(request, own, size)))
    if (
        prefix is None or not prefix.cache.warm
    ):  # where prices are not known, text is shorter than a cold prefix
        found.sort(key=lambda one: one[0].form == "in-session")
    return _ordered(found)


def _ordered(found: Sequence[tuple[SummaryWay, Way]]) -> tuple[list[SummaryWay], str]:
    ways = by_price([way for _, way in found])
    places = [next(i for i, (_, one) in enumerate(found) if one is way) for way in ways]
    return [found[place][0] for place in places], choice_note(ways)


def _bare(request: SummaryRequest, who: Candidate, size: int) -> Way:
    calls = max(1, math.ceil(size / who.room(request)))
    return bare(who.name, who.price, prompt=size, calls=calls, output=request.tokens)


def _asked(request: SummaryRequest, counter: Counter) -> int:
    return MESSAGE_OVERHEAD + counter.count(ask_in_session(request))


def _fits(request: SummaryRequest, own: Candidate, prefix: Prefix, counter: Counter) -> bool:
    """Return whether the session's next request has room for the message that asks, and for the reply."""
    if request.refused or request.kind not in KINDS:
        return False
    prompt = prefix.tokens + _asked(request, counter)
    window = own.window
    return prompt <= min(window.input_limit, window.context - own.max_tokens(request))


def asked_in_session(request: SummaryRequest, own: Candidate, prefix: Prefix) -> Call:
    """Return the session's next request with one more message that asks for the summary.

    Everything before it is as the session sends it, tools and thinking included, or the cache would not know
    it. Where the session caches with marks (Anthropic), one is set at the end of what it has.
    """
    messages = list(prefix.messages)
    marked = marks(messages, prefix.system, prefix.tools)
    if own.provider.dialect == ANTHROPIC and prefix.cache.warm and messages and marked < MARKS:
        messages[-1] = _marked(messages[-1])
    messages.append({"role": "user", "content": ask_in_session(request)})
    return Call(
        messages=messages, system=prefix.system, tools=prefix.tools, max_tokens=own.max_tokens(request)
    )


def _marked(message: Any) -> Any:
    """Return an Anthropic message with a cache mark on its last block, if that may have one."""
    fields = cast("dict[str, Any]", message)
    content = fields.get("content")
    whole = [{"type": "text", "text": content}] if isinstance(content, str) else content
    blocks: list[Any] = list(whole or ())
    if not blocks or blocks[-1].get("type") in ("thinking", "redacted_thinking"):
        return message
    blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
    return {**fields, "content": blocks}

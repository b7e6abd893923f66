"""Write a reply or a refusal in the form of the request's dialect, whole or as a stream."""

from __future__ import annotations

from foldline.core.log.codec import encode
from foldline.dialects.values import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES
from foldline.testing.answers import FinishedReply
from foldline.testing.forms import anthropic as forms_anthropic
from foldline.testing.forms import chat as forms_chat
from foldline.testing.forms import responses as forms_responses
from foldline.testing.gate import Gate
from foldline.testing.refusals import Refusal
from foldline.testing.request import Asked
from foldline.testing.wire import EVENTS, JSON, Wire

_FORMS = {
    ANTHROPIC: forms_anthropic,
    OPENAI_CHAT: forms_chat,
    OPENAI_RESPONSES: forms_responses,
}
_OVERFLOW = "context_length_exceeded"


def respond(made: FinishedReply, wait: float | Gate = 0.0) -> Wire:
    """Return what goes over the wire for a reply."""
    form = _FORMS[made.asked.dialect]
    body = form.body(made)
    headers = _headers(made.asked.dialect, made.key)
    if made.asked.stream:
        return Wire(
            200, tuple(form.stream(made)), content_type=EVENTS, headers=headers, wait=wait, reply=body
        )
    return Wire(200, (encode(body),), content_type=JSON, headers=headers, wait=wait, reply=body)


def refuse(refusal: Refusal, dialect: str, key: str = "0", asked: Asked | None = None) -> Wire:
    """Return what goes over the wire for a refusal.

    A stream of the Responses API begins before the prompt is measured: there one that is too long is reported
    by events, under status 200.
    """
    headers = (*_headers(dialect, key), *refusal.headers())
    late = dialect == OPENAI_RESPONSES and refusal.code == _OVERFLOW
    if late and asked is not None and asked.stream:
        pieces = forms_responses.failed(key, asked, refusal.error(dialect))
        return Wire(200, tuple(pieces), content_type=EVENTS, headers=headers)
    body = refusal.body(dialect, f"req_{key}")
    return Wire(refusal.status_for(dialect), (encode(body),), headers=headers)


def interrupt(refusal: Refusal, dialect: str, number: int) -> bytes:
    """Return the event by which a stream that has begun reports an error; `number` is the event's place."""
    inner = refusal.error(dialect)
    if dialect == OPENAI_RESPONSES:
        return forms_responses.error(inner, number)
    return forms_anthropic.error(inner) if dialect == ANTHROPIC else forms_chat.error(inner)


def _headers(dialect: str, key: str) -> tuple[tuple[str, str], ...]:
    name = "request-id" if dialect == ANTHROPIC else "x-request-id"
    return ((name, f"req_{key}"),)

"""The three APIs that the gateway speaks: where their messages stand, and how a stream becomes a reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from foldline.dialects import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES
from foldline.providers.anthropic import MessageAssembler
from foldline.providers.openai.chat import ChatAssembler
from foldline.providers.openai.responses import ResponseAssembler
from foldline.providers.sdk import Assembler

Vendor = Literal["openai", "anthropic"]


class Endpoint(msgspec.Struct, frozen=True):
    """One API: its path, the names of its request's fields, and whose it is.

    `opening` are the kinds of the events that a stream begins with before it is known whether the model
    answers: an error may still follow them. `closing` are those behind which nothing of the reply comes.
    """

    path: str
    dialect: str
    vendor: Vendor
    messages: str
    system: str | None
    limits: tuple[str, ...]
    assembler: Callable[[], Assembler]
    opening: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()


RESPONSES: Final = Endpoint(
    "/responses",
    OPENAI_RESPONSES,
    "openai",
    "input",
    "instructions",
    ("max_output_tokens",),
    ResponseAssembler,
    ("response.created", "response.queued", "response.in_progress"),
    ("response.completed", "response.incomplete"),
)
ENDPOINTS: Final = (
    Endpoint(
        "/chat/completions",
        OPENAI_CHAT,
        "openai",
        "messages",
        None,
        ("max_completion_tokens", "max_tokens"),
        ChatAssembler,
    ),
    RESPONSES,
    Endpoint(
        "/messages",
        ANTHROPIC,
        "anthropic",
        "messages",
        "system",
        ("max_tokens",),
        MessageAssembler,
        ("ping",),
        ("message_stop",),
    ),
)

"""One request as a served model sees it, for tests to inspect."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from foldline.dialects.payload import fields_of, items_of
from foldline.dialects.values import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES

# The keys of a request's messages, its system prompt and the limit of its reply.
LIST_KEY: Final = {
    OPENAI_CHAT: "messages",
    OPENAI_RESPONSES: "input",
    ANTHROPIC: "messages",
    GEMINI: "contents",
}
SYSTEM_KEY: Final[dict[str, str | None]] = {
    OPENAI_CHAT: None,
    OPENAI_RESPONSES: "instructions",
    ANTHROPIC: "system",
    GEMINI: "systemInstruction",
}
CAP_KEYS: Final = {
    OPENAI_CHAT: ("max_completion_tokens", "max_tokens"),
    OPENAI_RESPONSES: ("max_output_tokens",),
    ANTHROPIC: ("max_tokens",),
    GEMINI: ("maxOutputTokens",),  # in its generationConfig
}


class Asked(msgspec.Struct):
    """A request: its dialect, JSON body and headers (lower case). `index` counts requests from 0.

    In `gemini` the path has the model and whether the reply is a stream: `named`, `streamed`. `tokens` is the
    input in the model's own count, `refused` the text of the refusal if it was refused; the model sets both
    when it answers.
    """

    dialect: str
    body: dict[str, Any]
    headers: dict[str, str] = {}
    index: int = -1
    tokens: int = 0
    refused: str | None = None
    named: str = ""
    streamed: bool = False

    @property
    def messages(self) -> list[Any]:
        """The messages or items; the string that the Responses API allows becomes one user message."""
        value = self.body.get(LIST_KEY[self.dialect])
        if isinstance(value, str) and self.dialect == OPENAI_RESPONSES:
            return [{"role": "user", "content": value}]
        return items_of(value)

    @property
    def system(self) -> Any:
        """The system prompt, unchanged, if the dialect has a separate one; else None."""
        key = SYSTEM_KEY[self.dialect]
        return self.body.get(key) if key else None

    @property
    def tools(self) -> Any:
        """The tool definitions, unchanged."""
        return self.body.get("tools")

    @property
    def model(self) -> str:
        """The requested model; "" if the request has none."""
        model = self.named or self.body.get("model")
        return model if isinstance(model, str) else ""

    @property
    def stream(self) -> bool:
        """Whether the reply should be a stream of events."""
        return self.streamed or self.body.get("stream") is True

    @property
    def max_tokens(self) -> int | None:
        """The limit of the reply in tokens, under any of the dialect's names for it."""
        fields = fields_of(self.body.get("generationConfig")) if self.dialect == GEMINI else self.body
        for key in CAP_KEYS[self.dialect]:
            value = fields.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None

    @property
    def thinking(self) -> bool:
        """Whether the request enables the thinking of an Anthropic model."""
        return fields_of(self.body.get("thinking")).get("type") in ("enabled", "adaptive")

"""One request as a served model sees it, for tests to inspect."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from foldline.dialects.payload import fields_of, items_of
from foldline.dialects.values import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES

# The key under which a request holds its messages, its system prompt and the cap of its reply.
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
    GEMINI: ("maxOutputTokens",),  # of its generationConfig
}


class Asked(msgspec.Struct):
    """A request: its dialect, JSON body and headers (lower case). `index` counts requests from 0.

    In `gemini` the path says the model and whether the reply is a stream: `named`, `streamed`.
    `tokens` is the input in the model's own count, `refused` the text of the refusal if it was refused.
    Both are set once the model has looked at the request.
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
        """The messages or items; a string of the Responses API counts as one user message."""
        value = self.body.get(LIST_KEY[self.dialect])
        if isinstance(value, str) and self.dialect == OPENAI_RESPONSES:
            return [{"role": "user", "content": value}]
        return items_of(value)

    @property
    def system(self) -> Any:
        """The system prompt as it came, if the dialect takes it separately; else None."""
        key = SYSTEM_KEY[self.dialect]
        return self.body.get(key) if key else None

    @property
    def tools(self) -> Any:
        """The tool definitions, as they came."""
        return self.body.get("tools")

    @property
    def model(self) -> str:
        """The requested model; "" for none."""
        model = self.named or self.body.get("model")
        return model if isinstance(model, str) else ""

    @property
    def stream(self) -> bool:
        """Whether the reply should be a stream of events."""
        return self.streamed or self.body.get("stream") is True

    @property
    def max_tokens(self) -> int | None:
        """The cap of the reply in tokens, by whichever name the dialect has for it."""
        holder = fields_of(self.body.get("generationConfig")) if self.dialect == GEMINI else self.body
        for key in CAP_KEYS[self.dialect]:
            value = holder.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None

    @property
    def thinking(self) -> bool:
        """Whether the request lets an Anthropic model show its thinking."""
        return fields_of(self.body.get("thinking")).get("type") in ("enabled", "adaptive")

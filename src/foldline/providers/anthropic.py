"""Anthropic's Messages API, and every server that implements it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, Final, cast

from foldline.core.measure.window import share
from foldline.dialects import ANTHROPIC
from foldline.providers.access import NO_KEY, withheld
from foldline.providers.base import Call, Delta
from foldline.providers.options import Body, Option
from foldline.providers.sdk import SDKProvider

# The API requires a limit with every call and adds it to the input: the reserve of the default policy.
MOST_REPLY: Final = 16_384
REPLY_SHARE: Final = 0.15
LEAST_BUDGET: Final = 1_024  # the smallest thinking budget, in tokens

_OFF: Final[tuple[Body, ...]] = ({"thinking": {"type": "disabled"}}, {})


class MessageAssembler:
    """Put the events of a Messages stream together into a Message."""

    def __init__(self) -> None:
        self._message: Body | None = None
        self._blocks: dict[int, Body] = {}
        self._texts: dict[
            tuple[int, str], list[str]
        ] = {}  # pieces, joined at the end: adding to a string copies it
        self._inputs: dict[int, list[str]] = {}
        self._calls: dict[int, int] = {}
        self.ended = False

    @property
    def answered(self) -> bool:
        """Whether only the end can follow."""
        return self._message is not None and bool(self._message.get("stop_reason"))

    def take(self, event: Body) -> Iterator[Delta]:
        """Take the next event; yield its text, its thinking and pieces of calls."""
        kind, index = event.get("type"), cast("int", event.get("index", 0))
        if kind == "message_start":
            self._message = dict(event["message"])
        elif kind == "content_block_start":
            yield from self._start_block(index, dict(event["content_block"]))
        elif kind == "content_block_delta" and index in self._blocks:
            yield from self._extend_block(index, event["delta"])
        elif kind == "message_delta" and self._message is not None:
            before, update = (cast("Body", body.get("usage") or {}) for body in (self._message, event))
            usage = before | {key: value for key, value in update.items() if value is not None}
            self._message = {**self._message, **event["delta"], "usage": usage}
        elif kind == "message_stop":
            self.ended = True

    def whole(self) -> Body | None:
        """Return the Message; None before its end. Raises ValueError for a call that cannot be parsed."""
        if self._message is None or not (self.ended or self.answered):
            return None
        for (index, key), pieces in self._texts.items():
            self._blocks[index][key] = "".join(pieces)
        for index, pieces in self._inputs.items():
            self._blocks[index]["input"] = self._parse_input("".join(pieces))
        return {**self._message, "content": [self._blocks[index] for index in sorted(self._blocks)]}

    def _start_block(self, index: int, block: Body) -> Iterator[Delta]:
        self._blocks[index] = block
        kind = block.get("type")
        if kind in ("text", "thinking") and block.get(kind):
            yield Delta("text" if kind == "text" else "thinking", block[kind])
        elif kind == "tool_use":
            self._calls[index] = len(self._calls)
            yield Delta("call", index=self._calls[index], id=block.get("id"), name=block.get("name"))

    def _extend_block(self, index: int, delta: Body) -> Iterator[Delta]:
        block, kind = self._blocks[index], delta.get("type")
        if kind == "text_delta":
            self._text(index, "text").append(delta["text"])
            yield Delta("text", delta["text"])
        elif kind == "thinking_delta":
            self._text(index, "thinking").append(delta["thinking"])
            yield Delta("thinking", delta["thinking"])
        elif kind == "signature_delta":
            block["signature"] = delta["signature"]
        elif kind == "compaction_delta":  # whole, in one piece
            block.update((key, value) for key, value in delta.items() if key != "type" and value is not None)
        elif kind == "citations_delta":
            citations = block["citations"] = cast("list[Any]", block.get("citations") or [])
            citations.append(delta["citation"])
        elif kind == "input_json_delta":
            self._inputs.setdefault(index, []).append(delta["partial_json"])
            if index in self._calls and delta["partial_json"]:
                yield Delta("call", delta["partial_json"], index=self._calls[index])

    def _text(self, index: int, key: str) -> list[str]:
        """Return the pieces of a block's text; the block may have started with some."""
        return self._texts.setdefault((index, key), [self._blocks[index].get(key) or ""])

    def _parse_input(self, text: str) -> Any:
        """Parse a call's arguments; text that was cut off is wrapped in an object for the API."""
        try:
            return json.loads(text) if text.strip() else {}
        except ValueError:
            if self._message is not None and self._message.get("stop_reason") in (
                "max_tokens",
                "model_context_window_exceeded",
                "refusal",
            ):
                return {"input": text}
            raise


class Anthropic(SDKProvider):
    """A model behind a Messages endpoint."""

    dialect = ANTHROPIC
    package = "anthropic"
    assembler = MessageAssembler

    def _client(self, sdk: Any, key: str | None, variable: str) -> Any:
        credential = {"auth_token" if variable.endswith("AUTH_TOKEN") else "api_key": key or NO_KEY}
        base_url, headers = self._access.base_url, {}
        if base_url is not None:
            headers = withheld(sdk, "ANTHROPIC_CUSTOM_HEADERS", key or NO_KEY)
            base_url = base_url.rstrip("/").removesuffix("/v1")  # the SDK adds it
        return sdk.AsyncAnthropic(**credential, base_url=base_url, max_retries=0, default_headers=headers)

    def _request(self, call: Call) -> Body:
        fields: Body = {"model": self.model, "messages": call.messages, "max_tokens": self._max_tokens(call)}
        if call.system:
            fields["system"] = call.system
        return fields | ({"tools": call.tools} if call.tools else {})

    def _max_tokens(self, call: Call) -> int:
        if call.max_tokens is not None:
            return call.max_tokens
        window = self.info.window
        return max(1, min(window.output, MOST_REPLY, share(window.context, REPLY_SHARE)))

    def _optional(self, call: Call, *, stream: bool) -> Sequence[Option]:
        del stream
        options = self._compaction(call)
        if call.thinking is None:
            return options
        forms: tuple[Body, ...] = _OFF
        if call.thinking:
            budget = max(LEAST_BUDGET, self._max_tokens(call) // 2)
            forms = (
                {"thinking": {"type": "adaptive", "display": "summarized"}},
                {"thinking": {"type": "enabled", "budget_tokens": budget}},
                {},
            )
        return (*options, Option(f"thinking {call.thinking}", ("thinking", "adaptive"), forms))

    def _create(self, client: Any, fields: Body) -> Awaitable[Any]:
        return client.messages.create(**fields)

    def _reason(self, body: Body) -> str:
        return str(body.get("stop_reason") or "")

    def _is_refused(self, body: Body) -> bool:
        return self._reason(body) == "refusal"

"""Chat Completions: OpenAI's own, and every server that speaks it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, Final, cast

from foldline.core.log.messages import Message
from foldline.dialects import OPENAI_CHAT
from foldline.dialects.in_turn import in_turn
from foldline.dialects.payload import fields_of, items_of
from foldline.providers.access import NO_KEY, withheld
from foldline.providers.base import Call, Delta, Stop
from foldline.providers.options import Body, Option
from foldline.providers.sdk import SDKProvider

_OFF: Final[tuple[Body, ...]] = ({"reasoning_effort": "none"}, {"reasoning_effort": "minimal"}, {})
_ON: Final[tuple[Body, ...]] = ({"reasoning_effort": "medium"}, {})
_THOUGHTS: Final = ("reasoning_content", "reasoning")
_TEXTS: Final = (*_THOUGHTS, "content", "refusal")  # fields of a message that come in pieces


class ChatAssembler:
    """Put the chunks of a stream together into a ChatCompletion."""

    def __init__(self) -> None:
        self.ended = False
        self._body: Body = {}
        self._message: Body = {"role": "assistant", "content": None}
        self._texts: dict[str, list[str]] = {}  # pieces, joined at the end: adding to a string copies it
        self._calls: list[Body] = []
        self._arguments: list[list[str]] = []  # of each call, in pieces
        self._current: dict[int, int] = {}  # the call that a chunk's index refers to now
        self._reason: Any = None

    def take(self, event: Body) -> Iterator[Delta]:
        """Take the next chunk; yield its text, its thinking and pieces of calls."""
        for key, value in event.items():
            if key != "choices" and value is not None:
                self._body[key] = value
        choice = _choice(event)
        self._reason = choice.get("finish_reason") or self._reason
        self.ended = self.answered and bool(event.get("usage"))
        delta = fields_of(choice.get("delta"))
        yield from self._take_texts(delta)
        for call in cast("list[Any]", delta.get("tool_calls") or ()):
            if isinstance(call, dict):
                yield self._take_call(cast("Body", call))
        if details := items_of(delta.get("reasoning_details")):  # OpenRouter: blocks to send back unchanged
            self._message.setdefault("reasoning_details", []).extend(details)

    @property
    def answered(self) -> bool:
        """Whether at most usage can follow."""
        return self._reason is not None

    def whole(self) -> Body | None:
        """Return the ChatCompletion; None if no chunk had a finish reason."""
        if self._reason is None:
            return None
        message = self._message | {key: "".join(pieces) for key, pieces in self._texts.items()}
        if self._calls:
            message["tool_calls"] = [
                _with_arguments(call, "".join(pieces))
                for call, pieces in zip(self._calls, self._arguments, strict=True)
            ]
        choice = {"index": 0, "message": message, "finish_reason": self._reason}
        return {**self._body, "object": "chat.completion", "choices": [choice]}

    def _take_texts(self, fields: Body) -> Iterator[Delta]:
        last: str | None = None
        for key in _TEXTS:
            piece = fields.get(key)
            if not isinstance(piece, str) or not piece:
                continue
            self._message.setdefault(key, None)
            self._texts.setdefault(key, []).append(piece)
            if key in _THOUGHTS and piece == last:
                continue  # the same thought under both names
            last = piece
            yield Delta("thinking" if key in _THOUGHTS else "text", piece)

    def _take_call(self, piece: Body) -> Delta:
        index, call_id = piece.get("index"), piece.get("id") or None
        if not isinstance(index, int):
            index = 0 if call_id else max(self._current, default=0)
        place = self._current.get(index)
        # some servers omit the index, or send 0 with every call: another id is another call
        if place is None or (call_id and self._calls[place]["id"] not in ("", call_id)):
            place = self._current[index] = len(self._calls)
            self._calls.append({"id": "", "type": piece.get("type") or "function"})
            self._arguments.append([])
        call = self._calls[place]
        call["id"] = call["id"] or call_id or ""
        kind, argument = _arguments_of(call)
        inner: Body = call.setdefault(kind, {"name": "", argument: ""})
        update = cast("Body", piece.get(kind) or {})
        text = update.get(argument) or ""
        if not isinstance(text, str):
            text = json.dumps(text)
        name = update.get("name") or None
        inner["name"] = inner["name"] or name or ""
        self._arguments[place].append(text)
        return Delta("call", text, index=place, id=call_id, name=name)


def _arguments_of(call: Body) -> tuple[str, str]:
    """Return the field of a call that describes it, and the field of its arguments in there."""
    return ("custom", "input") if call["type"] == "custom" else ("function", "arguments")


def _with_arguments(call: Body, text: str) -> Body:
    kind, argument = _arguments_of(call)
    return call | {kind: call[kind] | {argument: text}}


def _choice(body: Body) -> Body:
    return fields_of(next(iter(items_of(body.get("choices"))), None))


class OpenAISDK(SDKProvider):
    """The parts that both of OpenAI's APIs share."""

    package = "openai"

    @property
    def official(self) -> bool:
        """Whether no other server was named."""
        return self._access.base_url is None

    def _client(self, sdk: Any, key: str | None, variable: str) -> Any:
        del variable
        omitted: Body = {}
        if not self.official:
            omitted = withheld(sdk, "OPENAI_CUSTOM_HEADERS", key or NO_KEY)
            omitted |= {"OpenAI-Organization": sdk.Omit(), "OpenAI-Project": sdk.Omit()}
        return sdk.AsyncOpenAI(
            api_key=key or NO_KEY, base_url=self._access.base_url, max_retries=0, default_headers=omitted
        )


class OpenAIChat(OpenAISDK):
    """A model behind a Chat Completions endpoint."""

    dialect = OPENAI_CHAT
    assembler = ChatAssembler

    def _request(self, call: Call) -> Body:
        system = [{"role": "system", "content": call.system}] if call.system else []
        messages = [*system, *call.messages]
        if not self.official:
            messages = in_turn(messages, OPENAI_CHAT)
        fields: Body = {"model": self.model, "messages": messages}
        return fields | ({"tools": call.tools} if call.tools else {})

    def _optional(self, call: Call, *, stream: bool) -> Sequence[Option]:
        options: list[Option] = []
        if call.max_tokens is not None:
            forms = ({"max_completion_tokens": call.max_tokens}, {"max_tokens": call.max_tokens})
            # a server that does not know the new name may ignore it: the reply would have no limit
            ordered = forms if self.official else forms[::-1]
            options.append(Option("limit", ("max_tokens", "max_completion_tokens"), ordered))
        if stream:
            usage = {"stream_options": {"include_usage": True}}
            options.append(Option("usage", ("stream_options", "include_usage"), (usage, {})))
        if call.thinking is not None:
            options.append(self._thinking(on=call.thinking))
        return options

    def _thinking(self, *, on: bool) -> Option:
        forms: tuple[Body, ...] = _ON if on else _OFF
        if not self.official:  # vLLM, SGLang and llama.cpp switch thinking by the chat template
            forms = ({"extra_body": {"chat_template_kwargs": {"enable_thinking": on}}}, {})
        return Option(f"thinking {on}", ("reasoning", "chat_template_kwargs", "thinking"), forms)

    def _create(self, client: Any, fields: Body) -> Awaitable[Any]:
        return client.chat.completions.create(**fields)

    def _reason(self, body: Body) -> str:
        return str(_choice(body).get("finish_reason") or "")

    def _is_refused(self, body: Body) -> bool:
        refusal = fields_of(_choice(body).get("message")).get("refusal")
        return self._reason(body) == "content_filter" or bool(refusal)

    def _stop(self, body: Body, message: Message) -> Stop:
        stop = super()._stop(body, message)
        if stop == "end" and message.calls:
            return "tools"  # some servers send `stop` after a call
        if stop == "error" and not message.stop and message.parts:
            return "tools" if message.calls else "end"  # a reply with content is not a failure
        return stop

"""Chat Completions: OpenAI's own, and every server that speaks it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, Final, cast

from foldline.core.log.messages import Message
from foldline.dialects import OPENAI_CHAT
from foldline.dialects.in_turn import in_turn
from foldline.providers.base import Call, Delta, Stop
from foldline.providers.options import Body, Option
from foldline.providers.sdk import NO_KEY, SDKProvider, withheld

_OFF: Final[tuple[Body, ...]] = ({"reasoning_effort": "none"}, {"reasoning_effort": "minimal"}, {})
_ON: Final[tuple[Body, ...]] = ({"reasoning_effort": "medium"}, {})
# Servers of open models switch thinking by their chat template (vLLM, SGLang, llama.cpp), others by effort.
_TEMPLATE_OFF: Final[tuple[Body, ...]] = (
    {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}},
    {},
)
_TEMPLATE_ON: Final[tuple[Body, ...]] = (
    {"extra_body": {"chat_template_kwargs": {"enable_thinking": True}}},
    {},
)
_THOUGHTS: Final = ("reasoning_content", "reasoning")
_JOINED: Final = (*_THOUGHTS, "content", "refusal")  # texts of a message that come in pieces


class OpenAISDK(SDKProvider):
    """What both of OpenAI's APIs share."""

    package = "openai"

    @property
    def official(self) -> bool:
        """Whether it is OpenAI's own server, as far as the call says."""
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

    def _request(self, call: Call) -> Body:
        system = [{"role": "system", "content": call.system}] if call.system else []
        messages = [*system, *call.messages]
        if not self.official:
            messages = in_turn(messages, OPENAI_CHAT)
        fields: Body = {"model": self.model, "messages": messages}
        return fields | ({"tools": call.tools} if call.tools else {})

    def _wanted(self, call: Call, *, stream: bool) -> Sequence[Option]:
        wanted: list[Option] = []
        if call.max_tokens is not None:
            forms = ({"max_completion_tokens": call.max_tokens}, {"max_tokens": call.max_tokens})
            # a server that does not know the new name ignores it, and the reply has no limit
            ordered = forms if self.official else forms[::-1]
            wanted.append(Option("limit", ("max_tokens", "max_completion_tokens"), ordered))
        if stream:
            usage = {"stream_options": {"include_usage": True}}
            wanted.append(Option("usage", ("stream_options", "include_usage"), (usage, {})))
        if call.thinking is not None:
            wanted.append(self._thinking(on=call.thinking))
        return wanted

    def _thinking(self, *, on: bool) -> Option:
        forms = _ON if on else _OFF
        if not self.official:
            forms = _TEMPLATE_ON if on else _TEMPLATE_OFF
        return Option(f"thinking {on}", ("reasoning", "chat_template_kwargs", "thinking"), forms)

    def _create(self, client: Any, fields: Body) -> Awaitable[Any]:
        return client.chat.completions.create(**fields)

    def _assembler(self) -> ChatAssembler:
        return ChatAssembler()

    def _reason(self, body: Body) -> str:
        return str(_choice(body).get("finish_reason") or "")

    def _stopped(self, body: Body, message: Message) -> Stop:
        said = _choice(body).get("message")
        refusal = cast("Body", said).get("refusal") if isinstance(said, dict) else None
        if self._reason(body) == "content_filter" or refusal:
            return "refused"
        if message.stop == "end" and message.calls:
            return "tools"  # some servers say `stop` after a call
        if message.stop in ("end", "tools", "length"):
            return cast("Stop", message.stop)
        # servers invent reasons: what came whole and says something is no failure
        return "error" if message.stop or not message.parts else "tools" if message.calls else "end"


class ChatAssembler:
    """Chunks of a Chat Completions stream -> the ChatCompletion they are of."""

    def __init__(self) -> None:
        self.ended = False
        self._body: Body = {}
        self._message: Body = {"role": "assistant", "content": None}
        self._said: dict[str, list[str]] = {}  # pieces: text that grows by each is copied with each
        self._calls: list[Body] = []
        self._arguments: list[list[str]] = []  # of each call, in pieces
        self._current: dict[int, int] = {}  # the call that a chunk's index means now
        self._reason: Any = None

    def take(self, event: Body) -> Iterator[Delta]:
        """Take the next chunk; yield its text, its thinking and pieces of calls."""
        for key, value in event.items():
            if key != "choices" and value is not None:
                self._body[key] = value
        choice = _choice(event)
        self._reason = choice.get("finish_reason") or self._reason
        self.ended = self.said and bool(event.get("usage"))
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        said = cast("Body", delta)
        yield from self._texts(said)
        for call in cast("list[Any]", said.get("tool_calls") or ()):
            if isinstance(call, dict):
                yield self._call(cast("Body", call))
        details = said.get("reasoning_details")  # OpenRouter: blocks to send back as they came
        if isinstance(details, list):
            self._message.setdefault("reasoning_details", []).extend(cast("list[Any]", details))

    @property
    def said(self) -> bool:
        """Whether at most usage can follow."""
        return self._reason is not None

    def whole(self) -> Body | None:
        """Return the ChatCompletion; None where no chunk said why the reply ended."""
        if self._reason is None:
            return None
        message = self._message | {key: "".join(pieces) for key, pieces in self._said.items()}
        if self._calls:
            message["tool_calls"] = [
                _with_arguments(call, "".join(pieces))
                for call, pieces in zip(self._calls, self._arguments, strict=True)
            ]
        choice = {"index": 0, "message": message, "finish_reason": self._reason}
        return {**self._body, "object": "chat.completion", "choices": [choice]}

    def _texts(self, said: Body) -> Iterator[Delta]:
        shown: str | None = None
        for key in _JOINED:
            piece = said.get(key)
            if not isinstance(piece, str) or not piece:
                continue
            self._message.setdefault(key, None)
            self._said.setdefault(key, []).append(piece)
            if key in _THOUGHTS and piece == shown:
                continue  # the same thought under both names
            shown = piece
            yield Delta("thinking" if key in _THOUGHTS else "text", piece)

    def _call(self, piece: Body) -> Delta:
        given, call_id = piece.get("index"), piece.get("id") or None
        index = given if isinstance(given, int) else 0 if call_id else max(self._current, default=0)
        place = self._current.get(index)
        # some servers leave the index out, or send 0 with every call: another id is another call
        if place is None or (call_id and self._calls[place]["id"] not in ("", call_id)):
            place = self._current[index] = len(self._calls)
            self._calls.append({"id": "", "type": piece.get("type") or "function"})
            self._arguments.append([])
        call = self._calls[place]
        call["id"] = call["id"] or call_id or ""
        kind, argument = _arguments_of(call)
        inner: Body = call.setdefault(kind, {"name": "", argument: ""})
        new = cast("Body", piece.get(kind) or {})
        text = new.get(argument) or ""
        if not isinstance(text, str):
            text = json.dumps(text)
        name = new.get("name") or None
        inner["name"] = inner["name"] or name or ""
        self._arguments[place].append(text)
        return Delta("call", text, index=place, id=call_id, name=name)


def _arguments_of(call: Body) -> tuple[str, str]:
    """Return the field of a call that says what is called, and that of the arguments in it."""
    return ("custom", "input") if call["type"] == "custom" else ("function", "arguments")


def _with_arguments(call: Body, text: str) -> Body:
    kind, argument = _arguments_of(call)
    return call | {kind: call[kind] | {argument: text}}


def _choice(body: Body) -> Body:
    choices = body.get("choices")
    first = cast("list[Any]", choices)[0] if isinstance(choices, list) and choices else None
    return cast("Body", first) if isinstance(first, dict) else {}

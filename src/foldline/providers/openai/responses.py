"""OpenAI's Responses API, and every server that implements it."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, Final

from foldline.core.log.messages import Message
from foldline.dialects import OPENAI_RESPONSES
from foldline.dialects.payload import fields_of, items_of
from foldline.errors import ProviderError
from foldline.providers.base import Call, Delta, Stop
from foldline.providers.openai.chat import OpenAISDK
from foldline.providers.options import Body, Option

_OFF: Final[tuple[Body, ...]] = ({"reasoning": {"effort": "none"}}, {"reasoning": {"effort": "minimal"}}, {})
_ON: Final[tuple[Body, ...]] = (
    {"reasoning": {"effort": "medium", "summary": "auto"}},
    {"reasoning": {"effort": "medium"}},
    {},
)
# The server stores nothing, so reasoning comes encrypted, to be sent back.
_SEALED: Final[tuple[Body, ...]] = ({"include": ["reasoning.encrypted_content"]}, {})

_TEXT: Final = {"response.output_text.delta", "response.refusal.delta"}
_THINKING: Final = {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
_ARGUMENTS: Final = {"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}
_CALLS: Final = {"function_call", "custom_tool_call"}
_ENDS: Final = {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}


class ResponseAssembler:
    """Take the events of a stream, the last of which holds the Response."""

    answered = False  # usage comes with the last event

    def __init__(self) -> None:
        self._response: Body | None = None
        self._items: dict[int, Any] = {}
        self._calls: dict[Any, int] = {}

    def take(self, event: Body) -> Iterator[Delta]:
        """Take the next event; yield its text, its thinking and pieces of calls."""
        kind, place = event.get("type"), event.get("output_index")
        piece, item = event.get("delta"), fields_of(event.get("item"))
        if kind in _ENDS and isinstance(event.get("response"), dict):
            self._response = event["response"]
        elif kind == "error":
            self._response = {"error": event.get("error") or event, "status": "failed"}
        elif kind == "response.output_item.added" and item.get("type") in _CALLS:
            index = self._calls.setdefault(place, len(self._calls))
            yield Delta("call", index=index, id=item.get("call_id"), name=item.get("name"))
        elif kind == "response.output_item.done" and isinstance(place, int):
            self._items[place] = event.get("item")
        elif isinstance(piece, str) and piece:
            if kind in _TEXT:
                yield Delta("text", piece)
            elif kind in _THINKING:
                yield Delta("thinking", piece)
            elif kind in _ARGUMENTS:
                yield Delta("call", piece, index=self._calls.setdefault(place, len(self._calls)))

    @property
    def ended(self) -> bool:
        """Whether the last event has come."""
        return self._response is not None

    def whole(self) -> Body | None:
        """Return the Response; None if the stream ended before it."""
        response = self._response
        if response is None or response.get("output") or not self._items:
            return response
        # some servers send the items one by one, and none in the last event
        return {**response, "output": [self._items[place] for place in sorted(self._items)]}


class OpenAIResponses(OpenAISDK):
    """A model behind a Responses endpoint."""

    dialect = OPENAI_RESPONSES
    assembler = ResponseAssembler

    def _request(self, call: Call) -> Body:
        fields: Body = {"model": self.model, "input": call.messages, "store": False}
        if call.system:
            fields["instructions"] = call.system
        if call.tools:
            fields["tools"] = call.tools
        return fields | ({"max_output_tokens": call.max_tokens} if call.max_tokens is not None else {})

    def _optional(self, call: Call, *, stream: bool) -> Sequence[Option]:
        del stream
        options = [*self._compaction(call), Option("sealed", ("include", "ncrypted"), _SEALED)]
        if call.thinking is not None:
            forms = _ON if call.thinking else _OFF
            options.append(Option(f"thinking {call.thinking}", ("reasoning", "summary"), forms))
        return options

    def _create(self, client: Any, fields: Body) -> Awaitable[Any]:
        return client.responses.create(**fields)

    def _reason(self, body: Body) -> str:
        return str(fields_of(body.get("incomplete_details")).get("reason") or body.get("status") or "")

    def _is_refused(self, body: Body) -> bool:
        contents = [items_of(fields_of(item).get("content")) for item in items_of(body.get("output"))]
        kinds = [fields_of(part).get("type") for content in contents for part in content]
        return self._reason(body) == "content_filter" or "refusal" in kinds

    def _stop(self, body: Body, message: Message) -> Stop:
        if body.get("status") == "cancelled":
            raise ProviderError("the server cancelled the reply", kind="cancelled", provider=self.name)
        return super()._stop(body, message)

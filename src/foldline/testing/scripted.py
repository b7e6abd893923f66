"""A model that answers from a script, refuses what a real API refuses, and keeps every request.

The dialect's validator checks the messages, the API (`apis/`) the other fields of a request, and the model
its name and the size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final, Literal

import msgspec

from foldline.core.log.codec import encode
from foldline.core.log.messages import ToolCall, Usage
from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.core.measure.window import Window
from foldline.dialects.values import ANTHROPIC, OPENAI_CHAT
from foldline.testing.answers import Answer, FinishedReply, Item, Refusal, Stop
from foldline.testing.apis import api_of
from foldline.testing.apis.openai import arguments_json
from foldline.testing.meter import Meter
from foldline.testing.objects import AsProvider
from foldline.testing.request import Asked
from foldline.testing.signatures import Binding, Signer
from foldline.testing.wire import Gate, Wire

# error: refused, as by most servers. truncate: the oldest input is cut without notice (Ollama). accept:
# answered, with a usage above the window (z.ai). starve: an empty reply that stopped for length (MiMo).
Overflowing = Literal["error", "truncate", "accept", "starve"]
_ALTERNATE: Final = (
    'messages: roles must alternate between "user" and "assistant", '
    'but found multiple "{role}" roles in a row'
)


class Scripted(AsProvider):
    """A scripted model: a provider in this process, or behind HTTP by `serve`.

    `answers` has an answer for each request (a text, an `Answer`, a `Refusal`, or a function of the request
    that returns one of these), or is a function for all requests. `window` is in tokens of `counter`; as a
    number it is the context and the limit of the reply. `dialect` and `model` are for the provider in this
    process; over HTTP the path selects the dialect, and `models` are the names that exist (None: all).
    `alternation` also refuses two messages of one role in a row, as many chat templates do. `prefill` False
    refuses a list that ends with the assistant, as Anthropic's models since Claude 4.6 do. `signatures`: what
    a `Signer` binds them to. `keep`: how many requests to remember (None: all).
    """

    def __init__(
        self,
        answers: Sequence[Item] | Callable[[Asked], Item] = (),
        *,
        window: int | Window = 200_000,
        dialect: str = OPENAI_CHAT,
        model: str = "scripted",
        models: Sequence[str] | None = None,
        overflow: Overflowing = "error",
        alternation: bool = False,
        prefill: bool = True,
        signatures: Binding = "prefix",
        counter: Counter = OFFLINE,
        keep: int | None = None,
    ) -> None:
        self.model = model
        self.window = Window(context=window, output=window) if isinstance(window, int) else window
        self._be_provider(dialect, model, self.window)
        self.models = tuple(models) if models is not None else (model,)
        self.requests: deque[Asked] = deque(maxlen=keep)
        self._answers = answers
        self._next = 0
        self._request_count = 0
        self._meter = Meter(counter)
        self._signer = Signer(signatures)
        self._any_model = models is None
        self._overflow: Overflowing = overflow
        self._alternation = alternation
        self._prefill = prefill

    async def answer(self, request: Asked) -> Wire:
        """Answer a request from the script, or refuse it as its provider would."""
        try:
            reply, wait = self.reply(request)
        except Refusal as refusal:
            return self.refuse(request, refusal)
        return api_of(request.dialect).respond(reply, wait)

    def reply(self, request: Asked) -> tuple[FinishedReply, float | Gate]:
        """Return the reply to a request, and the wait before it; raises Refusal."""
        self.note(request)
        try:
            self._check(request)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise Refusal(400, f"a field of the request has the wrong type: {error}") from error
        item = self._next_item(request)
        if isinstance(item, Refusal):
            raise item
        answer = Answer(text=item) if isinstance(item, str) else item
        return self._make(request, answer), answer.wait

    def note(self, request: Asked) -> None:
        """Number and store a request."""
        request.index = self._request_count
        self._request_count += 1
        self.requests.append(request)

    def again(self) -> None:
        """Repeat the last answer of the script, because it did not arrive."""
        self._next = max(0, self._next - 1)

    def refuse(self, request: Asked, refusal: Refusal) -> Wire:
        """Return the response with a refusal, and set its text in the request."""
        api = api_of(request.dialect)
        request.refused = str(api.error(refusal)["message"])
        return api.refuse(refusal, _key(request), request)

    def refuse_body(self, dialect: str, text: str) -> Wire:
        """Answer a body that is not a JSON object."""
        api = api_of(dialect)
        return api.refuse(Refusal(400, api.bad_json.format(text=text)))

    def count(self, request: Asked) -> int:
        """Count the input of a request in the model's tokens."""
        return self._meter.count(request)

    @property
    def left(self) -> int:
        """The number of answers in the list that were not used yet."""
        return 0 if callable(self._answers) else len(self._answers) - self._next

    def _check(self, request: Asked) -> None:
        """Check a request; raises the Refusal that its provider would send. Sets `request.tokens`."""
        api = api_of(request.dialect)
        if not request.model:
            raise Refusal(400, api.no_model)
        if not self._any_model and request.model not in self.models:
            raise api.unknown_model(request.model)
        api.check(request, self._signer, prefill=self._prefill)
        api.check_tools(request.tools)
        api.compacts_past(request)
        roles = [message.get("role") for message in request.messages] if self._alternation else []
        for previous, role in pairwise(roles):
            if role == previous and role in ("user", "assistant"):
                raise Refusal(400, _ALTERNATE.format(role=role))
        request.tokens = self._meter.count(request)
        cap = request.max_tokens
        if cap is not None and cap > self.window.output:
            raise api.too_large(request, cap, self.window.output)
        refusal = api.overflow(request.tokens, self.window.input_limit, cap or 0, self.window.context)
        if refusal is not None and self._overflow == "error":
            raise refusal

    def _next_item(self, request: Asked) -> str | Answer | Refusal:
        item: Item
        if callable(self._answers):
            item = self._answers
        elif self._next < len(self._answers):
            item = self._answers[self._next]
            self._next += 1
        else:
            return Refusal(
                400, f"the script has {len(self._answers)} answers, and this request needs one more"
            )
        try:
            while callable(item):
                item = item(request)
        except Refusal as refusal:
            return refusal
        except Exception as error:
            return Refusal(500, f"the script raised {type(error).__name__}: {error}")
        return item

    def _make(self, request: Asked, answer: Answer) -> FinishedReply:
        key = _key(request)
        prefix = f"{api_of(request.dialect).call_prefix}_{key[:20]}"
        calls = tuple(
            msgspec.structs.replace(call, id=call.id or f"{prefix}{number:02d}")
            for number, call in enumerate(answer.calls)
        )
        hidden = request.dialect == ANTHROPIC and not request.thinking
        thinking = None if hidden else answer.thinking
        text, calls, cut = self._cut(request, answer.text, calls, thinking)
        stop: Stop = "length" if cut else answer.stop or ("tools" if calls else "end")
        output = self._output(text, calls, thinking)
        usage = answer.usage or self._usage(request, output)
        if self._overflow == "starve" and request.tokens >= self.window.context:
            text, calls, thinking, stop = "", (), None, "length"
            usage = Usage(input=self.window.context)
        signature = None if thinking is None else self._sign(request, thinking)
        compacted = self._compacted(request, answer)
        return FinishedReply(
            key, request.model, text, calls, thinking, signature, stop, usage, request, compacted
        )

    def _compacted(self, request: Asked, answer: Answer) -> str | None:
        """Return the summary of the server's compaction, if the request causes one; OpenAI encrypts it."""
        trigger = api_of(request.dialect).compacts_past(request)
        if trigger is None or request.tokens <= trigger:
            return None
        return answer.summary if request.dialect == ANTHROPIC else self._signer.seal(answer.summary)

    def _usage(self, request: Asked, output: int) -> Usage:
        usage = self._meter.usage(request, output)
        limit = self.window.input_limit
        if self._overflow == "truncate" and usage.total - output > limit:
            return Usage(input=limit, output=output)
        return usage

    def _sign(self, request: Asked, thinking: str) -> str:
        if request.dialect == ANTHROPIC:
            return self._signer.sign(self._signer.prefix(request.system, request.messages), thinking)
        return self._signer.seal(thinking)

    def _output(self, text: str, calls: Sequence[ToolCall], thinking: str | None) -> int:
        parts = [text, thinking or "", *(f"{call.name}{arguments_json(call)}" for call in calls)]
        return max(1, sum(map(self._meter.output, parts)))

    def _cut(
        self, request: Asked, text: str, calls: tuple[ToolCall, ...], thinking: str | None
    ) -> tuple[str, tuple[ToolCall, ...], bool]:
        """Cut a reply at its `max_tokens` and at the window, as a real model does; the bool: it was cut."""
        room = max(1, self.window.context - request.tokens) if self._overflow == "error" else None
        cap = min((limit for limit in (request.max_tokens, room) if limit is not None), default=None)
        if cap is None or self._output(text, calls, thinking) <= cap:
            return text, calls, False
        left = max(0, cap - self._meter.output(thinking or ""))
        if self._meter.output(text) > left or not calls:
            return self._shorten(text, left), (), True
        whole = arguments_json(calls[0])
        arguments: Any = {} if request.dialect == ANTHROPIC else whole[: len(whole) // 2]
        return text, (msgspec.structs.replace(calls[0], arguments=arguments),), True

    def _shorten(self, text: str, limit: int) -> str:
        while text and (tokens := self._meter.output(text)) > limit:
            text = text[: min(len(text) - 1, len(text) * limit // tokens)]
        return text


def _key(request: Asked) -> str:
    """Return 24 characters, unique in a conversation: a digest of the request."""
    return sha256(encode([request.dialect, request.model, request.system, request.messages])).hexdigest()[:24]

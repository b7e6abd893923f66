"""A model that answers from a script and refuses what a real API refuses. Every request is kept.

The dialect's validator checks the messages, the API (`apis/`) the other fields of a request, and the model
what only a server knows: its names and its window.
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
from foldline.testing.apis.openai import written
from foldline.testing.meter import Meter
from foldline.testing.objects import AsProvider
from foldline.testing.request import Asked
from foldline.testing.signatures import Binding, Signer
from foldline.testing.wire import Gate, Wire

# error: refused, as most do. truncate: the oldest input is cut away in silence (Ollama). accept: answered,
# with the usage that shows it (z.ai). starve: a reply of no token that stopped for length (MiMo).
Overflowing = Literal["error", "truncate", "accept", "starve"]
_ALTERNATE: Final = (
    'messages: roles must alternate between "user" and "assistant", '
    'but found multiple "{role}" roles in a row'
)


class Scripted(AsProvider):
    """A scripted model: a provider in this process, or behind HTTP by `serve`.

    `answers` is a list, each for one request (a text, an `Answer`, a `Refusal`, or a function of the request
    that returns one of these), or one such function for all. `window` in tokens of `counter`: a number is the
    context, and the reply's limit as well. `dialect` and `model` are those of the provider in this process;
    over HTTP the path says the dialect, and `models` (None: every name is known) which models exist.
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
        self._asked = 0
        self._meter = Meter(counter)
        self._signer = Signer(signatures)
        self._any_model = models is None
        self._overflow: Overflowing = overflow
        self._alternation = alternation
        self._prefill = prefill

    async def answer(self, asked: Asked) -> Wire:
        """Answer a request by the script, or refuse it as its provider would."""
        try:
            made, wait = self.reply(asked)
        except Refusal as refusal:
            return self.refuse(asked, refusal)
        return api_of(asked.dialect).respond(made, wait)

    def reply(self, asked: Asked) -> tuple[FinishedReply, float | Gate]:
        """Make the reply to a request, and the wait before it; raises Refusal."""
        self.note(asked)
        try:
            self._check(asked)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise api_of(asked.dialect).bad(f"a field of the request has the wrong type: {error}") from error
        item = self._script(asked)
        if isinstance(item, Refusal):
            raise item
        answer = Answer(text=item) if isinstance(item, str) else item
        return self._make(asked, answer), answer.wait

    def note(self, asked: Asked) -> None:
        """Number and store a request."""
        asked.index = self._asked
        self._asked += 1
        self.requests.append(asked)

    def again(self) -> None:
        """Repeat the last answer of the script, because it did not arrive."""
        self._next = max(0, self._next - 1)

    def refuse(self, asked: Asked, refusal: Refusal) -> Wire:
        """Return the response of a refusal, and note its words on the request."""
        api = api_of(asked.dialect)
        asked.refused = str(api.error(refusal)["message"])
        return api.refuse(refusal, _key(asked), asked)

    def refuse_body(self, dialect: str, text: str) -> Wire:
        """Answer a body that is not a JSON object."""
        api = api_of(dialect)
        return api.refuse(api.bad(api.bad_json.format(text=text)))

    def count(self, asked: Asked) -> int:
        """Count the input of a request in the model's tokens."""
        return self._meter.count(asked)

    @property
    def left(self) -> int:
        """The number of answers left in the list."""
        return 0 if callable(self._answers) else len(self._answers) - self._next

    def _check(self, asked: Asked) -> None:
        """Check a request; raises the Refusal that its provider would send. Sets `asked.tokens`."""
        api = api_of(asked.dialect)
        if not asked.model:
            raise api.bad(api.no_model)
        if not self._any_model and asked.model not in self.models:
            raise api.unknown_model(asked.model)
        api.check(asked, self._signer, prefill=self._prefill)
        api.check_tools(asked.tools)
        api.compacts_past(asked)
        roles = [message.get("role") for message in asked.messages] if self._alternation else []
        for before, role in pairwise(roles):
            if role == before and role in ("user", "assistant"):
                raise api.bad(_ALTERNATE.format(role=role))
        asked.tokens = self._meter.count(asked)
        cap, most = asked.max_tokens, self.window.output
        if cap is not None and cap > most:
            raise api.too_large(asked, cap, most)
        refusal = api.overflow(asked.tokens, self.window.input_limit, cap or 0, self.window.context)
        if refusal is not None and self._overflow == "error":
            raise refusal

    def _script(self, asked: Asked) -> str | Answer | Refusal:
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
                item = item(asked)
        except Refusal as refusal:
            return refusal
        except Exception as error:
            return Refusal(500, f"the script raised {type(error).__name__}: {error}")
        return item

    def _make(self, asked: Asked, answer: Answer) -> FinishedReply:
        key = _key(asked)
        prefix = f"{api_of(asked.dialect).call_prefix}_{key[:20]}"
        calls = tuple(
            msgspec.structs.replace(call, id=call.id or f"{prefix}{number:02d}")
            for number, call in enumerate(answer.calls)
        )
        hidden = asked.dialect == ANTHROPIC and not asked.thinking
        thinking = None if hidden else answer.thinking
        text, calls, cut = self._cut(asked, answer.text, calls, thinking)
        stop: Stop = "length" if cut else answer.stop or ("tools" if calls else "end")
        output = self._output(text, calls, thinking)
        usage = answer.usage or self._usage(asked, output)
        if self._starved(asked):
            text, calls, thinking, stop = "", (), None, "length"
            usage = Usage(input=self.window.context)
        signature = None if thinking is None else self._sign(asked, thinking)
        compacted = self._compacted(asked, answer)
        return FinishedReply(
            key, asked.model, text, calls, thinking, signature, stop, usage, asked, compacted
        )

    def _compacted(self, asked: Asked, answer: Answer) -> str | None:
        """Return the summary of the server's compaction, if the request wants one; OpenAI encrypts it."""
        most = api_of(asked.dialect).compacts_past(asked)
        if most is None or asked.tokens <= most:
            return None
        return answer.summary if asked.dialect == ANTHROPIC else self._signer.seal(answer.summary)

    def _usage(self, asked: Asked, output: int) -> Usage:
        usage = self._meter.usage(asked, output)
        most = self.window.input_limit
        if self._overflow == "truncate" and usage.total - output > most:
            return Usage(input=most, output=output)
        return usage

    def _starved(self, asked: Asked) -> bool:
        return self._overflow == "starve" and asked.tokens >= self.window.context

    def _sign(self, asked: Asked, thinking: str) -> str:
        if asked.dialect == ANTHROPIC:
            return self._signer.sign(self._signer.prefix(asked.system, asked.messages), thinking)
        return self._signer.seal(thinking)

    def _output(self, text: str, calls: Sequence[ToolCall], thinking: str | None) -> int:
        said = [text, thinking or "", *(f"{call.name}{written(call)}" for call in calls)]
        return max(1, sum(self._meter.output(part) for part in said))

    def _cut(
        self, asked: Asked, text: str, calls: tuple[ToolCall, ...], thinking: str | None
    ) -> tuple[str, tuple[ToolCall, ...], bool]:
        """Cut a reply at its cap and at the window, as a real model does."""
        room = max(1, self.window.context - asked.tokens) if self._overflow == "error" else None
        caps = [cap for cap in (asked.max_tokens, room) if cap is not None]
        cap = min(caps, default=None)
        if cap is None or self._output(text, calls, thinking) <= cap:
            return text, calls, False
        left = max(0, cap - self._meter.output(thinking or ""))
        if self._meter.output(text) > left or not calls:
            return self._shorten(text, left), (), True
        first = calls[0]
        arguments: Any = {} if asked.dialect == ANTHROPIC else written(first)[: len(written(first)) // 2]
        return text, (msgspec.structs.replace(first, arguments=arguments),), True

    def _shorten(self, text: str, most: int) -> str:
        while text and (tokens := self._meter.output(text)) > most:
            text = text[: min(len(text) - 1, len(text) * most // tokens)]
        return text


def _key(asked: Asked) -> str:
    """Return 24 characters, unique in a conversation: a digest of the request."""
    return sha256(encode([asked.dialect, asked.model, asked.system, asked.messages])).hexdigest()[:24]

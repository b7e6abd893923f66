"""Refuse what a real API refuses, in its own words: shapes, pairing, models, limits, signatures.

The dialect's own validator checks the list; this adds what stands around the list in a request, and
what only the server knows: its models, its window, and the signatures that it issued.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, Literal, cast

from foldline.core.measure.window import Window
from foldline.dialects import get
from foldline.dialects.values import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES
from foldline.testing.meter import Meter
from foldline.testing.refusals import Refusal
from foldline.testing.request import LIST_KEY, Asked
from foldline.testing.signatures import Signer
from foldline.testing.words import anthropic as words_anthropic
from foldline.testing.words import openai as words_openai

# error: refused, as most do. truncate: the oldest input is cut away in silence (Ollama). accept: answered,
# with the usage that shows it (z.ai). starve: a reply of no token that stopped for length (MiMo).
Overflowing = Literal["error", "truncate", "accept", "starve"]

THINKING_LEAST: Final = 1_024  # Anthropic's smallest budget for thinking
_ENCRYPTED: Final = "encrypted_content"
_ALTERNATE: Final = (
    'messages: roles must alternate between "user" and "assistant", '
    'but found multiple "{role}" roles in a row'
)


def bad(text: str) -> Refusal:
    """Return the refusal of a bad request by Anthropic."""
    return Refusal(400, text, kind="invalid_request_error")


class Strict:
    """The rules of one served model.

    `models` None takes every name. `alternation` also refuses two messages of one role in a row, as Anthropic
    did before it combined them and as many chat templates still do. `prefill` False refuses a list that ends
    with the assistant, as Anthropic's models since Claude 4.6 do.
    """

    def __init__(
        self,
        window: Window,
        meter: Meter,
        signer: Signer,
        *,
        models: Sequence[str] | None = None,
        overflow: Overflowing = "error",
        alternation: bool = False,
        prefill: bool = True,
    ) -> None:
        self.window = window
        self.overflow: Overflowing = overflow
        self._meter = meter
        self._signer = signer
        self._models = models
        self._alternation = alternation
        self._prefill = prefill

    def check(self, asked: Asked) -> None:
        """Check a request; raises the Refusal that its provider would send. Sets `asked.tokens`."""
        self._model(asked)
        if asked.dialect == ANTHROPIC:
            self._anthropic(asked)
        elif asked.dialect == OPENAI_CHAT:
            self._chat(asked)
        else:
            self._responses(asked)
        if self._alternation:
            _alternate(asked)
        asked.tokens = self._meter.count(asked)
        self._cap(asked)
        if self.overflow == "error":
            self._fits(asked)

    def _model(self, asked: Asked) -> None:
        if not asked.model:
            raise (
                bad("model: Field required")
                if asked.dialect == ANTHROPIC
                else bad_openai("you must provide a model parameter")
            )
        if self._models is None or asked.model in self._models:
            return
        if asked.dialect == ANTHROPIC:
            raise Refusal(404, f"model: {asked.model}", kind="not_found_error")
        raise Refusal(
            404,
            f"The model `{asked.model}` does not exist or you do not have access to it.",
            kind="invalid_request_error",
            code="model_not_found",
        )

    def _anthropic(self, asked: Asked) -> None:
        body = asked.body
        for key in ("messages", "max_tokens"):
            if body.get(key) is None:
                raise bad(f"{key}: Field required")
        cap = body["max_tokens"]
        if not isinstance(cap, int) or isinstance(cap, bool):
            raise bad("max_tokens: Input should be a valid integer")
        if cap < 1:
            raise bad("max_tokens: must be greater than or equal to 1")
        if not isinstance(body["messages"], list):
            raise bad("messages: Input should be a valid list")
        problems = get(ANTHROPIC).validate(asked.messages, asked.system)
        words = words_anthropic.say(problems, asked.messages) if problems else None
        if words is not None:
            raise bad(words)
        _thinking(asked, cap)
        self._signatures(asked)
        if asked.messages[-1].get("role") == "assistant" and (asked.thinking or not self._prefill):
            raise bad(
                "This model does not support assistant message prefill. The conversation must end with a "
                "user message."
            )

    def _signatures(self, asked: Asked) -> None:
        places = self._signer.bad(asked.system, asked.messages)
        if not places:
            return
        n, place = places[0]
        last = max(i for i, message in enumerate(asked.messages) if message.get("role") == "assistant")
        if n == last and self._signer.ours(asked.messages[n]["content"][place]):
            raise bad(
                f"messages.{n}.content.{place}: `thinking` or `redacted_thinking` blocks in the latest "
                "assistant "
                "message cannot be modified. These blocks must remain as they were in the original response."
            )
        raise bad(f"messages.{n}.content.{place}: Invalid `signature` in `thinking` block")

    def _chat(self, asked: Asked) -> None:
        _require_list(asked)
        problems = get(OPENAI_CHAT).validate(asked.messages)
        if problems:
            raise words_openai.chat(problems, asked.messages)

    def _responses(self, asked: Asked) -> None:
        if not isinstance(asked.body.get("input"), str):
            _require_list(asked)
        previous = asked.body.get("previous_response_id")
        if previous is not None:
            text = f"Previous response with id '{previous}' not found."
            raise words_openai.bad(text, "previous_response_id", "previous_response_not_found")
        problems = get(OPENAI_RESPONSES).validate(asked.messages, asked.system)
        if problems:
            raise words_openai.responses(problems, asked.messages)
        self._reasoning(asked.messages)

    def _reasoning(self, items: Sequence[Any]) -> None:
        """Check that encrypted reasoning is ours, and that items made with reasoning have it."""
        before: set[str] = set()
        for index, item in enumerate(items):
            item_id, kind = item.get("id"), item.get("type")
            if kind == "item_reference":
                raise Refusal(
                    404,
                    f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to "
                    "false.",
                    kind="invalid_request_error",
                    param="input",
                )
            sealed = item.get(_ENCRYPTED) if kind == "reasoning" else None
            if isinstance(sealed, str) and not self._signer.sealed(sealed):
                raise words_openai.bad(
                    f"The encrypted content for item {item_id} could not be verified. "
                    "Reason: Encrypted content could not be decrypted or parsed.",
                    f"input[{index}].{_ENCRYPTED}",
                    "invalid_encrypted_content",
                )
            if not isinstance(item_id, str):
                continue
            before.add(item_id)
            needed = reasoning_of(item_id)
            if needed is not None and needed not in before:
                text = (
                    f"Item '{item_id}' of type '{kind}' was provided without its required "
                    f"'reasoning' item: '{needed}'."
                )
                raise words_openai.bad(text, "input")

    def _cap(self, asked: Asked) -> None:
        cap, most = asked.max_tokens, self.window.output
        if cap is None or cap <= most:
            return
        if asked.dialect == ANTHROPIC:
            raise bad(
                f"max_tokens: {cap} > {most}, which is the maximum allowed number of output tokens for "
                f"{asked.model}"
            )
        key = next(
            key for key in ("max_completion_tokens", "max_tokens", "max_output_tokens") if key in asked.body
        )
        raise words_openai.bad(
            f"{key} is too large: {cap}. This model supports at most {most} completion tokens, whereas you "
            f"provided {cap}.",
            key,
            "invalid_value",
        )

    def _fits(self, asked: Asked) -> None:
        """Refuse what does not fit: the input, or (where the API adds it) the input and the reply's cap."""
        used, most, cap = asked.tokens, self.window.input_limit, asked.max_tokens or 0
        both = used + cap > self.window.context
        if asked.dialect == ANTHROPIC:
            if used > most:
                raise bad(f"prompt is too long: {used} tokens > {most} maximum")
            if both:
                raise bad(
                    f"input length and `max_tokens` exceed context limit: {used} + {cap} > "
                    f"{self.window.context}, "
                    "decrease input length or `max_tokens` and try again"
                )
        elif asked.dialect == OPENAI_RESPONSES:
            if used > most:  # a reply that finds no room is cut short instead
                raise words_openai.bad(
                    "Your input exceeds the context window of this model. Please adjust your input and try "
                    "again.",
                    "input",
                    "context_length_exceeded",
                )
        elif used > most or both:
            raise _chat_overflow(used, self.window.context if both and used <= most else most, cap)


def bad_openai(text: str) -> Refusal:
    """Return OpenAI's refusal of a request without naming a parameter."""
    return words_openai.bad(text)


def reasoning_of(item_id: str) -> str | None:
    """The id of the reasoning that an item of ours was made with: its own id says so; None for none."""
    kind, _, rest = item_id.partition("_r")
    return f"rs_r{rest[:24]}" if kind in ("fc", "msg") and len(rest) >= 24 else None


def _chat_overflow(used: int, most: int, cap: int) -> Refusal:
    text = (
        f"This model's maximum context length is {most} tokens. However, you requested {used + cap} tokens "
        f"({used} in the messages, {cap} in the completion). Please reduce the length of the messages or "
        "completion."
        if cap
        else f"This model's maximum context length is {most} tokens. However, your messages resulted in "
        f"{used} tokens. "
        "Please reduce the length of the messages."
    )
    return words_openai.bad(text, "messages", "context_length_exceeded")


def _require_list(asked: Asked) -> None:
    key = LIST_KEY[asked.dialect]
    if asked.body.get(key) is None:
        raise words_openai.missing(key)
    if not isinstance(asked.body[key], list):
        raise words_openai.bad(
            f"Invalid type for '{key}': expected an array of objects.", key, "invalid_type"
        )


def _thinking(asked: Asked, cap: int) -> None:
    """Check a request with thinking: it needs a budget, and an open tool loop must begin with thinking."""
    value = asked.body.get("thinking")
    if not isinstance(value, dict) or cast("dict[str, Any]", value).get("type") != "enabled":
        return
    budget = cast("dict[str, Any]", value).get("budget_tokens")
    if not isinstance(budget, int):
        raise bad("thinking.enabled.budget_tokens: Field required")
    if budget < THINKING_LEAST:
        raise bad(
            f"thinking.enabled.budget_tokens: Input should be greater than or equal to {THINKING_LEAST}"
        )
    if budget >= cap:
        raise bad("`max_tokens` must be greater than `thinking.budget_tokens`.")
    n = _open_loop(asked.messages)
    if n is None:
        return
    content = asked.messages[n].get("content")
    first: Any = cast("list[Any]", content)[0].get("type") if isinstance(content, list) else "text"
    if first not in ("thinking", "redacted_thinking"):
        raise bad(
            f"messages.{n}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. "
            "When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding "
            "the "
            "lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable "
            "`thinking`."
        )


def _open_loop(messages: Sequence[Any]) -> int | None:
    """The assistant message whose results end the list, or None where the list ends otherwise."""
    content = messages[-1].get("content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    if len(messages) < 2 or not any(block.get("type") == "tool_result" for block in blocks):
        return None
    return len(messages) - 2 if messages[-2].get("role") == "assistant" else None


def _alternate(asked: Asked) -> None:
    roles = [message.get("role") for message in asked.messages]
    for before, role in pairwise(roles):
        if role == before and role in ("user", "assistant"):
            text = _ALTERNATE.format(role=role)
            raise bad(text) if asked.dialect == ANTHROPIC else bad_openai(text)

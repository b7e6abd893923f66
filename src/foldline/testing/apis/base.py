"""The base class of the served APIs: their refusals and the format of their replies."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from foldline.core.log.codec import encode
from foldline.dialects import Problem
from foldline.dialects.payload import fields_of, items_of
from foldline.testing.answers import FinishedReply, Refusal
from foldline.testing.request import Asked
from foldline.testing.signatures import Signer
from foldline.testing.wire import EVENTS, Gate, Wire, sse

_QUOTED = re.compile(r"'([^']*)'")


def named(problem: Problem, problems: Sequence[Problem]) -> list[str]:
    """Return the quoted names in the texts of a problem and of others with its rule in the same message."""
    same = [other for other in problems if (other.rule, other.index) == (problem.rule, problem.index)]
    return [match[1] for other in same if (match := _QUOTED.search(other.text))]


class ModelApi(ABC):
    """One API. `statuses` has the usual error for a status: (error type, code, message)."""

    dialect: ClassVar[str]
    tool_name: ClassVar[str] = r"[a-zA-Z0-9_-]{1,64}"
    statuses: ClassVar[dict[int, tuple[str, str | None, str]]]
    request_id: ClassVar[str] = "x-request-id"
    call_prefix: ClassVar[str] = "call"
    no_key: ClassVar[str]
    no_model: ClassVar[str]
    bad_json: ClassVar[str]

    # ---- checks

    @abstractmethod
    def unknown_model(self, model: str) -> Refusal:
        """Return the refusal of a model that the server does not have."""

    @abstractmethod
    def check(self, request: Asked, signer: Signer, *, prefill: bool) -> None:
        """Check a request; raises the Refusal of the first problem."""

    def check_tools(self, tools: Any) -> None:
        """Refuse tools that are not a list, and invalid or duplicate names."""
        if not isinstance(tools, list | None):
            raise Refusal(400, "tools: expected an array of objects")
        seen = set[Any]()
        for index, tool in enumerate(map(fields_of, items_of(tools))):
            definition = tool if "name" in tool else fields_of(tool.get(str(tool.get("type"))))
            name = definition.get("name")
            if "name" in definition and not (isinstance(name, str) and re.fullmatch(self.tool_name, name)):
                raise Refusal(400, f"tools.{index}.name: String should match pattern '^{self.tool_name}$'")
            if name is not None and name in seen:
                raise Refusal(400, "tools: Tool names must be unique.")
            seen.add(name)

    def compacts_past(self, request: Asked) -> int | None:
        """Return the input in tokens above which the server should compact; None: the request wants none.

        Raises the Refusal of an invalid setting.
        """
        del request
        return None

    @abstractmethod
    def too_large(self, request: Asked, cap: int, limit: int) -> Refusal:
        """Return the refusal of a `max_tokens` (`cap`) above the model's limit."""

    @abstractmethod
    def overflow(self, used: int, limit: int, cap: int, context: int) -> Refusal | None:
        """Return the refusal of an input, or of input and `max_tokens` (`cap`), that does not fit, or None.

        `used` and `limit` are the tokens of the input, `context` the whole window.
        """

    # ---- refusals and replies on the wire

    def status(self, refusal: Refusal) -> int:
        """Return the status as the provider sends it: 529 is Anthropic's, elsewhere it is 503."""
        return 503 if refusal.status == 529 and 529 not in self.statuses else refusal.status

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """Return the inner object of an error's body; streams send it without the body."""
        status = self.status(refusal)
        kind, code, text = self.statuses.get(status, self.statuses[500 if status >= 500 else 400])
        return {
            "message": refusal.text or text,
            "type": refusal.kind or kind,
            "param": refusal.param,
            "code": refusal.code if refusal.text else refusal.code or code,
        }

    def error_body(self, refusal: Refusal, request_id: str) -> dict[str, Any]:
        """Return the JSON body of an error."""
        del request_id
        return {"error": self.error(refusal)}

    def error_event(self, inner: dict[str, Any], number: int) -> bytes:
        """Return the event that reports an error in a stream that has begun; `number` is its position."""
        del number
        return sse({"error": inner})

    @abstractmethod
    def body(self, reply: FinishedReply) -> dict[str, Any]:
        """Return the body of a reply that is not streamed."""

    @abstractmethod
    def stream(self, reply: FinishedReply) -> Sequence[bytes]:
        """Return the events of a finished reply."""

    def respond(self, reply: FinishedReply, wait: float | Gate = 0.0) -> Wire:
        """Return the HTTP response with a reply."""
        body, headers = self.body(reply), self._headers(reply.key)
        if reply.request.stream:
            events = tuple(self.stream(reply))
            return Wire(200, events, content_type=EVENTS, headers=headers, wait=wait, reply=body)
        return Wire(200, (encode(body),), headers=headers, wait=wait, reply=body)

    def refuse(self, refusal: Refusal, key: str = "0", request: Asked | None = None) -> Wire:
        """Return the HTTP response with a refusal."""
        del request
        body = self.error_body(refusal, f"req_{key}")
        headers = (*self._headers(key), *refusal.headers())
        return Wire(self.status(refusal), (encode(body),), headers=headers)

    def _headers(self, key: str) -> tuple[tuple[str, str], ...]:
        return ((self.request_id, f"req_{key}"),)

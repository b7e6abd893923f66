"""The base of the served APIs: their refusals, in their words, and the form of their replies."""

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
from foldline.testing.wire import EVENTS, Gate, Wire

_QUOTED = re.compile(r"'([^']*)'")


def named(problem: Problem, problems: Sequence[Problem]) -> list[str]:
    """Return the names in quotes of a problem, and of others with its rule in the same message."""
    same = [one for one in problems if (one.rule, one.index) == (problem.rule, problem.index)]
    return [found[1] for one in same if (found := _QUOTED.search(one.text))]


class ModelApi(ABC):
    """One API. What it says for a status if a test gives no text: (error type, code, message)."""

    dialect: ClassVar[str]
    tool_name: ClassVar[str] = r"[a-zA-Z0-9_-]{1,64}"
    statuses: ClassVar[dict[int, tuple[str, str | None, str]]]
    request_id: ClassVar[str] = "x-request-id"
    call_prefix: ClassVar[str] = "call"
    no_key: ClassVar[str]
    no_model: ClassVar[str]
    bad_json: ClassVar[str]

    # ---- what is refused

    @abstractmethod
    def bad(self, text: str) -> Refusal:
        """Return the refusal of a bad request."""

    @abstractmethod
    def unknown_model(self, model: str) -> Refusal:
        """Return the refusal of a model that the server does not have."""

    @abstractmethod
    def check(self, asked: Asked, signer: Signer, *, prefill: bool) -> None:
        """Check the request itself; raises the Refusal of what is wrong with it."""

    def check_tools(self, tools: Any) -> None:
        """Refuse tools that are not a list, and invalid or duplicate names."""
        if not isinstance(tools, list | None):
            raise self.bad("tools: expected an array of objects")
        seen = set[Any]()
        for at, tool in enumerate(map(fields_of, items_of(tools))):
            held = tool if "name" in tool else fields_of(tool.get(str(tool.get("type"))))
            name = held.get("name")
            if "name" in held and not (isinstance(name, str) and re.fullmatch(self.tool_name, name)):
                raise self.bad(f"tools.{at}.name: String should match pattern '^{self.tool_name}$'")
            if name is not None and name in seen:
                raise self.bad("tools: Tool names must be unique.")
            seen.add(name)

    def compacts_past(self, asked: Asked) -> int | None:
        """Return the input in tokens past which the request wants the server to compact; None: never.

        Raises the Refusal of an invalid request for it.
        """
        del asked
        return None

    @abstractmethod
    def too_large(self, asked: Asked, cap: int, most: int) -> Refusal:
        """Return the refusal of a cap of the reply above the model's limit."""

    @abstractmethod
    def overflow(self, used: int, most: int, cap: int, context: int) -> Refusal | None:
        """Return the refusal of an input, or of input and cap, that do not fit; None where they do."""

    # ---- refusals and replies on the wire

    def status(self, refusal: Refusal) -> int:
        """Return the status as the provider sends it: 529 is Anthropic's, elsewhere it is 503."""
        return 503 if refusal.status == 529 and 529 not in self.statuses else refusal.status

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """Return the inner object of an error's body, which streams also send by itself."""
        status = self.status(refusal)
        kind, code, text = self.statuses.get(status, self.statuses[500 if status >= 500 else 400])
        said = refusal.code if refusal.text else refusal.code or code
        return {
            "message": refusal.text or text,
            "type": refusal.kind or kind,
            "param": refusal.param,
            "code": said,
        }

    def error_body(self, refusal: Refusal, request_id: str) -> dict[str, Any]:
        """Return the JSON body of an error."""
        del request_id
        return {"error": self.error(refusal)}

    @abstractmethod
    def error_event(self, inner: dict[str, Any], number: int) -> bytes:
        """Return the event by which a stream that has begun reports an error; `number` is its place."""

    @abstractmethod
    def body(self, made: FinishedReply) -> dict[str, Any]:
        """Return a finished reply whole."""

    @abstractmethod
    def stream(self, made: FinishedReply) -> Sequence[bytes]:
        """Return the events of a finished reply."""

    def respond(self, made: FinishedReply, wait: float | Gate = 0.0) -> Wire:
        """Return what goes over the wire for a reply."""
        body, headers = self.body(made), self._headers(made.key)
        if made.asked.stream:
            events = tuple(self.stream(made))
            return Wire(200, events, content_type=EVENTS, headers=headers, wait=wait, reply=body)
        return Wire(200, (encode(body),), headers=headers, wait=wait, reply=body)

    def refuse(self, refusal: Refusal, key: str = "0", asked: Asked | None = None) -> Wire:
        """Return what goes over the wire for a refusal."""
        del asked
        body = self.error_body(refusal, f"req_{key}")
        headers = (*self._headers(key), *refusal.headers())
        return Wire(self.status(refusal), (encode(body),), headers=headers)

    def _headers(self, key: str) -> tuple[tuple[str, str], ...]:
        return ((self.request_id, f"req_{key}"),)

"""Contents of Google's Gemini API, also used by its SDKs and the Agent Development Kit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from foldline.core.log.dialects import Traits
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Part, Role, Text, Usage
from foldline.dialects.dialect import Dialect, Replace, Slot, replied
from foldline.dialects.edits import replacements
from foldline.dialects.gemini.form import (
    CALL,
    KINDS,
    RESULT,
    ROLES,
    check_message,
    held,
    kinds_of,
    parts_in,
    spelt,
)
from foldline.dialects.gemini.read import parts_of, role_of, slots_of
from foldline.dialects.gemini.write import GeminiWriter, edit_native, has, request
from foldline.dialects.payload import Fields, count, fields_of, items_of, peek, read
from foldline.dialects.values import GEMINI, Losses, Problem, Report, reporter
from foldline.errors import DialectError

_STOPS = {"STOP": "end", "MAX_TOKENS": "length"}
_OTHERS = ("content", "kind")  # fields of other formats whose messages have parts
_COUNTED = ("prompt", "cachedContent", "toolUsePrompt", "candidates", "thoughts")
_PLAIN = {"user": "user", "assistant": "model"}


class GeminiDialect(Dialect):
    """The dialect `gemini`.

    A call is identified by its id, or by the name of its function and its position. Consecutive contents of
    the model are one reply: streaming chats store each chunk as a content. Converted messages are merged into
    turns.
    """

    name = GEMINI
    message_check = staticmethod(check_message)
    edit_native = staticmethod(edit_native)
    traits = Traits(unique_ids=False, own_results=False, splits_replies=True)
    element = "content"
    lists = "contents"
    content = "parts"
    moves_system = True
    bare = True
    templated = False

    # ---- reading

    def decode_reply(self, reply: Any) -> Message:
        """Read a complete response: the content of its first candidate, usage, model and stop reason.

        A bare content is read like in `decode`. Raises DialectError for a response without a candidate.
        """
        body, _ = read(reply)
        if "candidates" not in body:
            return self.decode(reply)
        candidate = fields_of(next(iter(items_of(body["candidates"])), None))
        if not candidate:
            raise DialectError("the response has no candidate (was its prompt blocked?)")
        content: Fields = {"parts": [], **fields_of(candidate.get("content")), "role": "model"}
        stop = held(candidate, "finishReason")
        stop = _STOPS.get(str(stop), "error") if stop is not None else None
        if stop == "end" and has(content, CALL):
            stop = "tools"
        usage = _usage(held(body, "usageMetadata"))
        return replied(self.decode(content), usage, held(body, "modelVersion"), stop)

    def decode_system(self, system: Any) -> Message:
        """Read a system prompt (text, a list of parts, or a content) as a system message."""
        body = read(system)[0] if not isinstance(system, str | list) else {}
        return super().decode_system(body.get("parts") if body else system)

    def recognises(self, payload: Any) -> bool:
        """Return whether a message is valid in this dialect only: its parts have a known key and no type."""
        role, parts = peek(payload, "role"), peek(payload, "parts")
        has_role = isinstance(role, str | None) and (role in ROLES or role in ("function", "tool"))
        others = any(peek(payload, key) is not None for key in _OTHERS)
        if not has_role or not isinstance(parts, list) or others:
            return False
        items = items_of(cast("Any", parts))
        if items and all(isinstance(part, str) for part in items):
            return True
        typed = any(peek(part, "type") is not None for part in items)
        return not typed and any(_has_kind(part) for part in items)

    def is_reply(self, payload: Any) -> bool:
        """Return whether this is a GenerateContentResponse."""
        return isinstance(peek(payload, "candidates"), list)

    def adopt(self, payload: Any, salt: str) -> Any:
        """Return a plain text message as a content; other payloads unchanged."""
        del salt
        text, role = peek(payload, "content"), peek(payload, "role")
        if not isinstance(text, str) or role not in _PLAIN:
            return payload
        return {"role": _PLAIN[role], "parts": [{"text": text}]}

    def _parts(self, body: Any, index: int | None) -> tuple[Role, Sequence[Part]]:
        return role_of(body, index), parts_of(body, index)

    def _system_parts(self, system: Any) -> tuple[Text, ...]:
        parts = parts_of({"parts": system if isinstance(system, list) else [{"text": system}]})
        texts = tuple(part for part in parts if isinstance(part, Text))
        if len(texts) < len(parts):
            raise DialectError("the system prompt may contain only texts")
        return texts

    # ---- repairs

    def call_slots(self, body: Fields) -> tuple[list[Slot], list[Slot]]:
        """Return the call ids of a content: those of its calls and those of its responses."""
        return slots_of(body)

    def reply_messages(self, body: Fields) -> tuple[list[Any], Replace]:
        """Return the content of a response, and a function that replaces it."""
        candidate = fields_of(next(iter(items_of(body.get("candidates"))), None))
        content = fields_of(candidate.get("content"))
        if not content.get("parts"):
            return [], lambda _: body
        return [{**content, "role": "model"}], lambda new: {
            **body,
            "candidates": [{**candidate, "content": new[0]}],
        }

    def is_models(self, body: Fields) -> bool:
        """Return whether a content was written by the model."""
        return body.get("role") == "model"

    # ---- writing

    def more(self, messages: list[Any]) -> list[Any]:
        """Return the last content of a request and new ones in the form that a request requires."""
        return request(messages, Losses())

    def text_part(self, role: str, text: str) -> Fields:
        """Return a text part of a content."""
        del role
        return {"text": text}

    def _edited_system(self, message: Message, system: Any, edits: Sequence[Edit], index: int) -> Any:
        if isinstance(system, str):
            return super()._edited_system(message, system, edits, index)
        body = edit_native({"parts": system}, replacements(edits), index)
        return body["parts"] if body else ""

    def _writer(self, received: Sequence[tuple[Message, Any]]) -> GeminiWriter:
        return GeminiWriter(call.id for message, _ in received for call in message.calls)

    def count_losses(self, body: Any, losses: Losses) -> None:
        """Count the fields of a content and of its native parts that are lost, e.g. signatures."""
        for key, value in fields_of(body).items():
            if key not in ("role", "parts") and value is not None:
                losses.field(key)
        for part in parts_in(fields_of(body)):
            data = {spelt(part, kind) for kind in KINDS}
            for key, value in part.items():
                if value not in (None, False) and key not in data and key != "thought":
                    losses.field(key)

    # ---- rules

    def _check_system(self, report: Report, system: Any) -> None:
        parts = fields_of(system).get("parts", 0) if isinstance(system, dict) else system
        if parts is None or isinstance(parts, str):
            return
        texts = [fields_of(part).get("text") for part in items_of(parts)]
        if not isinstance(parts, list) or not all(isinstance(text, str) for text in texts):
            report("system", "the system prompt must be a text or a content with text parts")

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        # consecutive contents of the model are one turn: streaming chats store each chunk as a content
        del last
        place, calls, after_model = -1, list[Fields](), False
        for number, (index, body) in enumerate(bodies):
            by_model = body.get("role") == "model"
            if by_model and number == 0:
                reporter(problems, index)("first-user", "the first content must have role user")
            if by_model:
                place, calls = index, [*(calls if after_model else []), *_data_of(body, CALL)]
            else:
                _check_responses(problems, place, calls, index, _data_of(body, RESULT))
                calls = []
            after_model = by_model
        _check_responses(problems, place, calls, -1, [])


def _has_kind(part: Any) -> bool:
    """Return whether a part has data of a known kind, or is an SDK object with a field for each kind."""
    if isinstance(part, dict):
        return bool(kinds_of(fields_of(part)))
    return hasattr(part, "function_call") and hasattr(part, "inline_data")


def _usage(metadata: Any) -> Usage | None:
    """Read a usage; thoughts and the prompts of Google's own tools are counted separately."""
    fields = fields_of(metadata)
    prompt, cached, tools, text, thoughts = (count(held(fields, f"{name}TokenCount")) for name in _COUNTED)
    if not fields:
        return None
    return Usage(input=max(0, prompt - cached) + tools, cache_read=cached, output=text + thoughts)


# ---- rules of calls and responses


def _data_of(body: Fields, kind: str) -> list[Fields]:
    return [data for part in parts_in(body) if (data := fields_of(held(part, kind)))]


def _check_responses(
    problems: list[Problem], place: int, calls: list[Fields], index: int, responses: list[Fields]
) -> None:
    """Check that the responses at `index` answer exactly the calls of the turn at `place`."""
    report_call, report = reporter(problems, place), reporter(problems, index)
    call_ids = [call.get("id") for call in calls]
    for number, call_id in enumerate(call_ids):
        if call_id and call_id in call_ids[:number]:
            report_call("call-duplicate", f"two calls of one turn have the id {call_id!r}")
    unmatched, unanswered = _match(calls, responses)
    for response in unmatched:
        if response.get("id") and response["id"] in call_ids:
            report("result-duplicate", f"call {response['id']!r} already has a response")
        else:
            report("result-orphan", f"no call of {response.get('name')!r} right before this response")
    for call in unanswered:
        text = f"the next content has no response to the call of {call.get('name')!r}"
        report_call("result-missing", text)


def _match(calls: list[Fields], responses: list[Fields]) -> tuple[list[Fields], list[Fields]]:
    """Return the responses without a call, and the calls without a response.

    A response answers the call with its id; one without an id answers the first call of its function,
    preferably one without an id.
    """
    unmatched: list[Fields] = []
    open_calls = list(calls)
    for response in sorted(responses, key=lambda response: not response.get("id")):
        key = "id" if response.get("id") else "name"
        candidates = [call for call in open_calls if call.get(key) == response.get(key)]
        if candidates:
            open_calls.remove(min(candidates, key=lambda call: bool(call.get("id")) and key == "name"))
        else:
            unmatched.append(response)
    return unmatched, open_calls

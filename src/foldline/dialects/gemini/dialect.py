"""Contents of Google's Gemini API, as its SDKs and its Agent Development Kit have them too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.core.log.dialects import Traits
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Part, Role, Text, Usage
from foldline.dialects.dialect import Dialect, Put, Slot, replied
from foldline.dialects.gemini.form import CALL, KINDS, RESULT, ROLES, held, kinds_of, look, parts_in, spelt
from foldline.dialects.gemini.read import parts_of, role_of, slots_of
from foldline.dialects.gemini.write import GeminiWriter, edit_native, has, request
from foldline.dialects.payload import Fields, count, fields_of, items_of, peek, read
from foldline.dialects.values import GEMINI, Losses, Problem, Say, reporter
from foldline.errors import DialectError

_STOPS = {"STOP": "end", "MAX_TOKENS": "length"}
_OTHERS = ("content", "kind")  # fields of messages that have parts, too, and are none of Gemini's
_COUNTED = ("prompt", "cachedContent", "toolUsePrompt", "candidates", "thoughts")
_PLAIN = {"user": "user", "assistant": "model"}


class GeminiDialect(Dialect):
    """The dialect `gemini`.

    A call is known by its id, or by its function's name and its place. What the model says in a row is one
    reply: a chat that streams keeps each chunk as a content. Messages of others are merged into turns.
    """

    name = GEMINI
    looked = staticmethod(look)
    edit_native = staticmethod(edit_native)
    traits = Traits(unique_ids=False, own_results=False, splits_replies=True)
    element = "content"
    lists = "contents"
    content = "parts"
    bare = True
    templated = False

    # ---- in

    def decode_reply(self, reply: Any) -> Message:
        """Read a whole response: the content of its first candidate, usage, model, why it stopped.

        A bare content is read as by `decode`. Raises DialectError for a response without a candidate.
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
        """Read a system prompt (text, parts, or a content, which is its parts) as a system message."""
        body = read(system)[0] if not isinstance(system, str | list) else {}
        return super().decode_system(body.get("parts") if body else system)

    def recognises(self, payload: Any) -> bool:
        """Return whether a message can only be in this dialect: its parts have no type, but a kind."""
        role, parts = peek(payload, "role"), peek(payload, "parts")
        named = isinstance(role, str | None) and (role in ROLES or role in ("function", "tool"))
        if not named or not isinstance(parts, list) or any(peek(payload, key) is not None for key in _OTHERS):
            return False
        found: list[Any] = items_of(parts)
        if found and all(isinstance(part, str) for part in found):
            return True
        typed = any(peek(part, "type") is not None for part in found)
        return not typed and any(_is_of_kind(part) for part in found)

    def is_reply(self, payload: Any) -> bool:
        """Return whether this is a GenerateContentResponse."""
        return isinstance(peek(payload, "candidates"), list)

    def adopt(self, payload: Any, salt: str) -> Any:
        """Return a message of plain text as a content."""
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
            raise DialectError("the system prompt may hold only texts")
        return texts

    # ---- checked and mended

    def call_slots(self, body: Fields) -> tuple[list[Slot], list[Slot]]:
        """Return where a content holds the ids of its calls, and those of its responses."""
        return slots_of(body)

    def in_reply(self, body: Fields) -> tuple[list[Any], Put]:
        """Return the content of a response, and what puts another in its place."""
        candidate = fields_of(next(iter(items_of(body.get("candidates"))), None))
        content = fields_of(candidate.get("content"))
        if not content.get("parts"):
            return [], lambda _: body
        return [{**content, "role": "model"}], lambda new: {
            **body,
            "candidates": [{**candidate, "content": new[0]}],
        }

    def is_models(self, body: Fields) -> bool:
        """Return whether a content is the model's."""
        return body.get("role") == "model"

    # ---- out

    def more(self, messages: list[Any]) -> list[Any]:
        """Return the last content of a request and those that follow it, as the request takes them."""
        return request(messages, Losses())

    def text_part(self, role: str, text: str) -> Fields:
        """Return a text as a part of a content."""
        del role
        return {"text": text}

    def _moves(self, message: Message) -> bool:
        return message.role in ("system", "developer")

    def _edited_system(self, message: Message, system: Any, edits: Sequence[Edit], index: int) -> Any:
        if isinstance(system, str):
            return super()._edited_system(message, system, edits, index)
        body = edit_native({"parts": system}, {edit.part: edit.replacement for edit in edits}, index)
        return body["parts"] if body else ""

    def _writer(self, received: Sequence[tuple[Message, Any]]) -> GeminiWriter:
        return GeminiWriter(call.id for message, _ in received for call in message.calls)

    def lose(self, body: Any, losses: Losses) -> None:
        """Count the fields of a content, and of its parts, that no part carries: signatures and the like."""
        for key, value in fields_of(body).items():
            if key not in ("role", "parts") and value is not None:
                losses.field(key)
        for part in parts_in(fields_of(body)):
            data = {spelt(part, kind) for kind in KINDS}
            for key, value in part.items():
                if value not in (None, False) and key not in data and key != "thought":
                    losses.field(key)

    # ---- rules

    def _check_system(self, say: Say, system: Any) -> None:
        parts = fields_of(system).get("parts", 0) if isinstance(system, dict) else system
        if parts is None or isinstance(parts, str):
            return
        if not isinstance(parts, list) or not all(_is_text(part) for part in items_of(parts)):
            say("system", "the system prompt must be a text, or a content whose parts are texts")

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        # what the model says in a row is one turn: a chat that streams keeps each chunk as a content
        del last
        place, calls, spoken = -1, list[Fields](), False
        for number, (index, body) in enumerate(bodies):
            models = body.get("role") == "model"
            if models and number == 0:
                reporter(problems, index)("first-user", "the first content must be the user's")
            if models:
                place, calls = index, [*(calls if spoken else []), *_held(body, CALL)]
            else:
                _answers(problems, place, calls, index, _held(body, RESULT))
                calls = []
            spoken = models
        _answers(problems, place, calls, -1, [])


def _is_of_kind(part: Any) -> bool:
    """Return whether a part holds data of a kind that is known; an object of the SDK has a field for each."""
    if isinstance(part, dict):
        return bool(kinds_of(fields_of(part)))
    return hasattr(part, "function_call") and hasattr(part, "inline_data")


def _usage(metadata: Any) -> Usage | None:
    """Read a usage; thoughts, and what Google's own tools brought, are counted beside the rest."""
    told = fields_of(metadata)
    prompt, cached, brought, said, thought = (count(held(told, f"{name}TokenCount")) for name in _COUNTED)
    if not told:
        return None
    return Usage(input=max(0, prompt - cached) + brought, cache_read=cached, output=said + thought)


# ---- rules: what answers what, part for part


def _held(body: Fields, kind: str) -> list[Fields]:
    return [given for part in parts_in(body) if (given := fields_of(held(part, kind)))]


def _answers(
    problems: list[Problem], place: int, calls: list[Fields], index: int, responses: list[Fields]
) -> None:
    """Check that the responses at `index` answer all calls of the turn before, and nothing else."""
    waiting = _asked(reporter(problems, place), calls)
    say = reporter(problems, index)
    asked_ids = [call.get("id") for call in waiting]
    for given in _unmatched(waiting, responses):
        if given.get("id") and given["id"] in asked_ids:
            say("result-duplicate", f"call {given['id']!r} already has a response")
        else:
            say("result-orphan", f"no call of {given.get('name')!r} right before waits for this response")
    for call in waiting:
        text = f"the next content has no response to the call of {call.get('name')!r}"
        reporter(problems, place)("result-missing", text)


def _asked(say: Say, calls: list[Fields]) -> list[Fields]:
    """Return the calls that wait for a response; of several with one id the first."""
    seen: set[str] = set()
    for call in calls:
        own = str(call.get("id") or "")
        if own and own in seen:
            say("call-duplicate", f"two calls of one turn have the id {own!r}")
        seen.add(own)
    return list(calls)


def _unmatched(waiting: list[Fields], responses: list[Fields]) -> list[Fields]:
    """Take the calls that responses answer out of those that wait; return the responses that answer none.

    A response is for the call with its id; one without an id is for the first call of its function, and
    rather for one that has none either.
    """
    left: list[Fields] = []
    for given in sorted(responses, key=lambda one: not one.get("id")):
        own, name = given.get("id"), given.get("name")
        fits = [one for one in waiting if (one.get("id") == own if own else one.get("name") == name)]
        if fits:
            waiting.remove(min(fits, key=lambda one: bool(one.get("id")) and not own))
        else:
            left.append(given)
    return left


def _is_text(part: Any) -> bool:
    return isinstance(fields_of(part).get("text"), str)

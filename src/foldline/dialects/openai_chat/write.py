"""Parts -> Chat Completions messages: encoding, and edits of native messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from foldline.core.log.messages import Media, Message, Opaque, Part, Text, ToolCall, ToolResult
from foldline.dialects.edits import check_edits
from foldline.dialects.forms import text_part
from foldline.dialects.ids import Ids
from foldline.dialects.media import placeholder, plain_text, to_openai, words_of
from foldline.dialects.openai_chat.form import INSTEAD, TEXTS
from foldline.dialects.openai_chat.read import REASONING, slots
from foldline.dialects.payload import Fields, items_of, json_text
from foldline.dialects.values import OPENAI_CHAT
from foldline.dialects.writer import Writer

ID_LIMIT = 40  # of tool_calls[].id, from the API's own error text
NAME_LIMIT = 64  # of function.name, API reference
_OPAQUE_KEYS = ("audio", "reasoning_details")


def edit_native(body: Fields, edits: Mapping[int, Part | None], index: int | None = None) -> Fields | None:
    """Return a native message with some parts replaced (None: removed); None if no part is left.

    All other keys and parts stay as received.
    """
    places = slots(body, index)
    check_edits(edits, [part for part, _ in places], index)
    if all(number in edits and edits[number] is None for number in range(len(places))):
        return None
    new = dict(body)
    lists: dict[str, list[Any]] = {}
    for number, replacement in edits.items():
        old, (key, place) = places[number]
        if place is None:
            _edit_field(new, key, old, replacement)
            continue
        values = lists.setdefault(key, list(body[key]))
        values[place] = _patched(values[place], old, replacement)
    for key, values in lists.items():
        new[key] = [value for value in values if value is not None]
    return _tidy(new, touched=lists)


def _edit_field(new: Fields, key: str, old: Part, replacement: Part | None) -> None:
    if isinstance(old, ToolResult):
        new["content"] = _result_content(new.get("content"), old, cast("ToolResult", replacement))
    elif key == "function_call":
        call = new.pop(key)
        if isinstance(replacement, ToolCall):  # otherwise it is removed
            new[key] = {**call, "name": replacement.name, "arguments": json_text(replacement.arguments)}
    elif replacement is None:
        text = new.get(key)
        for name in REASONING if key in REASONING else ():
            if new.get(name) == text:
                del new[name]
        if key == "content":
            new[key] = None
        else:
            new.pop(key, None)
    elif isinstance(replacement, Opaque):
        new[key] = replacement.data
    else:
        new[key] = words_of(replacement)


def _tidy(new: Fields, touched: Mapping[str, list[Any]]) -> Fields:
    """Replace empty lists and missing content by the form that the API requires."""
    if "tool_calls" in touched and not new["tool_calls"]:
        del new["tool_calls"]
    if "content" in touched and not new["content"]:
        new["content"] = None
    if new.get("content") is None and not any(new.get(key) for key in INSTEAD):
        new["content"] = ""
    return new


def _patched(native: Any, old: Part, new: Part | None) -> Any:
    """Return an element of a content or call list with its part replaced; None if it is removed."""
    if new is None or (isinstance(new, Text) and not new.text):
        return None
    if new == old:
        return native
    fields = cast("Fields", native)
    if isinstance(new, ToolCall):
        if fields.get("type") == "custom":
            custom = {**fields["custom"], "name": new.name, "input": json_text(new.arguments)}
            return {**fields, "custom": custom}
        function = {**fields["function"], "name": new.name, "arguments": json_text(new.arguments)}
        return {**fields, "function": function}
    if isinstance(new, Text):
        kind = str(fields.get("type"))
        return {**fields, kind: new.text} if kind in TEXTS else text_part(new.text)
    media = to_openai(new) if isinstance(new, Media) else None
    if isinstance(new, Opaque):
        return new.data
    return media or text_part(words_of(new))


def _result_content(native: Any, old: ToolResult, new: ToolResult) -> Any:
    natives = items_of(native)
    if not natives:
        return _content_of([words_of(part) for part in new.content])
    values: list[Any] = []
    for place, part in enumerate(new.content):
        before = old.content[place] if place < len(old.content) else None
        media = to_openai(part) if isinstance(part, Media) and isinstance(before, Media) else None
        if before == part:
            values.append(natives[place])
        elif media:  # a server that accepted media in this result accepts smaller media
            values.append(media)
        elif words := words_of(part):
            values.append(text_part(words))
    return values or ""


def _content_of(texts: list[str]) -> str | list[Fields]:
    """Return texts as content: a string for one, text parts for several, to keep them separate."""
    texts = [text for text in texts if text]
    if len(texts) < 2:
        return texts[0] if texts else ""
    return [text_part(text) for text in texts]


class ChatWriter(Writer):
    """Build a Chat Completions list: native messages as received, others encoded."""

    def __init__(self) -> None:
        super().__init__(Ids(limit=ID_LIMIT, everywhere=False, any_text=True))
        self._merge = False  # the last message is an encoded assistant message

    def native(self, body: Fields, message: Message) -> None:
        """Append a message as received, unless it is an empty assistant message."""
        if message.role == "assistant":
            self._ids.batch()
        for call in message.calls:
            self._ids.keep(call.id)
        if message.role == "assistant" and not message.parts and body.get("content") is None:
            self.losses.add("empty assistant messages left out")
            return
        self._out.append(_tidy(dict(body), touched={}) if message.role == "assistant" else body)
        self._merge = False

    def _add(self, message: Message) -> None:
        """Encode a message as one or more messages."""
        if message.role == "assistant":
            self._assistant(message.parts)
            return
        for result in message.results:
            self._result(result)
        rest = [part for part in message.parts if not isinstance(part, ToolResult)]
        if message.role in {"system", "developer"}:
            self._append({"role": message.role, "content": _content_of(self._texts(rest))})
        elif rest:
            self._append({"role": "user", "content": self._user_content(rest)})

    def _append(self, body: Fields) -> None:
        if body["content"]:
            self._out.append(body)
            self._merge = False

    def _result(self, result: ToolResult) -> None:
        if result.is_error:
            self.losses.add("error flags of tool results left out")
        content = _content_of(self._texts(result.content))
        call_id = self._ids.result(result.call_id)
        self._out.append({"role": "tool", "tool_call_id": call_id, "content": content})
        self._merge = False

    def _assistant(self, parts: Iterable[Part]) -> None:
        parts = tuple(parts)
        last = cast("Fields", self._out[-1]) if self._merge else {}
        # calls of consecutive assistant messages are one batch: their results must follow all of them
        merges = bool(last.get("tool_calls"))
        if not merges:
            self._ids.batch()
        calls = [self._call(part) for part in parts if isinstance(part, ToolCall)]
        content = _content_of(self._texts([part for part in parts if not isinstance(part, ToolCall)]))
        extra = {part.kind: part.data for part in parts if isinstance(part, Opaque) and _has_own_key(part)}
        if merges:
            _merge(last, content, calls, extra)
        elif content or calls or extra:
            body: Fields = {"role": "assistant", "content": content or None, **extra}
            if calls:
                body["tool_calls"] = calls
            elif body["content"] is None and "audio" not in extra:
                body["content"] = ""
            self._out.append(body)
            self._merge = True

    def _call(self, call: ToolCall) -> Fields:
        function = {"name": self._tool_name(call, NAME_LIMIT), "arguments": json_text(self._input(call))}
        return {"id": self._ids.call(call.id), "type": "function", "function": function}

    def _texts(self, parts: Iterable[Part]) -> list[str]:
        """Return the texts of parts; other content is counted as left out."""
        texts: list[str] = []
        for part in parts:
            if isinstance(part, Text):
                texts.append(part.text)
            elif isinstance(part, Media):
                text = plain_text(part)
                if text is None:
                    self.losses.add(f"{part.kind} left out")
                texts.append(text or placeholder(part))
            else:
                self._count_loss(part, _has_own_key)
        return texts

    def _user_content(self, parts: Sequence[Part]) -> Any:
        content: list[Fields] = []
        for part in parts:
            media = to_openai(part) if isinstance(part, Media) else None
            if media is not None:
                content.append(media)
            elif isinstance(part, Opaque) and part.dialect == OPENAI_CHAT and isinstance(part.data, dict):
                content.append(cast("Fields", part.data))
            else:
                content.extend(text_part(text) for text in self._texts([part]) if text)
        if len(content) == 1 and content[0].get("type") == "text":
            return content[0]["text"]
        return content


def _merge(last: Fields, content: Any, calls: list[Fields], extra: Fields) -> None:
    """Add an assistant message to the encoded one before it."""
    texts: list[str] = []
    for value in (last["content"], content):
        texts += [value] if isinstance(value, str) else [part["text"] for part in value or ()]
    last["content"] = _content_of(texts) or None
    last["tool_calls"] = [*last["tool_calls"], *calls]
    last.update(extra)


def _has_own_key(part: Opaque) -> bool:
    return part.dialect == OPENAI_CHAT and part.kind in _OPAQUE_KEYS

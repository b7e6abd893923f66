"""Parts -> Gemini's contents: encoding, edits of native contents, and requests.

A thought's signature stays in its part. Gemini 3 and later reject a turn whose first call has no signature;
for calls of other models Google documents a placeholder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from foldline.core.log.messages import Media, Message, Opaque, Part, Text, ToolCall, ToolResult
from foldline.dialects.edits import check_edits
from foldline.dialects.forms import UNNAMED
from foldline.dialects.gemini.form import CALL, RESULT, SIGNATURE, held, parts_in, safe_function, spelt
from foldline.dialects.gemini.read import media_in, parts_of, wrapper_of
from foldline.dialects.ids import Ids
from foldline.dialects.media import is_linked, mime_at, placeholder, plain_text, words_of
from foldline.dialects.payload import Fields, fields_of
from foldline.dialects.values import GEMINI, Losses
from foldline.dialects.writer import TurnsWriter, input_of

ID_LIMIT = 64
NAME_LIMIT = 64  # limit of the first models
UNSIGNED = "skip_thought_signature_validator"  # for calls of other models (docs of thought signatures, FAQ)


def edit_native(body: Fields, edits: Mapping[int, Part | None], index: int | None = None) -> Fields | None:
    """Return a native content with some parts replaced (None: removed); None if no part is left.

    All other keys and parts stay as received. If the call with the signature of the turn is removed, the next
    one gets the placeholder.
    """
    natives, parts = cast("list[Fields]", body.get("parts") or []), parts_of(body, index)
    check_edits(edits, parts, index)
    kept = [
        part
        for number, native in enumerate(natives)
        if (part := _patched(native, parts[number], edits[number]) if number in edits else native) is not None
    ]
    before, after = _first_call(natives), _first_call(kept)
    if before and after and held(before, SIGNATURE) and not held(after, SIGNATURE):
        kept[kept.index(after)] = {**after, SIGNATURE: UNSIGNED}
    return {**body, "parts": kept} if kept else None


def _first_call(parts: Iterable[Fields]) -> Fields | None:
    return next((part for part in parts if held(part, CALL) is not None), None)


def _patched(native: Fields, old: Part, new: Part | None) -> Fields | None:
    if new is None or (isinstance(new, Text) and not new.text):
        return None
    if new == old:
        return native
    if isinstance(new, ToolCall):
        data = held(native, CALL)
        call_id = {"id": new.id} if data.get("id") else {}
        return {**native, spelt(native, CALL): {**data, **call_id, "name": new.name, "args": input_of(new)}}
    if isinstance(new, ToolResult) and isinstance(old, ToolResult):
        return {**native, spelt(native, RESULT): _patched_response(held(native, RESULT), old, new)}
    if isinstance(new, Text) and isinstance(old, Text):
        return {**native, "text": new.text}
    return block_of(new) or {"text": words_of(new)}


def _patched_response(data: Fields, old: ToolResult, new: ToolResult) -> Fields:
    """Return a response with other content, wrapped in the same key, and without removed media."""
    changed = {**data, **({"id": new.call_id} if data.get("id") else {})}
    if new.content != old.content or new.is_error != old.is_error:
        changed |= _response(new, wrapper_of(data.get("response")))
    remaining = [part for part in map(fields_of, data.get("parts") or ()) if media_in(part) in new.content]
    if len(remaining) != len(data.get("parts") or ()):
        changed["parts"] = remaining or None
    return changed


def _response(result: ToolResult, key: str | None = None) -> Fields:
    """Return the response field of a result."""
    key = "error" if result.is_error else "output" if key in (None, "error") else key
    return {"response": {key: result.text}}


def block_of(part: Part) -> Fields | None:
    """Return the native part of a text, media or own opaque part; None if Gemini has no such part."""
    if isinstance(part, Text):
        return {"text": part.text} if part.text else None
    if isinstance(part, Media):
        return to_gemini(part)
    if isinstance(part, Opaque) and part.dialect == GEMINI and isinstance(part.data, dict):
        return cast("Fields", part.data)
    return None


def to_gemini(media: Media) -> Fields | None:
    """Return the native part of media; None for data of unknown type and files of another provider."""
    name = {"displayName": media.name} if media.name else {}
    if media.data and media.mime:
        return {"inlineData": {"mimeType": media.mime, "data": media.data, **name}}
    if media.url and is_linked(media):
        mime = media.mime or mime_at(media.url)
        return {"fileData": {**({"mimeType": mime} if mime else {}), "fileUri": media.url}}
    return None


class GeminiWriter(TurnsWriter):
    """Build a list of contents: native ones as received, others encoded and merged into turns."""

    content = "parts"
    model = "model"

    def __init__(self, native_ids: Iterable[str]) -> None:
        super().__init__(Ids(limit=ID_LIMIT, everywhere=False, any_text=True, taken=native_ids))
        self._called: dict[str, tuple[str, str | None]] = {}  # id -> name of the function, id in the request

    def _keep_ids(self, body: Fields, message: Message) -> None:
        super()._keep_ids(body, message)
        sent = {fields_of(held(part, CALL)).get("id") for part in parts_in(body)}
        for call in message.calls:
            self._called[call.id] = call.name, call.id if call.id in sent else None

    def _text(self, text: str) -> Fields:
        return {"text": text}

    def _as_request(self, messages: list[Fields]) -> list[Fields]:
        return request(messages, self.losses)

    def _messages_of(self, role: str, results: list[Fields], blocks: list[Fields]) -> list[Fields]:
        if role == "assistant":
            if (call := _first_call(blocks)) is not None:
                call.setdefault(SIGNATURE, UNSIGNED)
            return [{"role": "model", "parts": blocks}] if blocks else []
        return [{"role": "user", "parts": parts} for parts in (results, blocks) if parts]

    def _block(self, part: Part, role: str) -> Fields | None:
        del role
        if isinstance(part, ToolCall):
            name, call_id = self._tool_name(part, NAME_LIMIT, safe_function), self._ids.call(part.id)
            self._called[call_id] = name, call_id
            return {CALL: {"id": call_id, "name": name, "args": self._input(part)}}
        if isinstance(part, ToolResult):
            return {RESULT: self._result(part)}
        block = block_of(part)
        if block is None and not isinstance(part, Text):
            self._leave_out(part)
            return {"text": placeholder(part)} if isinstance(part, Media) else None
        return block

    def _result(self, result: ToolResult) -> Fields:
        call_id = self._ids.result(result.call_id)
        name, sent_id = self._called.get(call_id, (UNNAMED, call_id))
        texts: list[str] = []
        media: list[Fields] = []
        for part in result.content:
            block = block_of(part) if isinstance(part, Media) else None
            if block is not None and "inlineData" in block and plain_text(cast("Media", part)) is None:
                media.append(block)
            elif isinstance(part, Text):
                texts.append(part.text)
            else:
                self._leave_out(part)
                texts.append(words_of(part))
        joined = ToolResult(call_id, (Text("\n".join(text for text in texts if text)),), result.is_error)
        data: Fields = {"id": sent_id} if sent_id is not None else {}
        data |= {"name": name, **_response(joined)}
        return {**data, "parts": media} if media else data


# ---- requests


def request(messages: Sequence[Fields], losses: Losses) -> list[Fields]:
    """Return contents in the form that a request requires: consecutive contents of the model are merged.

    Contents with responses are merged too: the API requires all calls of a turn in one content, and their
    responses in the next. Empty texts without a signature and contents without parts are left out.
    """
    merged: list[Fields] = []
    for message in messages:
        parts = parts_in(message)
        filled = [part for part in parts if part.get("text") != "" or held(part, SIGNATURE) is not None]
        body = message if len(filled) == len(parts) else {**message, "parts": filled}
        losses.add("empty texts left out", len(parts) - len(filled))
        if not filled:
            losses.add("empty messages left out")
        elif merged and _must_merge(merged[-1], body):
            merged[-1] = {**merged[-1], "parts": [*parts_in(merged[-1]), *filled]}
        else:
            merged.append(body)
    return merged


def one_turn(contents: Sequence[Fields]) -> Fields:
    """Merge consecutive contents of the model; texts split by a stream are joined."""
    parts: list[Fields] = []
    for part in (part for content in contents for part in parts_in(content)):
        before = parts[-1] if parts else {}
        texts = isinstance(before.get("text"), str) and isinstance(part.get("text"), str)
        same_kind = (before.get("thought") is True) == (part.get("thought") is True)
        if texts and same_kind and not held(before, SIGNATURE):
            parts[-1] = {**before, **part, "text": before["text"] + part["text"]}
        else:
            parts.append(part)
    return {**contents[0], "parts": parts}


def _must_merge(before: Fields, body: Fields) -> bool:
    """Return whether two consecutive contents must be merged."""
    by_model = before.get("role") == "model", body.get("role") == "model"
    return all(by_model) or (not any(by_model) and has(before, RESULT) and has(body, RESULT))


def has(body: Fields, kind: str) -> bool:
    """Return whether a content has a part of this kind."""
    return any(held(part, kind) is not None for part in parts_in(body))

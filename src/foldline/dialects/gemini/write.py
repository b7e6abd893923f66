"""Parts -> Gemini's contents: encoding, edits of contents kept as received, and the list as a whole.

A thought's signature goes back with the part that it came with. Gemini 3 and later refuse a turn whose first
call has none; for a call that another model made, Google documents a value that says so.
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
NAME_LIMIT = 64  # what the first models took
UNSIGNED = "skip_thought_signature_validator"  # thought-signatures, FAQ: for calls that the API did not make


def edit_native(body: Fields, edits: Mapping[int, Part | None], index: int | None = None) -> Fields | None:
    """Return a native content with some of its parts replaced (None: removed); None if no part is left.

    All other keys and parts stay as received. Where the call goes that the signature of its turn came with,
    the next one says that it has none.
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
        given = held(native, CALL)
        own = {"id": new.id} if given.get("id") else {}
        return {**native, spelt(native, CALL): {**given, **own, "name": new.name, "args": input_of(new)}}
    if isinstance(new, ToolResult) and isinstance(old, ToolResult):
        return {**native, spelt(native, RESULT): _patched_response(held(native, RESULT), old, new)}
    if isinstance(new, Text) and isinstance(old, Text):
        return {**native, "text": new.text}
    return block_of(new) or {"text": words_of(new)}


def _patched_response(given: Fields, old: ToolResult, new: ToolResult) -> Fields:
    """Return a response with another content: the value under the key that it had, media that stay."""
    changed = {**given, **({"id": new.call_id} if given.get("id") else {})}
    if new.content != old.content or new.is_error != old.is_error:
        changed |= _response(new, wrapper_of(given.get("response")))
    stays = [part for part in map(fields_of, given.get("parts") or ()) if media_in(part) in new.content]
    if len(stays) != len(given.get("parts") or ()):
        changed["parts"] = stays or None
    return changed


def _response(result: ToolResult, key: str | None = None) -> Fields:
    """Return what a function returned, as its response."""
    key = "error" if result.is_error else "output" if key in (None, "error") else key
    return {"response": {key: result.text}}


def block_of(part: Part) -> Fields | None:
    """Return a text, media or a part of this dialect as a part; None for what Gemini has no part for."""
    if isinstance(part, Text):
        return {"text": part.text} if part.text else None
    if isinstance(part, Media):
        return to_gemini(part)
    if isinstance(part, Opaque) and part.dialect == GEMINI and isinstance(part.data, dict):
        return cast("Fields", part.data)
    return None


def to_gemini(media: Media) -> Fields | None:
    """Return media as a part; None where their type is not known, or their provider alone has them."""
    name = {"displayName": media.name} if media.name else {}
    if media.data and media.mime:
        return {"inlineData": {"mimeType": media.mime, "data": media.data, **name}}
    if media.url and is_linked(media):
        mime = media.mime or mime_at(media.url)
        return {"fileData": {**({"mimeType": mime} if mime else {}), "fileUri": media.url}}
    return None


class GeminiWriter(TurnsWriter):
    """Build a list of contents: native ones as they are, others encoded and merged into turns."""

    content = "parts"
    model = "model"

    def __init__(self, native_ids: Iterable[str]) -> None:
        super().__init__(Ids(limit=ID_LIMIT, everywhere=False, any_text=True, taken=native_ids))
        self._called: dict[str, tuple[str, str | None]] = {}  # id -> its function's name, and the id as sent

    def _keep(self, body: Fields, message: Message) -> None:
        super()._keep(body, message)
        sent = {fields_of(held(part, CALL)).get("id") for part in parts_in(body)}
        for call in message.calls:
            self._called[call.id] = call.name, call.id if call.id in sent else None

    def _text(self, text: str) -> Fields:
        return {"text": text}

    def _request(self, messages: list[Fields]) -> list[Fields]:
        return request(messages, self.losses)

    def _said(self, role: str, results: list[Fields], blocks: list[Fields]) -> list[Fields]:
        if role == "assistant":
            if (call := _first_call(blocks)) is not None:
                call.setdefault(SIGNATURE, UNSIGNED)
            return [{"role": "model", "parts": blocks}] if blocks else []
        return [{"role": "user", "parts": parts} for parts in (results, blocks) if parts]

    def _block(self, part: Part, role: str) -> Fields | None:
        del role
        if isinstance(part, ToolCall):
            name, own = self._named(part, NAME_LIMIT, safe_function), self._ids.call(part.id)
            self._called[own] = name, own
            return {CALL: {"id": own, "name": name, "args": self._input(part)}}
        if isinstance(part, ToolResult):
            return {RESULT: self._result(part)}
        block = block_of(part)
        if block is None and not isinstance(part, Text):
            self._leave(part)
            return {"text": placeholder(part)} if isinstance(part, Media) else None
        return block

    def _result(self, result: ToolResult) -> Fields:
        call_id = self._ids.result(result.call_id)
        name, own = self._called.get(call_id, (UNNAMED, call_id))
        texts: list[str] = []
        media: list[Fields] = []
        for part in result.content:
            block = block_of(part) if isinstance(part, Media) else None
            if block is not None and "inlineData" in block and plain_text(cast("Media", part)) is None:
                media.append(block)
            elif isinstance(part, Text):
                texts.append(part.text)
            else:
                self._leave(part)
                texts.append(words_of(part))
        told = ToolResult(call_id, (Text("\n".join(text for text in texts if text)),), result.is_error)
        given: Fields = {"id": own} if own is not None else {}
        given |= {"name": name, **_response(told)}
        return {**given, "parts": media} if media else given


# ---- what a request refuses


def request(messages: Sequence[Fields], losses: Losses) -> list[Fields]:
    """Return contents as a request takes them: what the model says in a row is one, as are responses.

    The API wants all calls of a turn in one content, behind one of the user's, and their responses in the
    next. Empty texts without a signature are left out, and contents without parts.
    """
    found: list[Fields] = []
    for message in messages:
        parts = parts_in(message)
        said = [part for part in parts if part.get("text") != "" or held(part, SIGNATURE) is not None]
        body = message if len(said) == len(parts) else {**message, "parts": said}
        if len(said) < len(parts):
            losses.add("empty texts left out", len(parts) - len(said))
        if not said:
            losses.add("empty messages left out")
        elif found and _is_one(found[-1], body):
            found[-1] = {**found[-1], "parts": [*parts_in(found[-1]), *said]}
        else:
            found.append(body)
    return found


def one_turn(contents: Sequence[Fields]) -> Fields:
    """Return what the model says in a row as one content; texts that a stream has cut are joined again."""
    parts: list[Fields] = []
    for part in (part for content in contents for part in parts_in(content)):
        before = parts[-1] if parts else {}
        if _is_text(before) and _is_text(part) and not held(before, SIGNATURE) and _thinks(before, part):
            parts[-1] = {**before, **part, "text": before["text"] + part["text"]}
        else:
            parts.append(part)
    return {**contents[0], "parts": parts}


def _is_text(part: Fields) -> bool:
    return isinstance(part.get("text"), str)


def _thinks(before: Fields, part: Fields) -> bool:
    return (before.get("thought") is True) == (part.get("thought") is True)


def _is_one(before: Fields, body: Fields) -> bool:
    """Return whether two contents in a row must be one."""
    models = before.get("role") == "model", body.get("role") == "model"
    return all(models) or (not any(models) and has(before, RESULT) and has(body, RESULT))


def has(body: Fields, kind: str) -> bool:
    """Return whether a content has a part of a kind."""
    return any(held(part, kind) is not None for part in parts_in(body))

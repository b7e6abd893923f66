"""Messages -> UI messages: encoding, edits of native messages, results in the parts of their calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from foldline.core.cut.notes import UNANSWERED
from foldline.core.log import codec
from foldline.core.log.messages import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.steps import STEP, is_step, own_results, steps
from foldline.dialects.edits import check_edits
from foldline.dialects.forms import text_part
from foldline.dialects.ids import Ids
from foldline.dialects.media import joined_words, placeholder, plain_text, words_of
from foldline.dialects.ui_message.form import message_id
from foldline.dialects.ui_message.read import REDACTED, V4_KEYS, slots
from foldline.dialects.ui_message.tools import Native, tool_part, with_call, with_result, without_result
from foldline.dialects.values import ANTHROPIC, FILE_ID, UI_MESSAGE, Rendered
from foldline.dialects.writer import Writer

_ANY_LENGTH = 1 << 30  # call ids may have any length

Place = tuple[int, str, int]  # index of a message, key in it, index in its list
_MIMES = {"image": "image/*", "audio": "audio/*", "video": "video/*"}
_COPIES = ("toolInvocations", "reasoning")  # AI SDK 4 stored these in addition to `parts`

Change = tuple[Part, Part | None]  # a part and its replacement


def native_of(part: Part) -> Native | None:
    """Return the native part of anything but a call or result; None if it is not supported."""
    if isinstance(part, Text):
        return text_part(part.text) if part.text.strip() else None
    if isinstance(part, Thinking):
        metadata = {"providerMetadata": {ANTHROPIC: {"signature": part.signature}}} if part.signature else {}
        return {"type": "reasoning", "text": part.text, **metadata}
    if isinstance(part, Media):
        return file_of(part) or text_part(placeholder(part))
    if isinstance(part, Opaque) and isinstance(part.data, dict):
        fields = cast("Native", part.data)
        if part.dialect == UI_MESSAGE:
            return fields
        if (part.dialect, part.kind) == (ANTHROPIC, REDACTED):
            metadata = {ANTHROPIC: {"redactedData": fields.get("data")}}
            return {"type": "reasoning", "text": "", "providerMetadata": metadata}
    return None


def file_of(media: Media) -> Native | None:
    """Return the file part of media; None for a file uploaded to a provider."""
    mime = media.mime or _MIMES.get(media.kind, "application/octet-stream")
    if media.data is not None:
        url = f"data:{mime};base64,{media.data}"
    elif media.url and not media.url.startswith(FILE_ID):
        url = media.url
    else:
        return None
    name = {"filename": media.name} if media.name else {}
    return {"type": "file", "mediaType": mime, **name, "url": url}


def edit_native(body: Native, edits: Mapping[int, Part | None], index: int | None = None) -> Native | None:
    """Return a native message with some parts replaced (None: removed); None if only step marks are left.

    All other keys and parts stay as received. Removing a call also removes its result.
    """
    placed = slots(body, index)
    check_edits(edits, [part for part, _ in placed], index)
    places: dict[tuple[str, int | None], list[Change]] = {}
    for number, (part, where) in enumerate(placed):
        places.setdefault(where, []).append((part, edits.get(number, part)))
    new = dict(body)
    for key in dict.fromkeys(key for key, _ in places):
        changes = {place: change for (name, place), change in places.items() if name == key}
        if None in changes:
            _, replacement = changes[None][0]
            new[key] = replacement.text if isinstance(replacement, Text | Thinking) else ""
        else:
            patched = [_patched(native, changes[place]) for place, native in enumerate(body[key])]
            new[key] = [native for native in patched if native is not None]
    if isinstance(body.get("parts"), list):
        _drop_copies(new)
    return new if _has_content(new) else None


def _has_content(body: Native) -> bool:
    if isinstance(natives := body.get("parts"), list):
        return any(cast("Native", native).get("type") != STEP for native in cast("list[Any]", natives))
    return any(body.get(key) for key in ("content", "reasoning", *V4_KEYS))


def _drop_copies(new: Native) -> None:
    """Drop AI SDK 4's copies of the text and the calls, which would still have the unedited parts."""
    for key in _COPIES:
        new.pop(key, None)
    if isinstance(new.get("content"), str):
        texts = [native.get("text") for native in new["parts"] if native.get("type") == "text"]
        new["content"] = "".join(text for text in texts if isinstance(text, str))


def _patched(native: Native, changes: Sequence[Change]) -> Native | None:
    if all(new is old or new == old for old, new in changes):
        return native
    old, new = changes[0]
    if new is None:
        return None
    if isinstance(new, ToolCall) and isinstance(old, ToolCall):
        return _patched_tool(native, old, new, changes[1:])
    if isinstance(new, Text) and isinstance(old, Text):
        return {**native, "text": new.text} if new.text.strip() else None
    if isinstance(new, Thinking) and isinstance(old, Thinking):
        return {**native, "reasoning" if "reasoning" in native else "text": new.text}
    return native_of(new)


def _patched_tool(native: Native, old: ToolCall, new: ToolCall, results: Sequence[Change]) -> Native:
    body = native if new == old else with_call(native, new)
    for before, after in results:
        if after is None:
            body = without_result(body)
        elif after != before and isinstance(after, ToolResult) and isinstance(before, ToolResult):
            body = _patched_result(body, before, after)
    return body


def _patched_result(native: Native, old: ToolResult, new: ToolResult) -> Native:
    """Replace a result; unchanged content blocks stay as received, other outputs become text."""
    failed = new.is_error and native.get("state") != "output-available"
    output = native.get("output")
    key = next((key for key in ("content", "value") if isinstance(output, dict) and key in output), None)
    if key is None or failed or all(isinstance(part, Text) for part in new.content):
        return with_result(native, joined_words(new.content), is_error=failed)
    fields = cast("Native", output)
    natives = cast("list[Any]", fields[key])
    blocks = [
        natives[place]
        if place < len(old.content) and old.content[place] == part
        else text_part(words_of(part))
        for place, part in enumerate(new.content)
    ]
    return with_result(native, {**fields, key: blocks}, is_error=False)


def answer(native: Native, result: ToolResult) -> Native:
    """Return a tool part with the result of its call."""
    return with_result(native, joined_words(result.content), is_error=result.is_error)


class UIWriter(Writer):
    """Build a list of UI messages; `taken`: ids of messages written as received."""

    def __init__(self, taken: Iterable[str]) -> None:
        super().__init__(Ids(limit=_ANY_LENGTH, everywhere=False, any_text=True))
        self._taken = set(taken)
        self._open: dict[str, list[Place]] = {}  # original id of an open call -> its places
        self._noted: list[tuple[Place, Native]] = []  # parts answered only by a note, in their original form
        self._id_seed = b""  # seed of the id of an encoded message

    def native(self, body: Native, message: Message) -> None:
        """Append a message as received, unless it has no parts."""
        del message
        if body.get("parts") == []:
            self.losses.add("empty messages left out")
            return
        self._out.append(body)
        if body.get("role") != "assistant":
            return
        waiting: dict[str, list[Place]] = {}
        for part, (key, place) in slots(body):
            if isinstance(part, ToolCall) and place is not None:
                waiting.setdefault(part.id, []).append((len(self._out) - 1, key, place))
            elif isinstance(part, ToolResult) and waiting.get(part.call_id):
                waiting[part.call_id].pop()
        self._open.update(waiting)

    def add(self, message: Message, original: Message) -> None:
        """Encode and append a whole message: steps are parts here."""
        native = original.native
        self._id_seed = native.raw if native is not None else codec.encode([original.role, original.parts])
        self._add(message)

    def _add(self, message: Message) -> None:
        own = own_results(message)
        for index, part in enumerate(message.parts):
            if isinstance(part, ToolResult) and index not in own:
                self._write_result(part)
        role = {"developer": "system", "tool": "user"}.get(message.role, message.role)
        if message.role == "developer":
            self.losses.add("developer messages became system messages")
        self._ids.batch()
        parts: list[Native] = []
        calls: dict[str, list[Place]] = {}
        for number, (start, stop) in enumerate(steps(message)):
            if number and not is_step(message.parts[start]):
                parts.append({"type": STEP})
            for index in range(start, stop):
                self._part(message.parts[index], role, parts, calls, own=index in own)
        if all(part["type"] == STEP for part in parts):
            return
        self._open.update(calls)
        self._out.append({"id": self._new_id(), "role": role, "parts": parts})

    def finish(self, *, whole: bool = False) -> Rendered:
        """Return the list, the system prompt and what was left out.

        A call in the last step that only our note answers stays open: the application may still answer it.
        """
        for (index, key, place), original in self._noted:
            later: list[Native] = self._out[index][key][place + 1 :]
            if index == len(self._out) - 1 and all(part.get("type") != STEP for part in later):
                self._out[index][key][place] = original
        return super().finish(whole=whole)

    def _part(
        self, part: Part, role: str, parts: list[Native], calls: dict[str, list[Place]], *, own: bool
    ) -> None:
        if isinstance(part, ToolCall):
            if role != "assistant":
                self.losses.add(f"calls of a {role} message left out")
                return
            call = ToolCall(self._ids.call(part.id), part.name, part.arguments)
            calls.setdefault(part.id, []).append((len(self._out), "parts", len(parts)))
            parts.append(tool_part(call))
        elif isinstance(part, ToolResult):
            if own:
                _, _, place = calls[part.call_id].pop()
                parts[place] = answer(parts[place], part)
                self._count_content(part)
        else:
            native = self._other(part, role)
            if native is not None:
                parts.append(native)

    def _other(self, part: Part, role: str) -> Native | None:
        """Return the native part of a text, media, thinking or opaque part; None if it is left out."""
        is_thinking = isinstance(part, Thinking) or (isinstance(part, Opaque) and part.kind == REDACTED)
        if is_thinking and role != "assistant":
            self.losses.add(f"thinking of a {role} message left out")
            return None
        if isinstance(part, Media) and (role == "system" or file_of(part) is None):
            self.losses.add(f"{part.kind} left out")
            return native_of(part) if role != "system" else None
        native = native_of(part)
        if native is None and isinstance(part, Opaque):
            self.losses.add(f"{part.dialect} {part.kind} left out")
        return native

    def _write_result(self, result: ToolResult) -> None:
        """Write a result into the part of its call."""
        waiting = self._open.get(result.call_id)
        if not waiting:
            self.losses.add("results without their call left out")
            return
        place = waiting.pop(0)
        index, key, number = place
        original = cast("Native", self._out[index][key][number])
        self._out[index][key][number] = answer(original, result)
        if result.content == (Text(UNANSWERED),):
            self._noted.append((place, original))
        self._count_content(result)

    def _count_content(self, result: ToolResult) -> None:
        for part in result.content:
            if isinstance(part, Media) and plain_text(part) is None:
                self.losses.add(f"{part.kind} in a result left out")
            elif isinstance(part, Opaque):
                self.losses.add(f"{part.dialect} {part.kind} left out")

    def _new_id(self) -> str:
        """Return a unique id for a message without one; edits do not change it."""
        base = message_id(self._id_seed)
        new, number = base, 2
        while new in self._taken:
            new, number = f"{base}_{number}", number + 1
        self._taken.add(new)
        return new

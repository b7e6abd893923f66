"""Messages -> a list of UI messages: native ones as received, others encoded, results in their calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from foldline.core.cut.notes import UNANSWERED
from foldline.core.log import codec
from foldline.core.log.messages import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.steps import STEP, is_step, own_results, steps
from foldline.dialects.edits import check_edits
from foldline.dialects.ids import Ids
from foldline.dialects.media import placeholder, plain_text, words_of
from foldline.dialects.ui_message.form import message_id
from foldline.dialects.ui_message.read import REDACTED, V4_KEYS, slots
from foldline.dialects.ui_message.tools import Native, tool_part, with_call, with_result, without_result
from foldline.dialects.values import ANTHROPIC, FILE_ID, UI_MESSAGE, Rendered
from foldline.dialects.writer import Writer

_ANY_LENGTH = 1 << 30  # call ids are text of any length here

Place = tuple[int, str, int]  # index of a message, a key in it, the index in its list
_MIMES = {"image": "image/*", "audio": "audio/*", "video": "video/*"}
_COPIES = ("toolInvocations", "reasoning")  # AI SDK 4 stored these as well as `parts`

Change = tuple[Part, Part | None]  # a part, and what it becomes


def native_of(part: Part) -> Native | None:
    """Return the native part for anything but a call or result; None if UI messages have no such part."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, Thinking):
        signed = {"providerMetadata": {ANTHROPIC: {"signature": part.signature}}} if part.signature else {}
        return {"type": "reasoning", "text": part.text, **signed}
    if isinstance(part, Media):
        return file_of(part) or {"type": "text", "text": placeholder(part)}
    if isinstance(part, Opaque) and isinstance(part.data, dict):
        fields = cast("Native", part.data)
        if part.dialect == UI_MESSAGE:
            return fields
        if (part.dialect, part.kind) == (ANTHROPIC, REDACTED):
            metadata = {ANTHROPIC: {"redactedData": fields.get("data")}}
            return {"type": "reasoning", "text": "", "providerMetadata": metadata}
    return None


def file_of(media: Media) -> Native | None:
    """Return the file part for media; None for a file that only its provider can find."""
    mime = media.mime or _MIMES.get(media.kind, "application/octet-stream")
    if media.data is not None:
        url = f"data:{mime};base64,{media.data}"
    elif media.url and not media.url.startswith(FILE_ID):
        url = media.url
    else:
        return None
    name = {"filename": media.name} if media.name else {}
    return {"type": "file", "mediaType": mime, **name, "url": url}


def output_of(content: Sequence[Part]) -> str:
    """Return a result's content as output: its texts, and a line for each media part."""
    return "\n".join(text for text in map(words_of, content) if text)


def edit_native(body: Native, edits: Mapping[int, Part | None], index: int | None = None) -> Native | None:
    """Return a native message with some of its parts replaced (None: removed); None if nothing is left.

    All other keys and parts stay as received. A removed call takes its result along. A message of step
    marks alone counts as nothing.
    """
    found = slots(body, index)
    check_edits(edits, [part for part, _ in found], index)
    places: dict[tuple[str, int | None], list[Change]] = {}
    for number, (part, where) in enumerate(found):
        places.setdefault(where, []).append((part, edits.get(number, part)))
    new = dict(body)
    for key in dict.fromkeys(key for key, _ in places):
        changes = {place: change for (name, place), change in places.items() if name == key}
        if None in changes:
            new[key] = _words(changes[None][0])
        else:
            patched = [_patched(native, changes[place]) for place, native in enumerate(body[key])]
            new[key] = [native for native in patched if native is not None]
    if isinstance(body.get("parts"), list):
        _drop_copies(new)
    return new if _says(new) else None


def _says(body: Native) -> bool:
    if isinstance(natives := body.get("parts"), list):
        return any(cast("Native", native).get("type") != STEP for native in cast("list[Any]", natives))
    return any(body.get(key) for key in ("content", "reasoning", *V4_KEYS))


def _drop_copies(new: Native) -> None:
    """Drop AI SDK 4's second copy of the text and the calls: what was edited must not survive there."""
    for key in _COPIES:
        new.pop(key, None)
    if isinstance(new.get("content"), str):
        texts = [native.get("text") for native in new["parts"] if native.get("type") == "text"]
        new["content"] = "".join(text for text in texts if isinstance(text, str))


def _words(change: Change) -> str:
    new = change[1]
    return new.text if isinstance(new, Text | Thinking) else ""


def _patched(native: Native, changes: Sequence[Change]) -> Native | None:
    if all(new is old or new == old for old, new in changes):
        return native
    old, new = changes[0]
    if new is None:
        return None
    if isinstance(new, ToolCall) and isinstance(old, ToolCall):
        return _patched_tool(native, (old, new), changes[1:])
    if isinstance(new, Text) and isinstance(old, Text):
        return {**native, "text": new.text} if new.text.strip() else None
    if isinstance(new, Thinking) and isinstance(old, Thinking):
        return {**native, "reasoning" if "reasoning" in native else "text": new.text}
    return native_of(new)


def _patched_tool(native: Native, call: tuple[ToolCall, ToolCall], more: Sequence[Change]) -> Native:
    old, new = call
    body = native if new == old else with_call(native, new)
    for was, now in more:
        if now is None:
            body = without_result(body)
        elif now != was and isinstance(now, ToolResult) and isinstance(was, ToolResult):
            body = _patched_result(body, was, now)
    return body


def _patched_result(native: Native, old: ToolResult, new: ToolResult) -> Native:
    """Replace a result: unchanged blocks stay as received, an output of another form becomes text."""
    failed = new.is_error and native.get("state") != "output-available"
    output = native.get("output")
    key = next((key for key in ("content", "value") if isinstance(output, dict) and key in output), None)
    if key is None or failed or all(isinstance(part, Text) for part in new.content):
        return with_result(native, output_of(new.content), is_error=failed)
    fields = cast("Native", output)
    kept = cast("list[Any]", fields[key])
    blocks = [
        kept[place]
        if place < len(old.content) and old.content[place] == part
        else {"type": "text", "text": output_of([part])}
        for place, part in enumerate(new.content)
    ]
    return with_result(native, {**fields, key: blocks}, is_error=False)


def answer(native: Native, result: ToolResult) -> Native:
    """Return a tool part with the result of its call."""
    return with_result(native, output_of(result.content), is_error=result.is_error)


class UIWriter(Writer):
    """Build a list of UI messages; `taken` are the ids of those kept as received."""

    def __init__(self, taken: Iterable[str]) -> None:
        super().__init__(Ids(limit=_ANY_LENGTH, everywhere=False, any_text=True))
        self._taken = set(taken)
        self._open: dict[str, list[Place]] = {}  # the original id of a call -> where it stands
        self._noted: list[tuple[Place, Native]] = []  # parts that only a note answers, as they were before
        self._given = b""  # what the id of the message is made from that is encoded

    def native(self, body: Native, message: Message) -> None:
        """Append a message as received; one without parts is left out."""
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

    def add(self, message: Message, given: Message) -> None:
        """Append a message that is encoded, whole: its steps are parts here."""
        native = given.native
        self._given = native.raw if native is not None else codec.encode([given.role, given.parts])
        self._add(message)

    def _add(self, message: Message) -> None:
        own = own_results(message)
        for index, part in enumerate(message.parts):
            if isinstance(part, ToolResult) and index not in own:
                self._answer(part)
        role = {"developer": "system", "tool": "user"}.get(message.role, message.role)
        if message.role == "developer":
            self.losses.add("developer messages became system messages")
        self._ids.batch()
        parts: list[Native] = []
        asked: dict[str, list[Place]] = {}
        for number, (start, stop) in enumerate(steps(message)):
            if number and not is_step(message.parts[start]):
                parts.append({"type": STEP})
            for index in range(start, stop):
                self._part(message.parts[index], role, parts, asked, own=index in own)
        if all(part["type"] == STEP for part in parts):
            return
        self._open.update(asked)
        self._out.append({"id": self._new_id(), "role": role, "parts": parts})

    def finish(self, *, whole: bool = False) -> Rendered:
        """Return the list, the system prompt and what was left out.

        A call in the last step that only our own note answers stays open: this dialect has a state for that,
        and the application may still answer it.
        """
        for (at, key, place), before in self._noted:
            later: list[Native] = self._out[at][key][place + 1 :]
            if at == len(self._out) - 1 and all(part.get("type") != STEP for part in later):
                self._out[at][key][place] = before
        return super().finish(whole=whole)

    def _part(
        self, part: Part, role: str, parts: list[Native], asked: dict[str, list[Place]], *, own: bool
    ) -> None:
        if isinstance(part, ToolCall):
            if role != "assistant":
                self.losses.add(f"calls of a {role} message left out")
                return
            call = ToolCall(self._ids.call(part.id), part.name, part.arguments)
            asked.setdefault(part.id, []).append((len(self._out), "parts", len(parts)))
            parts.append(tool_part(call))
        elif isinstance(part, ToolResult):
            if own:
                _, _, place = asked[part.call_id].pop()
                parts[place] = answer(parts[place], part)
                self._note_content(part)
        else:
            native = self._plain(part, role)
            if native is not None:
                parts.append(native)

    def _plain(self, part: Part, role: str) -> Native | None:
        """Return a text, file, reasoning or opaque part if the role may have it; else count it as lost."""
        thought = isinstance(part, Thinking) or (isinstance(part, Opaque) and part.kind == REDACTED)
        if thought and role != "assistant":
            self.losses.add(f"thinking of a {role} message left out")
            return None
        if isinstance(part, Media) and (role == "system" or file_of(part) is None):
            self.losses.add(f"{part.kind} left out")
            return native_of(part) if role != "system" else None
        native = native_of(part)
        if native is None and isinstance(part, Opaque):
            self.losses.add(f"{part.dialect} {part.kind} left out")
        return native

    def _answer(self, result: ToolResult) -> None:
        """Put a result into the part of its call."""
        waiting = self._open.get(result.call_id)
        if not waiting:
            self.losses.add("results without their call left out")
            return
        place = waiting.pop(0)
        at, key, number = place
        before = cast("Native", self._out[at][key][number])
        self._out[at][key][number] = answer(before, result)
        if result.content == (Text(UNANSWERED),):
            self._noted.append((place, before))
        self._note_content(result)

    def _note_content(self, result: ToolResult) -> None:
        for part in result.content:
            if isinstance(part, Media) and plain_text(part) is None:
                self.losses.add(f"{part.kind} in a result left out")
            elif isinstance(part, Opaque):
                self.losses.add(f"{part.dialect} {part.kind} left out")

    def _new_id(self) -> str:
        """Return an id for a message without one: unique in the list, and not changed by edits."""
        base = message_id(self._given)
        new, number = base, 2
        while new in self._taken:
            new, number = f"{base}_{number}", number + 1
        self._taken.add(new)
        return new

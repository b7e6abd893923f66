"""Messages -> a list of UI messages: native ones as received, others encoded, results in their calls."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, cast

from foldline.core.cut.notes import UNANSWERED
from foldline.core.log import codec
from foldline.core.log.messages import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.steps import STEP, is_step, own_results, steps
from foldline.dialects.ids import Ids
from foldline.dialects.media import plain_text
from foldline.dialects.ui_message.edits import answer, file_of, native_of
from foldline.dialects.ui_message.read import REDACTED, slots
from foldline.dialects.ui_message.tools import Native, tool_part
from foldline.dialects.values import Losses, Rendered, rendered

_ANY_LENGTH = 1 << 30  # call ids are text of any length here

Place = tuple[int, str, int]  # index of a message, a key in it, the index in its list


class UIWriter:
    """Build a list of UI messages; `taken` are the ids of those kept as received."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.losses = Losses()
        self._out: list[Native] = []
        self._system: list[Any] = []
        self._taken = set(taken)
        self._ids = Ids(limit=_ANY_LENGTH, everywhere=False, any_text=True)
        self._open: dict[str, list[Place]] = {}  # the original id of a call -> where it stands
        self._noted: list[tuple[Place, Native]] = []  # parts that only a note answers, as they were before

    def native(self, body: Native) -> None:
        """Append a message as received; one without parts is left out."""
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

    def native_system(self, system: Any) -> None:
        """Take a system prompt as it was given."""
        self._system.append(system)

    def add(self, message: Message, made_of: bytes) -> None:
        """Append a message of another dialect (or a made one); its id is made from `made_of`."""
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
        self._out.append({"id": self._new_id(made_of), "role": role, "parts": parts})

    def finish(self) -> Rendered:
        """Return the list, the system prompt and what was left out.

        A call at the end that only our own note answers stays open: this dialect has a state for that, and
        the application may still answer it.
        """
        for (at, key, place), before in self._noted:
            if at == len(self._out) - 1:
                self._out[at][key][place] = before
        if self._ids.renamed:
            self.losses.add("call ids changed", self._ids.renamed)
        return rendered(self._out, _one_system(self._system), self.losses)

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
                _, _, place = asked[part.call_id].pop(0)
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

    def _new_id(self, made_of: bytes) -> str:
        """Return an id for a message without one: unique in the list, and stable for the same message."""
        base = f"msg_{hashlib.blake2s(made_of, digest_size=8).hexdigest()}"
        new, number = base, 2
        while new in self._taken:
            new, number = f"{base}_{number}", number + 1
        self._taken.add(new)
        return new


def made_of(message: Message) -> bytes:
    """Return what a message's id is made from: its native form, or its parts; edits do not change it."""
    return message.native.raw if message.native is not None else codec.encode([message.role, message.parts])


def _one_system(given: Sequence[Any]) -> Any | None:
    """Return a single system prompt as given; several are joined into one text."""
    if len(given) < 2:
        return given[0] if given else None
    texts = [value if isinstance(value, str) else _text_of(value) for value in given]
    return "\n\n".join(text for text in texts if text)


def _text_of(blocks: Any) -> str:
    return "\n\n".join(str(cast("Native", block).get("text", "")) for block in cast("list[Any]", blocks))

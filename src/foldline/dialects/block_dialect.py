"""The base class, writer and turn rules of dialects whose messages contain blocks (`blocks.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

from foldline.core.log.dialects import Traits
from foldline.core.log.entries import Edit
from foldline.core.log.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from foldline.dialects.blocks import BlockForm
from foldline.dialects.cache_marks import MARKS, marks
from foldline.dialects.dialect import Dialect, Slot
from foldline.dialects.edits import replacements
from foldline.dialects.forms import check_fields
from foldline.dialects.ids import Ids
from foldline.dialects.media import placeholder
from foldline.dialects.payload import Fields, fields_of, items_of, role_in
from foldline.dialects.values import Losses, Problem, Report
from foldline.dialects.writer import Block, TurnsWriter
from foldline.errors import DialectError


class BlockDialect(Dialect):
    """A dialect whose messages contain blocks.

    Converted messages are merged into turns with results first. System messages at the start become `system`,
    later ones and made ones user text. A request that begins with the assistant gets a first user message, as
    the APIs require.
    """

    form: ClassVar[BlockForm]
    marks_cache = True
    moves_system = True
    traits = Traits(own_results=False)  # results are in user messages

    def call_slots(self, body: Fields) -> tuple[list[Slot], list[Slot]]:
        """Return the call ids of a message: those of its calls and those of its results."""
        blocks = [fields_of(block) for block in items_of(body.get("content"))]
        calls, results = (
            [(self.form.fields_in(block), key) for block in blocks if self.form.kind(block) == kind]
            for kind, key in (self.form.call, self.form.result)
        )
        return calls, results

    def more(self, messages: list[Any]) -> list[Any]:
        """Return the last message of a request and new ones in the form that a request requires."""
        return self.form.request(messages, Losses())

    def _parts(self, body: Any, index: int | None) -> tuple[Role, Sequence[Part]]:
        remedy = "; a tool message belongs to openai-chat" if body.get("role") == "tool" else ""
        return role_in(self.form.roles, body, index, remedy), self.form.parts(body.get("content"), index)

    def _system_parts(self, system: Any) -> tuple[Text, ...]:
        parts = self.form.parts(system) if isinstance(system, str | list) else [None]
        texts = tuple(part for part in parts if isinstance(part, Text))
        if len(texts) < len(parts):
            kinds = ", ".join(self.form.in_system)
            raise DialectError(f"system must be a string or a list of {kinds} blocks")
        return texts

    def _edited_system(self, message: Message, system: Any, edits: Sequence[Edit], index: int) -> Any:
        del message
        body = self.form.edit({"content": system}, replacements(edits), index)
        return body["content"] if body else ""

    def _writer(self, received: Sequence[tuple[Message, Any]]) -> BlocksWriter:
        return BlocksWriter(self.form, (call.id for message, _ in received for call in message.calls))

    def _edited(self, body: Any, edits: Mapping[int, Part | None], index: int) -> Fields | None:
        return self.form.edit(body, edits, index)

    def _check_system(self, report: Report, system: Any) -> None:
        kinds = ", ".join(self.form.in_system)
        if not isinstance(system, str | list | None):
            report("system", f"system must be a string or a list of {kinds} blocks")
            return
        for block in map(fields_of, items_of(system)):
            if self.form.kind(block) not in self.form.in_system:
                report("system", f"system may hold only {kinds} blocks")
            elif self.form.kind(block) == "text":
                check_fields(report, "system prompt", self.form.forms["text"], block)

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        check_turns(problems, bodies, last, self.form)

    def _check_whole(self, report: Report, bodies: Sequence[Fields], system: Any) -> None:
        if (count := marks(bodies, system)) > MARKS:
            report("cache-marks", f"a request may have at most {MARKS} cache marks, not {count}")


# ---- writing


class BlocksWriter(TurnsWriter):
    """Build a list of messages that contain blocks."""

    def __init__(self, form: BlockForm, native_ids: Iterable[str]) -> None:
        super().__init__(Ids(limit=form.id_limit, everywhere=True, any_text=False, taken=native_ids))
        self._form = form

    def _text(self, text: str) -> Block:
        return self._form.text(text)

    def _system_prompt(self, text: str) -> Any:
        return self._form.system(text)

    def _as_request(self, messages: list[Block]) -> list[Block]:
        return self._form.request(messages, self.losses)

    def _messages_of(self, role: str, results: list[Block], blocks: list[Block]) -> list[Block]:
        if role == "assistant" and (dropped := self._form.drop_last_thinking(blocks)):
            self.losses.add("thinking at the end of a turn left out", dropped)
        if not results and not blocks:
            return []
        return [{"role": role, "content": self._form.content([*results, *blocks])}]

    def _block(self, part: Part, role: str) -> Block | None:
        if isinstance(part, ToolResult):
            for inner in part.content:
                self._count_unsupported(inner)
            if part.is_error and any(not isinstance(inner, Text) for inner in part.content):
                self.losses.add("media in error results left out")
            return self._form.result_of(part, self._ids.result(part.call_id))
        self._count_unsupported(part)
        if isinstance(part, Text) and role == "assistant":
            # the APIs reject trailing whitespace in the last assistant message, and any may be the last
            return self._form.block_of(Text(part.text.rstrip()))
        if isinstance(part, ToolCall):
            name = self._tool_name(part, self._form.name_limit)
            return self._form.block_of(ToolCall(self._ids.call(part.id), name, self._input(part)))
        if isinstance(part, Media) and role == "assistant":
            return self._form.text(placeholder(part))
        block = self._form.block_of(part)
        misplaced = block is not None and role != "assistant" and self._form.is_thought(block)
        return None if misplaced else block

    def _count_unsupported(self, part: Part) -> None:
        """Count a part that the API does not support."""
        if isinstance(part, Media):
            unsupported = self._form.media(part) is None
        else:
            unsupported = isinstance(part, Thinking | Opaque) and self._form.block_of(part) is None
        if unsupported:
            self._leave_out(part)

    def _leave_out(self, part: Part) -> None:
        if isinstance(part, Thinking):
            self.losses.add("unsigned thinking left out")
        else:
            super()._leave_out(part)


# ---- rules


class BlockTurn(NamedTuple):
    """Consecutive messages of one role: their blocks, each with the index of its message."""

    role: str
    blocks: list[tuple[int, Block]]

    def of(self, form: BlockForm, kind: str, key: str) -> list[tuple[int, str]]:
        """Return the ids of a kind of block, each with the index of its message."""
        blocks = ((index, form.fields_in(block)) for index, block in self.blocks if form.kind(block) == kind)
        return [(index, call_id) for index, fields in blocks if isinstance(call_id := fields.get(key), str)]


def check_turns(
    problems: list[Problem], bodies: Sequence[tuple[int, Block]], last: int, form: BlockForm
) -> None:
    """Add a problem for each turn rule that messages (with their indexes) break; `last`: last index."""
    turns: list[BlockTurn] = []
    for index, body in bodies:
        role = body.get("role")
        if role not in ("user", "assistant"):
            continue
        if not turns and role != "user":
            problems.append(Problem(index, "first-user", "the first message must have role user"))
        if turns and form.alternates and turns[-1].role == role:
            problems.append(Problem(index, "alternate", "user and assistant messages must alternate"))
        if not turns or turns[-1].role != role:
            turns.append(BlockTurn(cast("str", role), []))
        blocks = [cast("Block", block) for block in form.blocks(body) if isinstance(block, dict)]
        turns[-1].blocks.extend((index, block) for block in blocks)
        text = blocks[-1].get("text") if index == last and role == "assistant" and blocks else None
        if isinstance(text, str) and text != text.rstrip():
            description = "the last assistant message must not end in whitespace"
            problems.append(Problem(index, "trailing-space", description))
    seen: set[str] = set()
    for number, turn in enumerate(turns):
        if turn.role == "user":
            _check_results(problems, turn, turns[number - 1] if number else None, form)
            continue
        if turn.blocks and form.is_thought(turn.blocks[-1][1]):
            index, block = turn.blocks[-1]
            text = f"an assistant turn must not end in {form.kind(block)}"
            problems.append(Problem(index, "thinking-last", text))
        _check_calls(problems, turn, turns[number + 1] if number + 1 < len(turns) else None, seen, form)


def _check_calls(
    problems: list[Problem], turn: BlockTurn, after: BlockTurn | None, seen: set[str], form: BlockForm
) -> None:
    answers = {call_id for _, call_id in after.of(form, *form.result)} if after else set[str]()
    for index, call_id in turn.of(form, *form.call):
        if call_id in seen:
            problems.append(Problem(index, "call-duplicate", f"{form.call[0]} id {call_id!r} is used twice"))
        seen.add(call_id)
        if call_id not in answers:
            text = f"no {form.result[0]} for {call_id!r} in the next message"
            problems.append(Problem(index, "result-missing", text))


def _check_results(
    problems: list[Problem], turn: BlockTurn, before: BlockTurn | None, form: BlockForm
) -> None:
    calls = {call_id for _, call_id in before.of(form, *form.call)} if before else set[str]()
    kind, key = form.result
    answered: set[str] = set()
    other = False
    for index, block in turn.blocks:
        if form.kind(block) != kind:
            other = True
            continue
        if other:
            problems.append(Problem(index, "results-first", f"{kind} blocks must come before all others"))
        call_id = form.fields_in(block).get(key)
        if not isinstance(call_id, str):
            continue
        if call_id in answered:
            problems.append(Problem(index, "result-duplicate", f"{call_id!r} already has a result"))
        elif call_id not in calls:
            text = f"no {form.call[0]} {call_id!r} in the assistant message before"
            problems.append(Problem(index, "result-orphan", text))
        answered.add(call_id)

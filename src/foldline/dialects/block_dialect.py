"""What dialects of blocks (`blocks.py`) share beside them: their steps, their writer, the rules of turns."""

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
from foldline.dialects.forms import look_at
from foldline.dialects.ids import Ids
from foldline.dialects.media import placeholder
from foldline.dialects.payload import Fields, fields_of, items_of, role_in
from foldline.dialects.values import Losses, Problem, Say
from foldline.dialects.writer import Block, TurnsWriter
from foldline.errors import DialectError


class BlockDialect(Dialect):
    """A dialect whose messages hold blocks.

    Messages of others are merged into turns with results first. System messages at the head become `system`,
    later ones and made ones become user text. A whole request that begins with the assistant gets a first
    user message, as the APIs require.
    """

    form: ClassVar[BlockForm]
    marks_cache = True
    traits = Traits(own_results=False)  # results belong to the user's turn

    def call_slots(self, body: Fields) -> tuple[list[Slot], list[Slot]]:
        """Return where a message holds the ids of its calls, and those that its results answer."""
        blocks = [fields_of(block) for block in items_of(body.get("content"))]
        calls, results = (
            [(self.form.held(block), key) for block in blocks if self.form.kind(block) == kind]
            for kind, key in (self.form.call, self.form.result)
        )
        return calls, results

    def more(self, messages: list[Any]) -> list[Any]:
        """Return the last message of a request and those that follow it, as the request takes them."""
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

    def _moves(self, message: Message) -> bool:
        return message.role in ("system", "developer")

    def _edited_system(self, message: Message, system: Any, edits: Sequence[Edit], index: int) -> Any:
        del message
        body = self.form.edit({"content": system}, replacements(edits), index)
        return body["content"] if body else ""

    def _writer(self, received: Sequence[tuple[Message, Any]]) -> BlocksWriter:
        return BlocksWriter(self.form, (call.id for message, _ in received for call in message.calls))

    def _edited(self, body: Any, edits: Mapping[int, Part | None], index: int) -> Fields | None:
        return self.form.edit(body, edits, index)

    def _check_system(self, say: Say, system: Any) -> None:
        kinds = ", ".join(self.form.in_system)
        if not isinstance(system, str | list | None):
            say("system", f"system must be a string or a list of {kinds} blocks")
            return
        for block in map(fields_of, items_of(system)):
            if self.form.kind(block) not in self.form.in_system:
                say("system", f"system may hold only {kinds} blocks")
            elif self.form.kind(block) == "text":
                look_at(say, "system prompt", self.form.forms["text"], block)

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        check_turns(problems, bodies, last, self.form)

    def _check_whole(self, say: Say, bodies: Sequence[Fields], system: Any) -> None:
        if (given := marks(bodies, system)) > MARKS:
            say("cache-marks", f"A maximum of {MARKS} cache marks may be provided. Found {given}.")


# ---- out


class BlocksWriter(TurnsWriter):
    """Build a list of a dialect whose messages hold blocks."""

    def __init__(self, form: BlockForm, native_ids: Iterable[str]) -> None:
        super().__init__(Ids(limit=form.id_limit, everywhere=True, any_text=False, taken=native_ids))
        self._form = form

    def _text(self, text: str) -> Block:
        return self._form.text(text)

    def _prompt(self, text: str) -> Any:
        return self._form.system(text)

    def _request(self, messages: list[Block]) -> list[Block]:
        return self._form.request(messages, self.losses)

    def _said(self, role: str, results: list[Block], blocks: list[Block]) -> list[Block]:
        if role == "assistant" and (dropped := self._form.drop_last_thinking(blocks)):
            self.losses.add("thinking at the end of a turn left out", dropped)
        if not results and not blocks:
            return []
        return [{"role": role, "content": self._form.content([*results, *blocks])}]

    def _block(self, part: Part, role: str) -> Block | None:
        if isinstance(part, ToolResult):
            for inner in part.content:
                self._note(inner)
            if part.is_error and any(not isinstance(inner, Text) for inner in part.content):
                self.losses.add("media in error results left out")
            return self._form.result_of(part, self._ids.result(part.call_id))
        self._note(part)
        if isinstance(part, Text) and role == "assistant":
            # the APIs refuse whitespace at the end of a last assistant message, and any may be the last
            return self._form.block_of(Text(part.text.rstrip()))
        if isinstance(part, ToolCall):
            name = self._named(part, self._form.name_limit)
            return self._form.block_of(ToolCall(self._ids.call(part.id), name, self._input(part)))
        if isinstance(part, Media) and role == "assistant":
            return self._form.text(placeholder(part))
        block = self._form.block_of(part)
        thought = block is not None and role != "assistant" and self._form.is_thought(block)
        return None if thought else block

    def _note(self, part: Part) -> None:
        """Count a part that the API does not accept."""
        if isinstance(part, Media):
            refused = self._form.media(part) is None
        else:
            refused = isinstance(part, Thinking | Opaque) and self._form.block_of(part) is None
        if refused:
            self._leave(part)

    def _leave(self, part: Part) -> None:
        if isinstance(part, Thinking):
            self.losses.add("unsigned thinking left out")
        else:
            super()._leave(part)


# ---- rules


class BlockTurn(NamedTuple):
    """Consecutive messages of one role: blocks with the index of their message."""

    role: str
    blocks: list[tuple[int, Block]]

    def of(self, form: BlockForm, kind: str, key: str) -> list[tuple[int, str]]:
        """Return the ids of a kind of block, each with the index of its message."""
        found = (
            (index, form.held(block).get(key)) for index, block in self.blocks if form.kind(block) == kind
        )
        return [(index, value) for index, value in found if isinstance(value, str)]


def check_turns(
    problems: list[Problem], bodies: Sequence[tuple[int, Block]], last: int, form: BlockForm
) -> None:
    """Add every rule of turns that messages, each with its index, break; `last` is the end of the list."""
    turns: list[BlockTurn] = []
    for index, body in bodies:
        role = body.get("role")
        if role not in ("user", "assistant"):
            continue
        if not turns and role != "user":
            problems.append(Problem(index, "first-user", "the first message must have role user"))
        if turns and form.alternates and turns[-1].role == role:
            problems.append(Problem(index, "alternate", "user and assistant must speak in turn"))
        if not turns or turns[-1].role != role:
            turns.append(BlockTurn(cast("str", role), []))
        blocks = [cast("Block", block) for block in form.blocks(body) if isinstance(block, dict)]
        turns[-1].blocks.extend((index, block) for block in blocks)
        text = blocks[-1].get("text") if index == last and role == "assistant" and blocks else None
        if isinstance(text, str) and text != text.rstrip():
            said = "the last assistant message must not end in whitespace"
            problems.append(Problem(index, "trailing-space", said))
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
        call_id = form.held(block).get(key)
        if not isinstance(call_id, str):
            continue
        if call_id in answered:
            problems.append(Problem(index, "result-duplicate", f"{call_id!r} already has a result"))
        elif call_id not in calls:
            text = f"no {form.call[0]} {call_id!r} in the assistant message before"
            problems.append(Problem(index, "result-orphan", text))
        answered.add(call_id)

"""Parts -> Responses items: encoding, and requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from foldline.core.log.messages import Media, Message, Opaque, Part, Thinking, ToolCall, ToolResult
from foldline.dialects.ids import Ids
from foldline.dialects.media import plain_text, to_responses, words_of
from foldline.dialects.payload import fields_of, json_text, without
from foldline.dialects.responses.edits import NO_TEXT, call_item, content_of, output_item
from foldline.dialects.responses.items import (
    CALLS,
    OUTPUTS,
    Item,
    answered_id,
    is_call,
    is_output,
    kind_of,
    own_id,
    role_of,
    slots,
)
from foldline.dialects.values import OPENAI_RESPONSES, Losses, Rendered
from foldline.dialects.writer import Writer

ID_LIMIT = 64  # of call_id, from the API's error text
NAME_LIMIT = 64  # of a function's name, API reference


class ResponsesWriter(Writer):
    """Build a list of Responses items: native items as received, others encoded."""

    def __init__(self, native_ids: Iterable[str]) -> None:
        super().__init__(Ids(limit=ID_LIMIT, everywhere=True, any_text=True, taken=native_ids))
        self._calls: dict[str, str] = {}  # call id -> type of its item

    def native(self, body: Any, message: Message) -> None:
        """Append the items of a message as received, except messages without content."""
        if message.role == "assistant":
            self._ids.batch()
        for call in message.calls:
            self._ids.keep(call.id)
        for item in cast("list[Item]", body if isinstance(body, list) else [body]):
            if kind_of(item) == "message" and not item.get("content"):
                self.losses.add("empty messages left out")
            else:
                self._put(self._with_matching_type(item))

    def _add(self, message: Message) -> None:
        """Encode a message as one or more items."""
        if message.role == "assistant":
            self._assistant(message.parts)
            return
        for result in message.results:
            self._result(result)
        rest = [part for part in message.parts if not isinstance(part, ToolResult)]
        role = message.role if message.role in {"system", "developer"} else "user"
        self._append_message(role, [part for part in rest if not self._left_out(part, media=role == "user")])

    def finish(self, *, whole: bool = False) -> Rendered:
        """Return the list, the system prompt and what was left out."""
        if whole:
            self._out = drop_refused(self._out, self.losses)
        return super().finish(whole=whole)

    def _put(self, item: Item) -> None:
        self._out.append(item)
        if is_call(item) and isinstance(call_id := item.get(CALLS[str(kind_of(item))].id), str):
            self._calls[call_id] = str(kind_of(item))

    def _with_matching_type(self, item: Item) -> Item:
        """Convert an output if an edit changed the type of its call."""
        if not is_output(item):
            return item
        call = self._calls.get(str(answered_id(item)), OUTPUTS[str(kind_of(item))])
        if CALLS[call].output == kind_of(item):
            return item
        return output_item(call, cast("ToolResult", slots(item)[0][0]))

    def _result(self, result: ToolResult) -> None:
        call_id = self._ids.result(result.call_id)
        call = self._calls.get(call_id, "function_call")
        if result.is_error and call in ("function_call", "custom_tool_call", "local_shell_call", *NO_TEXT):
            self.losses.add("error flags of tool results left out")
        for part in result.content:
            self._left_out(part, media=call in ("function_call", "custom_tool_call"))
        if call in NO_TEXT and result.text:
            self.losses.add(f"text of an output of {call} left out")
        self._out.append(output_item(call, ToolResult(call_id, result.content, result.is_error)))

    def _assistant(self, parts: Iterable[Part]) -> None:
        self._ids.batch()
        message: list[Part] = []
        for part in parts:
            item = _own_item(part) if isinstance(part, Opaque) else None
            if item is not None or isinstance(part, ToolCall | ToolResult):
                self._append_message("assistant", message)
                message = []
            if item is not None:
                self._put(item)
            elif isinstance(part, ToolCall):
                self._put(self._call(part))
            elif isinstance(part, ToolResult):
                self._result(part)
            elif not self._left_out(part, media=False):
                message.append(part)
        self._append_message("assistant", message)

    def _append_message(self, role: str, parts: Sequence[Part]) -> None:
        """Append a message of the supported parts; a single text is its content."""
        if content := content_of(parts, assistant=role == "assistant"):
            self._out.append({"type": "message", "role": role, "content": content})

    def _call(self, call: ToolCall) -> Item:
        name = self._tool_name(call, NAME_LIMIT)
        call_id = self._ids.call(call.id)
        if isinstance(call.arguments, str):
            # custom tools accept any text
            return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": call.arguments}
        return call_item(call_id, name, json_text(call.arguments))

    def _left_out(self, part: Part, *, media: bool) -> bool:
        """Count an unsupported part; return True if it leaves no text, not even a placeholder."""
        if isinstance(part, Media):
            if not (media and to_responses(part)) and plain_text(part) is None:
                self.losses.add(f"{part.kind} left out")
            return not words_of(part)
        if isinstance(part, Thinking) or (isinstance(part, Opaque) and part.dialect != OPENAI_RESPONSES):
            self._count_loss(part)
            return True
        return isinstance(part, ToolCall)


def _own_item(part: Opaque) -> Item | None:
    if part.dialect != OPENAI_RESPONSES or not isinstance(part.data, dict):
        return None
    data = cast("Item", part.data)
    if part.kind == "reasoning":
        return {"summary": [], **data}
    return data if kind_of(data) == part.kind and not part.kind.startswith("input_") else None


# ---- requests


def drop_refused(items: Sequence[Item], losses: Losses) -> list[Item]:
    """Return items without those that the API rejects in a request; `losses` counts them.

    These are: reasoning at the end of a reply, outputs of folded programs, repeated items with their outputs,
    and compaction triggers before the last item.
    """
    kept: list[Item] = []
    programs: set[str] = set()
    seen: set[str] = set()
    waiting: set[str] = set()  # calls without an output
    dropped: set[str] = set()  # repeated calls
    for number, item in enumerate(items):
        kind = kind_of(item)
        answered = str(answered_id(item)) if is_output(item) else ""
        if kind == "compaction_trigger" and number < len(items) - 1:
            losses.add("compaction triggers left out")
        elif kind == "program_output" and item.get("call_id") not in programs:
            losses.add("outputs of folded programs left out")
        elif answered in dropped and answered not in waiting:
            losses.add("outputs of repeated calls left out")
        elif (unique := _without_repeated_id(item, seen, losses)) is None:
            dropped |= _call_ids(item)
        else:
            waiting |= _call_ids(item)
            waiting.discard(answered)
            if kind == "program":
                programs.add(str(item.get("call_id")))
            kept.append(_without_folded_caller(unique, programs, losses))
    return _without_last_reasoning(kept, losses)


def _call_ids(item: Item) -> set[str]:
    """Return the id of a call; an empty set for other items."""
    return {str(item.get(CALLS[str(kind_of(item))].id))} if is_call(item) else set()


def _without_repeated_id(item: Item, seen: set[str], losses: Losses) -> Item | None:
    """Remove a repeated id from an item; None if the item is useless without it."""
    item_id = own_id(item)
    if item_id is None:
        return item
    if item_id not in seen:
        seen.add(item_id)
        return item
    losses.add("repeated item ids left out")
    if kind_of(item) in {"message", "function_call", "custom_tool_call"} or role_of(item) == "tool":
        return without(item, "id")
    return None


def _without_folded_caller(item: Item, programs: set[str], losses: Losses) -> Item:
    """Remove the caller of an item if it is a folded program."""
    caller = fields_of(item.get("caller"))
    if caller.get("type") != "program" or caller.get("caller_id") in programs:
        return item
    losses.add("callers that are folded left out")
    return without(item, "caller")


def _without_last_reasoning(items: Sequence[Item], losses: Losses) -> list[Item]:
    """Remove reasoning that no item of the model follows."""
    kept: list[Item] = []
    follows = False
    for item in reversed(items):
        if kind_of(item) == "reasoning" and not follows:
            losses.add("reasoning that nothing follows left out")
            continue
        follows = role_of(item) == "assistant"
        kept.append(item)
    return kept[::-1]

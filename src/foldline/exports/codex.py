"""Codex's rollouts: items of the Responses API, one per line, with the events that its terminal shows.

Sources: recorded rollouts of versions 0.118 and 0.119, and how Codex's source resumes: the
`replacement_history` of a `compacted` line replaces everything before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Opaque, Usage
from foldline.dialects import get
from foldline.dialects.values import OPENAI_RESPONSES
from foldline.exports.base import ExportWriter, FoldStep, Origin, SaidStep, iso, line
from foldline.transcripts.codex_items import COMPACTIONS, SEALED
from foldline.transcripts.payloads import is_injected

VERSION = "0.119.0"  # of Codex, which writes this form
RESULT_LIMIT = 12_000  # bytes of a result that Codex 0.169 sends of any model
_KEPT_WORDS = re.compile(r"\n\n\[(?:User|Assistant), kept by Codex\]: ")
_ALIKE = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}

Item = dict[str, Any]


class CodexWriter(ExportWriter):
    """Write lines that Codex can resume. Only items that a later boundary kept are held until it comes."""

    quotes: ClassVar[bool] = True
    stepwise: ClassVar[bool] = True

    def __init__(self, origin: Origin, session: str) -> None:
        super().__init__(origin, session)
        self._model = ""
        self._totals = [0, 0, 0]  # input, cached input, output
        self._sealed = 0  # messages to come that the boundary before them holds
        self._leading: list[Item] = []  # of a view, which its checkpoint must not replace
        self._held: dict[str, list[Item]] = {}  # first kept key -> the items from it on
        self._quotes: dict[str, list[Item]] = {}
        self._replies: list[
            tuple[Message, tuple[Edit, ...]]
        ] = []  # replies whose calls the next results answer
        self._answered = False
        self._kinds: dict[str, str] = {}  # call id -> kind of call, for calls without an output yet

    def begin(self) -> Iterator[bytes]:
        """Yield the header."""
        at = iso(self.origin.started)
        header = {
            "id": self.session,
            "timestamp": at,
            "cwd": self.origin.cwd,
            "originator": "foldline",
            "cli_version": VERSION,
            "source": "cli",
        }
        yield line({"timestamp": at, "type": "session_meta", "payload": header})
        if self.origin.title:
            yield self._event(self.origin.started, "thread_name_updated", thread_name=self.origin.title)

    def resume(self) -> tuple[str, str]:
        """Return where Codex keeps the sessions of a day, and its command."""
        at = iso(self.origin.started)
        stamp = at[:19].replace(":", "-")
        place = f"~/.codex/sessions/{at[:10].replace('-', '/')}/rollout-{stamp}-{self.session}.jsonl"
        return place, f"codex resume {self.session}"

    def say(self, step: SaidStep) -> Iterator[bytes]:
        """Yield a message's items, with the events that show it and its token count."""
        message = step.message
        if self._sealed and _is_sealed(message):
            self._sealed -= 1
            return
        self._sealed = 0
        items = self._items(step)
        if not items:
            if message.role not in ("system", "developer"):
                self.losses.add("empty messages left out")
            return
        self._hold(step, items)
        at = self.clock.at(step.at)
        if message.role == "assistant":
            yield from self._context(self.model(message, "unknown"), at)
        elif message.is_prompt:
            yield from self._context(self._model or self.origin.model or "unknown", at)
        self.begun = True
        self.count += 1
        for item in items:
            if _shortened(item):
                self.losses.add(f"results over {RESULT_LIMIT:,} bytes, which Codex may shorten")
            yield self._line("response_item", at, item)
        if message.is_prompt and message.text:
            yield self._event(at, "user_message", message=message.text, images=[])
        if message.role == "assistant":
            yield from self._shown(step, at)

    def fold(self, step: FoldStep) -> Iterator[bytes]:
        """Yield a boundary, which replaces everything before it."""
        at = self.boundary_time(step)
        listed = step.origin.get("replacement_history")
        if isinstance(listed, list) and not self.origin.view:
            history: list[Any] = listed  # pyright: ignore[reportUnknownVariableType]
            self._sealed = sum(1 for item in history if item.get("type") in COMPACTIONS)
            summary = _KEPT_WORDS.split(step.summary, maxsplit=1)[0]
            message = "" if summary.startswith(SEALED[:50]) else summary
        else:
            quoted = [item for key in step.quoted for item in self._quotes.get(key, [])]
            message = step.text
            kept = self._held.get(step.first_kept or "", [])
            if kept:
                self.losses.add(
                    "items that a boundary kept are written twice, also in its history", len(kept)
                )
            history = [*self._leading, *quoted, _user(message), *kept]
        self._held.clear()
        yield self._line("compacted", at, {"message": message, "replacement_history": history})
        yield self._event(at, "context_compacted")

    # ---- items

    def _items(self, step: SaidStep) -> list[Item]:
        """Return a message's items, as received or rendered; the first system prompt is left to the agent."""
        message = step.message
        native = message.native is not None and message.native.dialect == OPENAI_RESPONSES
        if message.role in ("system", "developer") and not native and not self.begun:
            self.losses.add("system prompt left out (the agent brings its own)")
            return []
        rendered = get(OPENAI_RESPONSES).render([(message, step.edits)])
        self.lost(rendered.warnings)
        if message.role == "assistant":
            waiting = self._replies if message.calls and not self._answered else []
            self._replies = [*waiting, (message, step.edits)]
        self._answered = bool(message.results) or (self._answered and message.role != "assistant")
        items: list[Item] = [
            {**item, "type": item.get("type", "message")} for item in self._outputs(step, native)
        ]
        unclear = message.injected and not is_injected(message.text)
        return [self._codex_form(self._paired(item), unclear=unclear) for item in items]

    def _outputs(self, step: SaidStep, native: bool) -> list[Any]:
        """Return the items of results, in the kinds of their calls, which are in the replies before."""
        pair = (step.message, step.edits)
        if native or not step.message.results:
            return get(OPENAI_RESPONSES).render([pair]).messages
        before = len(get(OPENAI_RESPONSES).render(self._replies).messages)
        return get(OPENAI_RESPONSES).render([*self._replies, pair]).messages[before:]

    def _paired(self, item: Item) -> Item:
        """Return an output in the kind of its call, in case an id was used twice."""
        call = str(item.get("call_id"))
        if item["type"] in _ALIKE:
            self._kinds[call] = item["type"]
        elif item["type"] in _ALIKE.values() and (kind := self._kinds.pop(call, None)) is not None:
            return {**item, "type": _ALIKE[kind]}
        return item

    def _codex_form(self, item: Item, *, unclear: bool) -> Item:
        """Return a message in Codex's form, with a content list; a program's becomes the developer's."""
        if item["type"] != "message":
            return item
        content, role = item.get("content"), item.get("role")
        if isinstance(content, str):
            kind = "output_text" if role == "assistant" else "input_text"
            item = {**item, "content": [{"type": kind, "text": content}]}
        if role == "system" or (role == "user" and unclear):
            self.losses.add("messages of programs became the developer's")
            item = {**item, "role": "developer"}
        return item

    def _hold(self, step: SaidStep, items: list[Item]) -> None:
        """Keep the items that a later boundary names."""
        if self.origin.view:
            self._leading.extend(items)  # nothing else comes before a view's checkpoint
        if step.key in self.origin.quoted:
            self._quotes[step.key] = items
        if step.key in self.origin.kept:
            self._held[step.key] = []
        for held in self._held.values():
            held.extend(items)

    # ---- context and events

    def _context(self, model: str, at: float) -> Iterator[bytes]:
        """Yield the context of a turn if the model changed."""
        if model == self._model:
            return
        self._model = model
        payload = {
            "cwd": self.origin.cwd,
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "read-only"},
            "model": model,
            "summary": "auto",
        }
        yield self._line("turn_context", at, payload)

    def _shown(self, step: SaidStep, at: float) -> Iterator[bytes]:
        """Yield the events of a reply and its tokens; OpenAI's input includes cached tokens."""
        message = step.message
        if message.stop in ("aborted", "error", "length"):
            self.losses.add("marks of aborted, failed or cut off replies left out")
        if message.text.strip():
            yield self._event(at, "agent_message", message=message.text)
        usage = self.usage(step)
        if usage is not None and usage.total:
            yield self._event(at, "token_count", info=self._counted(usage), rate_limits=None)

    def _counted(self, usage: Usage) -> dict[str, Any]:
        if usage.cache_write:
            self.losses.add("tokens written to a cache count as input")
        last = [usage.input + usage.cache_write + usage.cache_read, usage.cache_read, usage.output]
        self._totals = [one + other for one, other in zip(self._totals, last, strict=True)]
        return {
            "total_token_usage": _tokens(self._totals),
            "last_token_usage": _tokens(last),
            "model_context_window": None,
        }

    def _event(self, at: float, kind: str, **fields: Any) -> bytes:
        return self._line("event_msg", at, {"type": kind, **fields})

    def _line(self, kind: str, at: float, payload: Item) -> bytes:
        return line({"timestamp": iso(at), "type": kind, "payload": payload})


def _shortened(item: Item) -> bool:
    output = item.get("output")
    return isinstance(output, str) and len(output.encode("utf-8", "replace")) > RESULT_LIMIT


def _user(text: str) -> Item:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def _is_sealed(message: Message) -> bool:
    return bool(message.parts) and all(
        isinstance(part, Opaque) and part.kind in COMPACTIONS for part in message.parts
    )


def _tokens(counts: list[int]) -> dict[str, int]:
    given, cached, output = counts
    return {
        "input_tokens": given,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "reasoning_output_tokens": 0,
        "total_tokens": given + output,
    }

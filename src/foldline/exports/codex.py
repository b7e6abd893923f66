"""Codex's rollouts: items of the Responses API, one per line, with the events that its terminal shows.

Sources: recorded rollouts of versions 0.118 and 0.119, and how Codex's source resumes: the
`replacement_history` of a `compacted` line replaces everything before it.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Opaque, Usage
from foldline.dialects import get
from foldline.dialects.values import OPENAI_RESPONSES
from foldline.exports.base import ExportWriter, FoldStep, Origin, Out, SaidStep, iso
from foldline.transcripts.codex_items import COMPACTIONS, SEALED
from foldline.transcripts.payloads import is_injected

VERSION = "0.119.0"  # of Codex, which writes this format
RESULT_LIMIT = 12_000  # bytes of a result that Codex 0.169 sends to any model
_KEPT_WORDS = re.compile(r"\n\n\[(?:User|Assistant), kept by Codex\]: ")
_ALIKE = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}

Item = dict[str, Any]


class CodexWriter(ExportWriter):
    """Write lines that Codex can resume. Only items that a later boundary keeps are held until then."""

    quotes: ClassVar[bool] = True
    stepwise: ClassVar[bool] = True
    kept_at: ClassVar[str] = "~/.codex/sessions/{day}/rollout-{second}-{session}.jsonl"
    resumed_by: ClassVar[str] = "codex resume {session}"

    def __init__(self, origin: Origin, session: str, out: Out) -> None:
        super().__init__(origin, session, out)
        self._model = ""
        self._totals = [0, 0, 0]  # input, cached input, output
        self._sealed = 0  # following messages that the last boundary already contains
        self._leading: list[Item] = []  # of a view: its checkpoint must not replace them
        self._held: dict[str, list[Item]] = {}  # first kept key -> the items from it on
        self._quotes: dict[str, list[Item]] = {}
        self._replies: list[tuple[Message, tuple[Edit, ...]]] = []  # their calls get the next results
        self._answered = False
        self._kinds: dict[str, str] = {}  # call id -> kind of call, for calls without an output yet

    def begin(self) -> None:
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
        self.line({"timestamp": at, "type": "session_meta", "payload": header})
        if self.origin.title:
            self._event(self.origin.started, "thread_name_updated", thread_name=self.origin.title)

    def say(self, step: SaidStep) -> None:
        """Yield a message's items, the events that show it, and its token count."""
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
        at = self.time(step.at)
        if message.role == "assistant":
            self._context(self.model(message, "unknown"), at)
        elif message.is_prompt:
            self._context(self._model or self.origin.model or "unknown", at)
        self.begun = True
        self.count += 1
        for item in items:
            if _is_over_limit(item):
                self.losses.add(f"results over {RESULT_LIMIT:,} bytes, which Codex may shorten")
            self._line("response_item", at, item)
        if message.is_prompt and message.text:
            self._event(at, "user_message", message=message.text, images=[])
        if message.role == "assistant":
            self._reply_events(step, at)

    def fold(self, step: FoldStep) -> None:
        """Yield a boundary, which replaces everything before it."""
        at = self.boundary_time(step)
        recorded = step.origin.get("replacement_history")
        if isinstance(recorded, list) and not self.origin.view:
            history: list[Any] = recorded  # pyright: ignore[reportUnknownVariableType]
            self._sealed = sum(1 for item in history if item.get("type") in COMPACTIONS)
            summary = _KEPT_WORDS.split(step.summary, maxsplit=1)[0]
            message = "" if summary.startswith(SEALED[:50]) else summary
        else:
            quoted = [item for key in step.quoted for item in self._quotes.get(key, [])]
            message = step.text
            kept = self._held.get(step.first_kept or "", [])
            if kept:
                self.losses.add("items kept by a boundary are written twice, also in its history", len(kept))
            text = {"type": "input_text", "text": message}
            history = [*self._leading, *quoted, {"type": "message", "role": "user", "content": [text]}, *kept]
        self._held.clear()
        self._line("compacted", at, {"message": message, "replacement_history": history})
        self._event(at, "context_compacted")

    # ---- items

    def _items(self, step: SaidStep) -> list[Item]:
        """Return a message's items, as received or rendered; the first system prompt is left out."""
        message = step.message
        is_native = message.native is not None and message.native.dialect == OPENAI_RESPONSES
        if message.role in ("system", "developer") and not is_native and not self.begun:
            self.losses.add("system prompt left out (the agent adds its own)")
            return []
        responses, pair = get(OPENAI_RESPONSES), (message, step.edits)
        rendered = responses.render([pair])
        self.lost(rendered.warnings)
        if message.role == "assistant":
            unanswered = self._replies if message.calls and not self._answered else []
            self._replies = [*unanswered, pair]
        self._answered = bool(message.results) or (self._answered and message.role != "assistant")
        outputs = rendered.messages
        if (
            message.results and not is_native
        ):  # they get the kinds of their calls, which are in earlier replies
            before = len(responses.render(self._replies).messages)
            outputs = responses.render([*self._replies, pair]).messages[before:]
        items: list[Item] = [{**item, "type": item.get("type", "message")} for item in outputs]
        unmarked_program = message.injected and not is_injected(message.text)
        return [self._codex_form(self._paired(item), unmarked_program=unmarked_program) for item in items]

    def _paired(self, item: Item) -> Item:
        """Return an output with the kind of its call, in case an id was used twice."""
        call = str(item.get("call_id"))
        if item["type"] in _ALIKE:
            self._kinds[call] = item["type"]
        elif item["type"] in _ALIKE.values() and (kind := self._kinds.pop(call, None)) is not None:
            return {**item, "type": _ALIKE[kind]}
        return item

    def _codex_form(self, item: Item, *, unmarked_program: bool) -> Item:
        """Return a message in Codex's form, with a content list; a program's gets the developer role."""
        if item["type"] != "message":
            return item
        content, role = item.get("content"), item.get("role")
        if isinstance(content, str):
            kind = "output_text" if role == "assistant" else "input_text"
            item = {**item, "content": [{"type": kind, "text": content}]}
        if role == "system" or (role == "user" and unmarked_program):
            self.losses.add("messages of programs became the developer's")
            item = {**item, "role": "developer"}
        return item

    def _hold(self, step: SaidStep, items: list[Item]) -> None:
        """Keep the items that a later boundary refers to."""
        if self.origin.view:
            self._leading.extend(items)  # nothing else comes before a view's checkpoint
        if step.key in self.origin.quoted:
            self._quotes[step.key] = items
        if step.key in self.origin.kept:
            self._held[step.key] = []
        for held in self._held.values():
            held.extend(items)

    # ---- context and events

    def _context(self, model: str, at: float) -> None:
        """Yield a turn's context if the model changed."""
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
        self._line("turn_context", at, payload)

    def _reply_events(self, step: SaidStep, at: float) -> None:
        """Yield a reply's events and tokens; OpenAI's input includes cached tokens."""
        message = step.message
        if message.stop in ("aborted", "error", "length"):
            self.losses.add("marks of aborted, failed or cut off replies left out")
        if message.text.strip():
            self._event(at, "agent_message", message=message.text)
        usage = self.usage(step)
        if usage is not None and usage.total:
            self._event(at, "token_count", info=self._token_info(usage), rate_limits=None)

    def _token_info(self, usage: Usage) -> dict[str, Any]:
        if usage.cache_write:
            self.losses.add("tokens written to a cache count as input")
        last = [usage.input + usage.cache_write + usage.cache_read, usage.cache_read, usage.output]
        self._totals = [total + added for total, added in zip(self._totals, last, strict=True)]
        return {
            "total_token_usage": _tokens(self._totals),
            "last_token_usage": _tokens(last),
            "model_context_window": None,
        }

    def _event(self, at: float, kind: str, **fields: Any) -> None:
        self._line("event_msg", at, {"type": kind, **fields})

    def _line(self, kind: str, at: float, payload: Item) -> None:
        self.line({"timestamp": iso(at), "type": kind, "payload": payload})


def _is_over_limit(item: Item) -> bool:
    output = item.get("output")
    return isinstance(output, str) and len(output.encode("utf-8", "replace")) > RESULT_LIMIT


def _is_sealed(message: Message) -> bool:
    return bool(message.parts) and all(
        isinstance(part, Opaque) and part.kind in COMPACTIONS for part in message.parts
    )


def _tokens(counts: list[int]) -> dict[str, int]:
    input_tokens, cached_tokens, output_tokens = counts
    return {
        "input_tokens": input_tokens,
        "cached_input_tokens": cached_tokens,
        "output_tokens": output_tokens,
        "reasoning_output_tokens": 0,
        "total_tokens": input_tokens + output_tokens,
    }

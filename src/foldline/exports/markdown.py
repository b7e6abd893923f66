"""A session for people to read: speakers, calls with their results, and compactions."""

from __future__ import annotations

import re

from foldline.core.log.codec import pretty
from foldline.core.log.messages import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.edits import with_edits
from foldline.dialects.media import placeholder
from foldline.exports.base import ExportWriter, FoldStep, SaidStep, iso
from foldline.transcripts.markdown_text import escaped, read_mark

_FENCES = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)
_ROLES = {"user": "User", "assistant": "Assistant", "system": "System", "developer": "System"}


class MarkdownWriter(ExportWriter):
    """Write Markdown; results are shortened to the origin's `cap` characters, head and tail."""

    _names: dict[str, str]

    def begin(self) -> None:
        """Yield the title and the session's metadata."""
        self._names = {}
        origin = self.origin
        facts = [f"session `{origin.session}`", *([f"model {origin.model}"] if origin.model else [])]
        facts.append(f"{_day(origin.started)} to {_day(origin.ended)}, UTC")
        if origin.view:
            facts.append("folded: what the model is sent")
        self._write(f"# {_title(origin.title or origin.session)}\n\n{' · '.join(facts)}\n")

    def say(self, step: SaidStep) -> None:
        """Yield a message under a heading; results follow under the reply that called for them."""
        kept = with_edits(step.message, step.edits)
        if kept is None or not kept.parts:
            self.losses.add("empty messages left out")
            return
        self.count += 1
        if any(not isinstance(part, ToolResult) for part in kept.parts):
            self._write(f"\n## {self._heading(step, kept)}\n")
        for part in kept.parts:
            self._write(f"\n{self._part(part)}\n")

    def fold(self, step: FoldStep) -> None:
        """Yield a boundary: the summary between two rules."""
        before = f", {step.tokens_before:,} tokens before" if step.tokens_before else ""
        when = f" · {_day(step.at)}" if step.at is not None else ""
        self._write(f"\n---\n\n## Compacted{before}{when}\n\n{_fenced(step.words, 'markdown')}\n\n---\n")

    def _write(self, text: str) -> None:
        self.out(text.encode("utf-8", "replace"))

    def _heading(self, step: SaidStep, message: Message) -> str:
        name = _ROLES.get(message.role, "Tool")
        if message.injected:
            name = "Program, in the user's name"
        elif step.kind != "said":
            name = f"{name} ({step.kind}, added by the view)"
        pieces = [name]
        if message.role == "assistant" and message.model and message.model != self.origin.model:
            pieces.append(message.model)
        if step.at is not None:
            pieces.append(_day(step.at))
        if message.stop in ("aborted", "error", "length"):
            pieces.append({"aborted": "aborted", "error": "failed", "length": "cut off"}[message.stop])
        return " · ".join(pieces)

    def _part(self, part: Part) -> str:
        if isinstance(part, Text):
            return escaped(part.text.strip("\n"))
        if isinstance(part, Thinking):
            return "\n".join(f"> {line}".rstrip() for line in ("*thinking*", *part.text.strip().split("\n")))
        if isinstance(part, ToolCall):
            self._names[part.id] = part.name
            return f"**call** `{_label(part.name)}` ({_label(part.id)})\n\n{_arguments(part)}"
        if isinstance(part, ToolResult):
            name = self._names.pop(part.call_id, "")
            mark = " failed" if part.is_error else ""
            of = f"of `{_label(name)}` " if name else ""
            label = f"**result{mark}** {of}({_label(part.call_id)})"
            text = "\n".join(self._inner(inner) for inner in part.content)
            return f"{label}\n\n{_fenced(self._shortened(text)) if text.strip() else '*(nothing)*'}"
        if isinstance(part, Opaque):
            self.lose(part)
            return f"*({_one_line(part.kind)} left out)*"
        return _one_line(self._inner(part))

    def _inner(self, part: Text | Media | Opaque) -> str:
        if isinstance(part, Text):
            return part.text
        if isinstance(part, Media):
            self.lose(part)
            return placeholder(part)
        self.lose(part)
        return f"[{part.kind} left out]"

    def _shortened(self, text: str) -> str:
        cap = self.origin.cap
        if cap is None or len(text) <= cap:
            return text
        self.losses.add("results shortened")
        head = cap * 2 // 3
        return f"{text[:head]}\n[… {len(text) - cap:,} characters …]\n{text[len(text) - (cap - head) :]}"


def _arguments(call: ToolCall) -> str:
    if isinstance(call.arguments, str):
        return _fenced(call.arguments)
    return _fenced(pretty(call.arguments).decode(), "json")


def _fenced(text: str, language: str = "") -> str:
    """Put text into a fence longer than any inside it."""
    longest = max((len(match[1]) for match in _FENCES.finditer(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def _day(when: float) -> str:
    return iso(when)[:16].replace("T", " ")


def _title(text: str) -> str:
    """Return a title on one line, escaped if it would be read as the mark of a speaker."""
    line = _one_line(text)
    return f"\\{line}" if read_mark(f"# {line.lstrip(chr(92))}") else line


def _label(text: str) -> str:
    return _one_line(text).replace("`", "'")


def _one_line(text: str) -> str:
    return " ".join(text.split())

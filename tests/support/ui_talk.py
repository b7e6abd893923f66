"""Scripts of generated conversations, written as UI messages: a turn's calls and results in one message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

IMAGE = "data:image/png;base64,iVBORw0KGgo="
STEP = {"type": "step-start"}


class UIWriter:
    """Writes steps as UI messages; results go into the message that called, and the model speaks on in it."""

    def __init__(self) -> None:
        self.out: list[dict[str, Any]] = []
        self.open: list[dict[str, Any]] = []
        self.answered: list[dict[str, Any]] = []
        self.n = 0

    def step(self, kind: str, value: Any) -> None:
        getattr(self, kind.replace(" ", "_"))(value)

    def _say(self, role: str, *parts: dict[str, Any]) -> None:
        self.n += 1
        self.out.append({"id": f"m{self.n}", "role": role, "parts": list(parts)})

    def _speak(self, *parts: dict[str, Any]) -> None:
        """Go on in the assistant's own message where its calls were answered, or begin one."""
        self.n += 1
        last = self.out[-1] if self.out else {"role": ""}
        if last["role"] == "assistant" and not self.open and self.n % 3:
            last["parts"] += [*([STEP] if self.n % 2 else []), *parts]
        else:
            self.open = []
            self._say("assistant", STEP, *parts)

    def user(self, text: str) -> None:
        self.open = []
        self._say("user", {"type": "text", "text": text})

    def image(self, text: str) -> None:
        self.open = []
        shown = {"type": "file", "mediaType": "image/png", "url": IMAGE}
        self._say("user", *([{"type": "text", "text": text}] if text.strip() else []), shown)

    def carried(self, text: str) -> None:
        self.user(text)

    def server_compaction(self, text: str) -> None:
        """UI messages have no such part."""

    def system(self, text: str) -> None:
        self._say("system", {"type": "text", "text": text})

    def assistant(self, text: str) -> None:
        own = {"providerMetadata": {"anthropic": {"signature": "c2lnbmVk"}}} if len(text) % 3 == 0 else {}
        thought = {"type": "reasoning", "text": "Let me think about it.", **own}
        source = {"type": "source-url", "sourceId": "s", "url": "https://example.com"}
        self._speak(
            *([thought] if len(text) % 2 else []), {"type": "text", "text": text, "state": "done"}, source
        )

    def calls(self, several: Sequence[dict[str, Any]]) -> None:
        made: list[dict[str, Any]] = []
        for args in several:
            self.n += 1
            name = "bash" if "command" in args else "edit"
            dynamic = (
                {"type": "dynamic-tool", "toolName": name} if self.n % 4 == 0 else {"type": f"tool-{name}"}
            )
            made.append(
                {**dynamic, "toolCallId": f"call_{self.n}", "state": "input-available", "input": args}
            )
        self._speak(*made)
        self.open = made

    def same_id_twice(self, text: str) -> None:
        self.calls([{"path": text or "a"}, {"path": "b"}])
        for part in self.open:
            part["toolCallId"] = "call_same"

    def stored_calls(self, text: str) -> None:
        self.calls([{"path": "a"}, {"path": "b"}])
        self.results(text)

    def _answer(self, part: dict[str, Any], text: str) -> None:
        self.n += 1
        if self.n % 5 == 0:
            part.update(state="output-error", errorText=text)
        else:
            part.update(state="output-available", output={"content": text} if self.n % 5 == 1 else text)

    def results(self, text: str) -> None:
        for part in self.open:
            self._answer(part, text)
        self.answered += self.open
        self.open = []

    def one_result(self, text: str) -> None:
        if self.open:
            self.answered.append(self.open.pop())
            self._answer(self.answered[-1], text)

    def final_result(self, text: str) -> None:
        """A call has one output here: a later one takes its place."""
        if self.answered:
            part = self.answered.pop(0)
            del part["output" if "output" in part else "errorText"]
            self._answer(part, text)

    def cache_mark(self, _: None) -> None:
        """UI messages have no such marks."""

    def mixed(self, text: str) -> None:
        self.results(text)

    def half_mixed(self, text: str) -> None:
        self.one_result(text)

    def late_result(self, text: str) -> None:
        """A result cannot come late here: a call that is still streamed in, which no model is sent, stands for it."""
        part = {"type": "tool-edit", "toolCallId": f"call_{self.n}_late", "state": "input-streaming"}
        self._speak(part, {"type": "text", "text": text})

    def orphan_result(self, text: str) -> None:
        """A result has no message of its own here: a call that the provider ran itself stands for it."""
        part = {"type": "tool-search", "toolCallId": f"srv_{self.n}", "state": "output-available"}
        self._speak({**part, "input": {}, "output": text, "providerExecuted": True})

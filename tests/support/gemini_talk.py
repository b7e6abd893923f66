"""Scripts of generated conversations, written as Gemini's contents: calls with and without ids, signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SIGNATURE = "c2lnbmVk"
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
Call = dict[str, Any]  # a functionCall


class GeminiWriter:
    """Writes steps as contents; the model's words and its calls may be contents of their own, as in a stream."""

    def __init__(self) -> None:
        self.out: list[dict[str, Any]] = []
        self.open: list[Call] = []
        self.closed: list[Call] = []
        self.answered: list[Call] = []
        self.n = 0

    def step(self, kind: str, value: Any) -> None:
        getattr(self, kind.replace(" ", "_"))(value)

    def _say(self, role: str, *parts: dict[str, Any]) -> None:
        self.out.append({"role": role, "parts": list(parts)})

    def _close(self) -> None:
        self.closed += self.open
        self.open = []

    def user(self, text: str) -> None:
        self._close()
        self._say("user", {"text": text})

    carried = user

    def image(self, text: str) -> None:
        self._close()
        self._say("user", *([{"text": text}] if text.strip() else []), IMAGE)

    def system(self, text: str) -> None:
        """Contents have no such role."""

    server_compaction = cache_mark = system

    def assistant(self, text: str) -> None:
        self._close()
        thought = [{"text": "Let me think about it.", "thought": True}] if len(text) % 2 else []
        signed = {"thoughtSignature": SIGNATURE} if len(text) % 3 == 0 else {}
        self._say("model", *thought, {"text": text, **signed})

    def calls(self, several: Sequence[dict[str, Any]], ids: Sequence[str] | None = None) -> None:
        self._close()
        for place, args in enumerate(several):
            self.n += 1
            own = {"id": ids[place] if ids else f"call_{self.n}"} if ids or self.n % 3 == 0 else {}
            self.open.append({**own, "name": "bash" if "command" in args else "edit", "args": args})
        first, *others = self.open
        made = [{"functionCall": first, "thoughtSignature": SIGNATURE}]
        made += [{"functionCall": call} for call in others]
        if self.n % 4 == 0:  # each chunk of a stream is a content
            for part in made:
                self._say("model", part)
        else:
            self._say("model", *made)

    def same_id_twice(self, text: str) -> None:
        self.calls([{"path": text or "a"}, {"path": "b"}], ids=["call_same", "call_same"])

    def stored_calls(self, text: str) -> None:
        self.calls([{"path": "a"}, {"path": "b"}])
        self.results(text)

    def _answer(self, calls: Sequence[Call], *more: dict[str, Any], text: str) -> None:
        told = {"error": text} if len(text) % 4 == 3 else {"output": text}
        named = [{key: call[key] for key in ("id", "name") if key in call} for call in calls]
        self._say("user", *({"functionResponse": {**call, "response": told}} for call in named), *more)

    def results(self, text: str) -> None:
        if self.open:
            self._answer(self.open, text=text)
            self.answered += self.open
            self.open = []

    def one_result(self, text: str) -> None:
        if self.open:
            self.answered.append(self.open.pop(0))
            self._answer(self.answered[-1:], text=text)

    def late_result(self, text: str) -> None:
        if self.closed:
            self._answer([self.closed.pop(0)], text=text)

    def final_result(self, text: str) -> None:
        if self.answered:
            self._answer([self.answered.pop(0)], text=text)

    def orphan_result(self, text: str) -> None:
        self._answer([{"name": "nobody_called"}], text=text)

    def mixed(self, text: str) -> None:
        if self.open:
            self._answer(self.open, {"text": text or "and?"}, text=text)
            self.open = []

    def half_mixed(self, text: str) -> None:
        if self.open:
            self._answer([self.open.pop(0)], {"text": text or "wait"}, text=text)
            self._close()

"""Chat Completions messages, written piece by piece from messages of another form."""

from __future__ import annotations

from typing import Any, NoReturn

from foldline.core.log.messages import Media
from foldline.dialects.ids import made_id
from foldline.dialects.media import from_url, kind_of, placeholder, to_openai
from foldline.dialects.values import Losses
from foldline.errors import DialectError
from foldline.transcripts import payloads
from foldline.transcripts.lines import text_or


class Written:
    """The messages of one list, the place in it that each comes from, and what could not be carried.

    A message is written by its pieces and ended by `end`. A call without an id is given one, made with
    `salt`; a result without one answers the oldest open call of its tool.
    """

    def __init__(self, salt: str = "") -> None:
        self.payloads: list[dict[str, Any]] = []
        self.places: list[int] = []
        self.failed: set[int] = set()  # places in `payloads` of results that are errors
        self.losses = Losses()
        self._salt = salt
        self._place = 0
        self._form = ""
        self._made = 0
        self._open: list[tuple[str, str]] = []  # tool and id of calls that were given an id
        self._system: dict[str, Any] = {}
        self._content: list[dict[str, Any]] = []
        self._thoughts: list[str] = []
        self._calls: list[dict[str, Any]] = []

    def begin(self, place: int, form: str) -> None:
        """Begin with the message at a place of the list."""
        self._place, self._form = place, form

    def add(self, payload: dict[str, Any]) -> None:
        """Add a whole message."""
        self.payloads.append(payload)
        self.places.append(self._place)

    def text(self, words: Any) -> None:
        """Add text; raises DialectError for anything else."""
        if not isinstance(words, str):
            self.refuse("a text that is not text")
        if words:
            self._content.append({"type": "text", "text": words})

    def thought(self, words: Any, signature: Any = None) -> None:
        """Add a thought; its signature is lost."""
        if text_or(words):
            self._thoughts.append(words)
        if signature:
            self.losses.add("signatures of thoughts left out")

    def media(
        self, mime: Any, *, data: Any = None, url: Any = None, name: Any = None, kind: str = ""
    ) -> None:
        """Add an image, a document or a sound, given as base64 or by URL."""
        given = from_url(kind, text_or(url))
        mime = given.mime or text_or(mime)
        kind = kind or kind_of(mime)
        data = given.data or text_or(data) or None
        media = Media(kind, mime, data, given.url or None, text_or(name) or None)
        part = to_openai(media)
        if part is None:
            self.left_out(kind, placeholder(media))
        else:
            self._content.append(part)

    def left_out(self, what: str, words: str = "") -> None:
        """Count what Chat Completions cannot carry, and leave a word in its place."""
        self.losses.add(f"{what} left out")
        self.text(words or f"[{what} left out]")

    def call(self, call_id: Any, name: Any, arguments: Any, **more: Any) -> None:
        """Add a tool call."""
        tool, own = text_or(name), text_or(call_id)
        if not own:
            self._made += 1
            own = made_id(f"{self._salt} {self._place} {self._made}")
            self._open.append((tool, own))
        self._calls.append({**payloads.call(own, tool, arguments), **more})

    def result(self, call_id: Any, content: Any, *, name: Any = None, failed: bool = False) -> None:
        """Add a result: text, or a JSON value. A reply under way ends before it."""
        if self._calls:
            self.end("assistant")
        own = text_or(call_id) or self._answered(text_or(name))
        if failed:
            self.failed.add(len(self.payloads))
        self.add(payloads.answer(own, payloads.words_of(content)))

    def in_result(self, words: Any, what: str) -> str:
        """Return what a part of a result says; one that says nothing in words is counted, and named."""
        if isinstance(words, str):
            return words
        self.losses.add(f"{what or 'part'} of a result left out")
        return f"[{what or 'part'} left out]"

    def end(self, role: str, *, name: Any = None) -> None:
        """End the message: what it said, by role."""
        content, thoughts, calls = self._content, self._thoughts, self._calls
        self._content, self._thoughts, self._calls = [], [], []
        if role == "assistant":
            pictures = [part for part in content if part["type"] != "text"]
            if pictures:
                self.losses.add("media of replies left out", len(pictures))
            said = "\n\n".join(part["text"] for part in content if part["type"] == "text")
            if said or thoughts or calls:
                self.add(payloads.reply(said, "\n\n".join(thoughts), calls))
        elif content:
            alone = len(content) == 1 and content[0]["type"] == "text"
            payload = {"role": role, "content": content[0]["text"] if alone else content}
            if role == "system":
                if payload == self._system:  # told again with every request
                    return
                self._system = payload
            self.add({**payload, "name": name} if text_or(name) else payload)

    def refuse(self, what: str) -> NoReturn:
        """Raise DialectError for a message that cannot be read."""
        raise DialectError(
            f"this looks like {self._form}; {what} cannot be read: leave it out, or convert the list first",
            index=self._place,
        )

    def _answered(self, tool: str) -> str:
        """Return the id of the oldest open call of a tool, of any where no tool is named; "" for none."""
        place = next((at for at, (name, _) in enumerate(self._open) if name == tool or not tool), None)
        return "" if place is None else self._open.pop(place)[1]


def keys_of(part: dict[str, Any]) -> str:
    """Name the keys of a part, for an error."""
    return ", ".join(map(repr, list(part)[:4])) or "no keys"

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


class ChatListWriter:
    """Collects the messages of one list, the place of each in the list, and the losses.

    Add the pieces of a message, then call `end`. A call without an id gets one, made with `salt`; a result
    without an id answers the oldest open call of its tool.
    """

    def __init__(self, salt: str = "") -> None:
        self.payloads: list[dict[str, Any]] = []
        self.places: list[int] = []
        self.failed: set[int] = set()  # places in `payloads` of results that are errors
        self.losses = Losses()
        self._losses_at: dict[int, Losses] = {}  # those of the message at each place
        self._salt = salt
        self._place = 0
        self._form = ""
        self._made = 0
        self._open: list[tuple[str, str]] = []  # tool and id of calls that got an id here
        self._system: dict[str, Any] = {}
        self._content: list[dict[str, Any]] = []
        self._thoughts: list[str] = []
        self._calls: list[dict[str, Any]] = []

    def begin(self, place: int, form: str) -> None:
        """Begin the message at a place of the list."""
        self._place, self._form = place, form

    def lose(self, kind: str, count: int = 1) -> None:
        """Count what Chat Completions cannot represent of the message."""
        self.losses.add(kind, count)
        self._losses_at.setdefault(self._place, Losses()).add(kind, count)

    def take_losses(self, place: int) -> list[str]:
        """Return the losses of the messages up to a place that were not taken yet."""
        places = [at for at in self._losses_at if at <= place]
        return [line for at in places for line in self._losses_at.pop(at).lines()]

    def add(self, payload: dict[str, Any]) -> None:
        """Add a whole message."""
        self.payloads.append(payload)
        self.places.append(self._place)

    def text(self, text: Any) -> None:
        """Add text; raises DialectError for any other value."""
        if not isinstance(text, str):
            self.refuse("a text that is not a string")
        if text:
            self._content.append({"type": "text", "text": text})

    def thought(self, text: Any, signature: Any = None) -> None:
        """Add a thought; its signature is lost."""
        if text_or(text):
            self._thoughts.append(text)
        if signature:
            self.lose("signatures of thoughts left out")

    def media(
        self, mime: Any, *, data: Any = None, url: Any = None, name: Any = None, kind: str = ""
    ) -> None:
        """Add an image, a document or a sound, given as base64 or by URL."""
        link = from_url(kind, text_or(url))
        mime = link.mime or text_or(mime)
        kind = kind or kind_of(mime)
        data = link.data or text_or(data) or None
        media = Media(kind, mime, data, link.url or None, text_or(name) or None)
        part = to_openai(media)
        if part is None:
            self.leave_out(kind, placeholder(media))
        else:
            self._content.append(part)

    def leave_out(self, kind: str, placeholder_text: str = "") -> None:
        """Count content that Chat Completions cannot represent, and add a placeholder."""
        self.lose(f"{kind} left out")
        self.text(placeholder_text or f"[{kind} left out]")

    def call(self, call_id: Any, name: Any, arguments: Any, **fields: Any) -> None:
        """Add a tool call."""
        tool, own_id = text_or(name), text_or(call_id)
        if not own_id:
            self._made += 1
            own_id = made_id(f"{self._salt} {self._place} {self._made}")
            self._open.append((tool, own_id))
        self._calls.append({**payloads.call(own_id, tool, arguments), **fields})

    def result(self, call_id: Any, content: Any, *, name: Any = None, failed: bool = False) -> None:
        """Add a result: text, or a JSON value. End an open reply before it."""
        if self._calls:
            self.end("assistant")
        answered_id = text_or(call_id) or self._open_call(text_or(name))
        if failed:
            self.failed.add(len(self.payloads))
        self.add(payloads.answer(answered_id, payloads.as_text(content)))

    def in_result(self, text: Any, kind: str) -> str:
        """Return the text of a part of a result; without text, count a loss and return a placeholder."""
        if isinstance(text, str):
            return text
        self.lose(f"{kind or 'part'} of a result left out")
        return f"[{kind or 'part'} left out]"

    def end(self, role: str, *, name: Any = None) -> None:
        """End the message, with its role."""
        content, thoughts, calls = self._content, self._thoughts, self._calls
        self._content, self._thoughts, self._calls = [], [], []
        if role == "assistant":
            media = [part for part in content if part["type"] != "text"]
            if media:
                self.lose("media of replies left out", len(media))
            text = "\n\n".join(part["text"] for part in content if part["type"] == "text")
            if text or thoughts or calls:
                self.add(payloads.reply(text, "\n\n".join(thoughts), calls))
        elif content:
            payload: dict[str, Any] = {"role": role, "content": payloads.content_of(content)}
            if role == "system":
                if payload == self._system:  # repeated with every request
                    return
                self._system = payload
            self.add({**payload, "name": name} if text_or(name) else payload)

    def refuse(self, content: str) -> NoReturn:
        """Raise DialectError for a message that cannot be read."""
        raise DialectError(
            f"this looks like {self._form}, but {content} cannot be read: remove it or convert the list",
            index=self._place,
        )

    def _open_call(self, tool: str) -> str:
        """Return the id of the oldest open call of a tool (of any tool for ""); "" if there is none."""
        place = next((at for at, (name, _) in enumerate(self._open) if name == tool or not tool), None)
        return "" if place is None else self._open.pop(place)[1]


def keys_of(part: dict[str, Any]) -> str:
    """List the keys of a part, for an error."""
    return ", ".join(map(repr, list(part)[:4])) or "no keys"

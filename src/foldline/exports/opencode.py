"""OpenCode's export document for `opencode import`: `{info, messages: [{info, parts}]}`.

Sources: recorded exports of version 1.4.3, and OpenCode's source for ids, which rise in message order.
"""

from __future__ import annotations

from typing import Any

from foldline.core.cut.notes import LATE
from foldline.core.log.codec import encode_utf8
from foldline.core.log.log import digest
from foldline.core.log.messages import Media, Message, Opaque, Part, Text, Thinking, ToolCall, Usage
from foldline.dialects.dialect import lost_fields
from foldline.dialects.media import placeholder
from foldline.dialects.payload import fields_of, items_of, parse
from foldline.dialects.values import OPENAI_CHAT
from foldline.exports.base import FoldStep, Origin, Out, SaidStep, is_readable, provider_of
from foldline.exports.pieces import NOT_AN_OBJECT, Block, ExportPiece, PieceWriter

VERSION = "1.4.3"  # of OpenCode, which writes this format
AGENT = "build"  # OpenCode's default agent
_STOPS = {"end": "stop", "tools": "tool-calls", "length": "length"}
_DETAILS = ("reasoning_details", "reasoning_opaque")
_SEALS = {"copilot": "reasoningOpaque", "anthropic": "signature"}
_BITS = (1 << 48) - 1


class OpenCodeWriter(PieceWriter):
    """Write one document, message by message; a reply is held until its results are in."""

    def __init__(self, origin: Origin, session: str, out: Out) -> None:
        super().__init__(origin, session, out)
        self._last_id = 0
        self._now = 0.0
        self._id = self._new_id("ses", origin.started, session)
        self._reply: tuple[Block, list[Block]] | None = None  # info and parts
        self._calls: dict[str, Block] = {}  # of the reply held back
        self._prompt: str | None = None  # id of the newest user message
        self._first = True

    def begin(self) -> None:
        """Yield the session."""
        origin = self.origin
        info = {
            "id": self._id,
            "slug": f"foldline-{self.session[:8]}",
            "projectID": "global",
            "directory": origin.cwd,
            "title": origin.title or origin.session,
            "version": VERSION,
            "time": {"created": _ms(origin.started), "updated": _ms(origin.ended)},
        }
        self.out(b'{"info":' + encode_utf8(info) + b',\n"messages":[')

    def end(self) -> None:
        """Yield the reply held back and close the document."""
        self._end_reply()
        self.out(b"\n]}\n")

    def resume(self) -> tuple[str, str]:
        """Return the file name, and OpenCode's commands."""
        name = f"{self._id}.json"
        return name, f"opencode import {name} && opencode --session {self._id}"

    def fold(self, step: FoldStep) -> None:
        """Yield a compaction: the message that requests it, and the summary as reply."""
        self._end_reply()
        at = self._rising(self.boundary_time(step))
        request = self._user_info(step.key, at)
        tail = self.place(step.first_kept)
        kept = {} if tail is None else {"tail_start_id": tail}
        part = {"type": "compaction", "auto": step.automatic, **kept}
        self._message(request, [self._part(request, part, at)])
        info = self._reply_info(f"{step.key}:summary", at, self.origin.model or "unknown", None)
        info |= {"mode": "compaction", "agent": "compaction", "summary": True, "finish": "stop"}
        info["time"]["completed"] = _ms(at)
        self._message(info, [self._part(info, {"type": "text", "text": step.words}, at)])

    # ---- the user's side

    def user(self, piece: ExportPiece) -> None:
        """Yield a message of the user, or of a program in the user's name."""
        step = piece.step
        self._user(step.key, piece.content, piece.at, synthetic=step.message.injected)

    def note(self, key: str, text: str, at: float) -> None:
        """Yield a note of a program."""
        self._user(key, [Text(text)], at, synthetic=True)

    def _user(self, key: str, content: list[Part], at: float, *, synthetic: bool) -> None:
        self._end_reply()
        at = self._rising(at)
        info = self._user_info(key, at)
        parts = [
            self._part(info, block, at)
            for part in content
            if (block := self._block(part, synthetic=synthetic))
        ]
        if not parts:
            self.losses.add("empty messages left out")
            return
        if synthetic and any(part["type"] == "file" for part in parts):
            self.losses.add("media of programs count as the user's")
        self._wrote(info)
        self._message(info, parts)

    def _user_info(self, key: str, at: float) -> Block:
        self._prompt = self._new_id("msg", at, key)
        model = self.origin.model or "unknown"
        return {
            "id": self._prompt,
            "sessionID": self._id,
            "role": "user",
            "time": {"created": _ms(at)},
            "agent": AGENT,
            "model": {"providerID": provider_of(model, None)[0], "modelID": model},
        }

    def _block(self, part: Part, *, synthetic: bool) -> Block | None:
        """Convert a part of the user or a program: to text, or a file for the model."""
        if isinstance(part, Text):
            text = {"type": "text", "text": part.text} if part.text.strip() else None
            return {**text, "synthetic": True} if text and synthetic else text
        if isinstance(part, Media) and is_readable(part) and (url := _url(part)):
            fields = {"mime": part.mime or "image/png", "filename": part.name or part.kind}
            return {"type": "file", **fields, "url": url}
        if isinstance(part, Media):
            self.lose(part)
            return {"type": "text", "text": placeholder(part), "synthetic": True}
        self.lose(part)
        return None

    # ---- the model's side

    def pieces(self, step: SaidStep) -> tuple[list[Any], list[Any]]:
        """Return the parts of a message; encrypted thoughts are not a loss."""
        native = step.message.native
        if native is not None and native.dialect != OPENAI_CHAT:
            lost_fields(native, self.losses)
        return self.parts(step)

    def reply(self, piece: ExportPiece) -> None:
        """Begin a reply, which is written when its results are in."""
        self._end_reply()
        step, at = piece.step, self._rising(piece.at)
        message = step.message
        model = self.model(message, "unknown")
        info = self._reply_info(step.key, at, model, self.usage(step), message)
        info["finish"] = _STOPS.get(message.stop or "", "tool-calls" if message.calls else "stop")
        if message.stop == "aborted":
            info["error"] = {"name": "MessageAbortedError", "data": {"message": "aborted"}}
        elif message.stop == "error":
            self.losses.add("marks of failed replies left out (OpenCode drops such replies)")
        parts = [self._part(info, {"type": "step-start"}, at)]
        sealed = _sealed(message)
        blocks = [
            block for part in piece.content if (block := self._reply_block(part, at, sealed)) is not None
        ]
        sealed_only = [_reasoning("", at, metadata) for metadata in sealed]
        parts += [self._part(info, block, at) for block in (*sealed_only, *blocks)]
        finish = {"type": "step-finish", "reason": info["finish"], "cost": 0, "tokens": info["tokens"]}
        self._reply = info, [*parts, self._part(info, finish, at)]
        self._wrote(info)

    def _reply_info(
        self, key: str, at: float, model: str, usage: Usage | None, message: Message | None = None
    ) -> Block:
        if usage is not None:
            self.losses.add("costs of replies are zero (a log holds none)")
        counted = usage or Usage()
        return {
            "id": self._new_id("msg", at, key),
            "sessionID": self._id,
            "role": "assistant",
            "time": {"created": _ms(at), "completed": _ms(at)},
            "parentID": self._prompt or self._id,
            "modelID": model,
            "providerID": provider_of(model, message.native if message else None)[0],
            "mode": AGENT,
            "agent": AGENT,
            "path": {"cwd": self.origin.cwd, "root": self.origin.cwd},
            "cost": 0,
            "tokens": {
                "total": counted.total,
                "input": counted.input,
                "output": counted.output,
                "reasoning": 0,
                "cache": {"read": counted.cache_read, "write": counted.cache_write},
            },
        }

    def _reply_block(self, part: Part, at: float, sealed: list[Block]) -> Block | None:
        """Convert a part of a reply; each unsigned thought takes one of the `sealed` values."""
        if isinstance(part, Text):
            when = {"start": _ms(at), "end": _ms(at)}
            return {"type": "text", "text": part.text, "time": when} if part.text.strip() else None
        if isinstance(part, Thinking):
            signature = {"anthropic": {"signature": part.signature}} if part.signature else None
            return _reasoning(part.text, at, signature or (sealed.pop(0) if sealed else {}))
        if isinstance(part, ToolCall):
            arguments = part.arguments
            if isinstance(arguments, str):
                self.losses.add(NOT_AN_OBJECT)
                own = "patchText" if part.name == "apply_patch" else "input"  # as in OpenCode's own tool
                arguments = {own: arguments}
            state: Block = {"status": "pending", "input": arguments, "raw": ""}
            block = {"type": "tool", "callID": part.id, "tool": part.name, "state": state}
            self._calls[part.id] = block
            return block
        if isinstance(part, Opaque) and part.kind in _DETAILS:
            return None  # these are the sealed values
        self.lose(part)
        return None

    def result(self, piece: ExportPiece) -> None:
        """Put a result into its call; a late one is quoted in a note."""
        result, at = piece.content, piece.at
        block = self._calls.pop(result.call_id, None)
        if block is None:
            self.losses.add("late results became notes")
            text = f"{LATE.format(result.call_id)}\n{result.text}"
            self.note(piece.step.key, text, at)
            return
        self.wrote(str(block["messageID"]))
        state: Block = {"input": block["state"]["input"], "time": {"start": _ms(at), "end": _ms(at)}}
        if result.is_error:
            state |= {"status": "error", "error": result.text}
        else:
            state |= {"status": "completed", "output": result.text, "title": "", "metadata": {}}
        attachments = [self._attachment(part, block) for part in result.content if not isinstance(part, Text)]
        if files := [file for file in attachments if file is not None]:
            state["attachments"] = files
        block["state"] = state
        self.count += 1

    def _attachment(self, part: Part, block: Block) -> Block | None:
        file = self._block(part, synthetic=True)
        if file is None or file["type"] != "file":
            return None
        ids = {"id": self._new_id("prt", self.origin.started, f"{block['id']}:shown"), "sessionID": self._id}
        return {**ids, "messageID": block["messageID"], **file}

    def _end_reply(self) -> None:
        reply, self._reply, self._calls = self._reply, None, {}
        if reply is not None:
            self._message(*reply)

    # ---- pieces

    def _wrote(self, info: Block) -> None:
        self.wrote(str(info["id"]))
        self.count += 1

    def _message(self, info: Block, parts: list[Block]) -> None:
        comma, self._first = b"\n" if self._first else b",\n", False
        self.out(comma + encode_utf8({"info": info, "parts": parts}))

    def _part(self, info: Block, block: Block, at: float) -> Block:
        """Add a part's ids to `block` in place, so that a result can be put into its call later."""
        part_id = self._new_id("prt", at, f"{info['id']}:{self._last_id}")
        block |= {"id": part_id, "sessionID": self._id, "messageID": info["id"]}
        return block

    def _rising(self, at: float) -> float:
        """Return a time that is never before the last one: OpenCode orders messages by time."""
        if at < self._now:
            self.losses.add("times earlier than the previous message's moved up to it")
        self._now = max(self._now, at)
        return self._now

    def _new_id(self, prefix: str, at: float, key: str) -> str:
        """Return an id as OpenCode makes it, from the time and a counter; later ones are greater.

        Ids are unique to this export: OpenCode keeps existing rows, even those of another session.
        """
        self._last_id = max(self._last_id + 1, (_ms(at) * 0x1000) & _BITS)
        return f"{prefix}_{self._last_id & _BITS:012x}{digest(f'{self.session}:{key}'.encode())[:14]}"


def _ms(when: float) -> int:
    return round(when * 1000)


def _url(media: Media) -> str | None:
    if media.data is not None:
        return f"data:{media.mime or 'image/png'};base64,{media.data}"
    return media.url


def _reasoning(text: str, at: float, metadata: Block) -> Block:
    block = {"type": "reasoning", "text": text, "time": {"start": _ms(at), "end": _ms(at)}}
    return {**block, "metadata": metadata} if metadata else block


def _sealed(message: Message) -> list[Block]:
    """Return a reply's encrypted thoughts by provider, as OpenCode keeps them."""
    if message.native is None or message.native.dialect != OPENAI_CHAT:
        return []
    body = fields_of(parse(message.native.raw))
    sealed: list[Block] = []
    for detail in [fields_of(detail) for key in _DETAILS for detail in items_of(body.get(key))]:
        provider = str(detail.get("provider") or "openai")
        item = {"itemId": detail["id"]} if detail.get("id") else {}
        if data := detail.get("data"):
            sealed.append({provider: {_SEALS.get(provider, "reasoningEncryptedContent"): data, **item}})
    return sealed

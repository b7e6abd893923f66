"""Messages of Amazon Bedrock's Converse API, as used by boto3 and Strands Agents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import msgspec

from foldline.core.log.messages import Message, Opaque, Thinking
from foldline.core.measure.media import media_of
from foldline.dialects.bedrock_converse.blobs import with_bytes, with_kept
from foldline.dialects.bedrock_converse.blocks import BLOCKS, REDACTED, ROLES, documents
from foldline.dialects.bedrock_converse.form import OWN, check_message, kind_of, text_block
from foldline.dialects.block_dialect import BlockDialect
from foldline.dialects.dialect import Replace, replied
from foldline.dialects.edits import Rendering
from foldline.dialects.payload import Fields, fields_of, items_of, peek, read, read_usage
from foldline.dialects.values import BEDROCK_CONVERSE, Problem, Rendered, reporter
from foldline.errors import DialectError

_STOPS = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "error",
    "content_filtered": "error",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}


class BedrockConverseDialect(BlockDialect):
    """The dialect `bedrock-converse`.

    Bytes are returned as bytes, base64 as base64; converted media have bytes, as boto3 expects. Cache points
    are not parts: they stay in their place. Requests merge consecutive messages of one role.
    """

    name = BEDROCK_CONVERSE
    message_check = staticmethod(check_message)
    form = BLOCKS
    templated = False

    def decode(self, payload: Any, *, index: int | None = None) -> Message:
        """Read one native message; the message keeps it as received, with bytes in the stored form."""
        return super().decode(with_kept(payload), index=index)

    def decode_reply(self, reply: Any) -> Message:
        """Read a complete response: its message, usage and stop reason.

        A bare message is read like in `decode`. Raises DialectError for a response without a message.
        """
        body, _ = read(reply)
        if "output" not in body:
            return self.decode(reply)
        native = peek(peek(reply, "output"), "message") or fields_of(body["output"]).get("message")
        if not isinstance(native, dict):
            raise DialectError("the reply has no output.message")
        usage = read_usage(
            body.get("usage"),
            prompt="inputTokens",
            output="outputTokens",
            reads="cacheReadInputTokens",
            writes="cacheWriteInputTokens",
            disjoint=True,
        )
        return replied(self.decode(native), usage, None, _STOPS.get(str(body.get("stopReason"))))

    def recognises(self, payload: Any) -> bool:
        """Return whether a message is valid in this dialect only: its blocks have keys, but no type."""
        role, blocks = peek(payload, "role"), items_of(peek(payload, "content"))
        fields = [fields_of(block) for block in blocks] if isinstance(role, str) and role in ROLES else []
        known = any(not {"text", *OWN}.isdisjoint(block) for block in fields)
        return known and all(block and "type" not in block for block in fields)

    def is_bare_text(self, payload: Any) -> bool:
        """Return whether a message contains only texts."""
        return all(fields_of(block).keys() == {"text"} for block in items_of(peek(payload, "content")))

    def is_reply(self, payload: Any) -> bool:
        """Return whether this is a response of Converse."""
        return peek(peek(payload, "output"), "message") is not None

    def adopt(self, payload: Any, salt: str) -> Any:
        """Return a message with its plain text as a block, or its bytes in the stored form."""
        del salt
        if not isinstance(payload, dict):
            return payload
        body = cast("Fields", payload)
        content = body.get("content")
        if isinstance(content, str) and str(body.get("role")) in ROLES:
            return {**body, "content": [text_block(content)]}
        return with_kept(body)

    def reply_messages(self, body: Fields) -> tuple[list[Any], Replace]:
        """Return the message of a response, and a function that replaces it."""
        output = fields_of(body.get("output"))
        if "message" not in output:
            return super().reply_messages(body)
        return [output["message"]], lambda new: {**body, "output": {**output, "message": new[0]}}

    def is_open(self, message: Message) -> bool:
        """Return whether a message has documents, whose names must be unique, or ends in thinking."""
        last = message.parts[-1] if message.parts else None
        ends_in_thinking = isinstance(last, Thinking) or (isinstance(last, Opaque) and last.kind == REDACTED)
        return ends_in_thinking or any(media.kind == "document" for media in media_of(message))

    def text_message(self, role: str, text: str) -> Fields:
        """Return a message with a single text."""
        return {"role": role, "content": [text_block(text)]}

    def text_part(self, role: str, text: str) -> Fields:
        """Return a text as a block."""
        del role
        return text_block(text)

    def render(self, items: Rendering, *, whole: bool = False) -> Rendered:
        """Return native messages, see `Dialect.render`, with Python bytes."""
        rendered = super().render(items, whole=whole)
        messages, system = with_bytes(rendered.messages), with_bytes(rendered.system)
        return msgspec.structs.replace(rendered, messages=messages, system=system)

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        """Check turns, cache points, and the names and texts of documents."""
        super()._check(problems, bodies, last)
        taken: set[str] = set()
        for index, body in bodies:
            report = reporter(problems, index)
            blocks = items_of(body.get("content"))
            kinds = set(map(kind_of, blocks))
            if "document" in kinds and "text" not in kinds:
                report("document-text", "a message with a document must have a text")
            for before, block in pairwise(blocks):
                if BLOCKS.is_silent(block) and BLOCKS.is_thought(before):
                    report("cache-after-thinking", "a cachePoint must not follow reasoningContent")
            for name in [document.get("name") for block in blocks for document in documents(block)]:
                if isinstance(name, str) and name in taken:
                    report("document-duplicate", f"two documents have the name {name!r}")
                taken.add(str(name))

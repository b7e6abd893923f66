"""Messages of Amazon Bedrock's Converse API, as boto3 takes them and Strands Agents keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import msgspec

from foldline.core.log.messages import Message, Opaque, Thinking
from foldline.core.measure.media import media_of
from foldline.dialects.bedrock_converse.blobs import with_bytes, with_kept
from foldline.dialects.bedrock_converse.blocks import BLOCKS, REDACTED, ROLES, documents
from foldline.dialects.bedrock_converse.form import OWN, kind_of, look, text_block
from foldline.dialects.block_dialect import BlockDialect
from foldline.dialects.dialect import Put, replied
from foldline.dialects.edits import Rendering
from foldline.dialects.payload import Fields, fields_of, items_of, peek, read, read_usage
from foldline.dialects.values import BEDROCK_CONVERSE, Problem, Rendered
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

    Bytes come back as bytes, base64 as base64; what is made here has bytes, which boto3 takes. Cache points
    are not parts: they stay where they were. Messages of one role in a row are one message in a request.
    """

    name = BEDROCK_CONVERSE
    looked = staticmethod(look)
    form = BLOCKS
    templated = False

    def decode(self, payload: Any, *, index: int | None = None) -> Message:
        """Read one native message; it is kept as received beside its parts, its bytes in base64."""
        return super().decode(with_kept(payload), index=index)

    def decode_reply(self, reply: Any) -> Message:
        """Read a whole response of Converse: its message, usage, why it stopped.

        A bare message is read as by `decode`. Raises DialectError for a response without a message.
        """
        body, _ = read(reply)
        if "output" not in body:
            return self.decode(reply)
        native = peek(peek(reply, "output"), "message") or fields_of(body["output"]).get("message")
        if not isinstance(native, dict):
            raise DialectError("the reply has no output.message")
        usage = read_usage(
            body.get("usage"),
            given="inputTokens",
            output="outputTokens",
            cached="cacheReadInputTokens",
            written="cacheWriteInputTokens",
            apart=True,
        )
        return replied(self.decode(native), usage, None, _STOPS.get(str(body.get("stopReason"))))

    def recognises(self, payload: Any) -> bool:
        """Return whether a message can only be in this dialect: no block has a type, one a known key."""
        role, blocks = peek(payload, "role"), items_of(peek(payload, "content"))
        fields = [fields_of(block) for block in blocks] if isinstance(role, str) and role in ROLES else []
        known = any(not {"text", *OWN}.isdisjoint(block) for block in fields)
        return known and all(block and "type" not in block for block in fields)

    def is_bare_text(self, payload: Any) -> bool:
        """Return whether a message holds nothing but texts."""
        return all(fields_of(block).keys() == {"text"} for block in items_of(peek(payload, "content")))

    def is_reply(self, payload: Any) -> bool:
        """Return whether this is a response of Converse."""
        return peek(peek(payload, "output"), "message") is not None

    def adopt(self, payload: Any, salt: str) -> Any:
        """Return a message whose plain text is a block, and whose bytes can be kept; else the same object."""
        del salt
        if not isinstance(payload, dict):
            return payload
        body = cast("Fields", payload)
        content = body.get("content")
        if isinstance(content, str) and str(body.get("role")) in ROLES:
            return {**body, "content": [text_block(content)]}
        return with_kept(body)

    def in_reply(self, body: Fields) -> tuple[list[Any], Put]:
        """Return the message of a response, and what puts another in its place."""
        output = fields_of(body.get("output"))
        if "message" not in output:
            return super().in_reply(body)
        return [output["message"]], lambda new: {**body, "output": {**output, "message": new[0]}}

    def is_open(self, message: Message) -> bool:
        """Return whether a message has documents, whose names must be their own, or ends in thinking."""
        last = message.parts[-1] if message.parts else None
        thinks = isinstance(last, Thinking) or (isinstance(last, Opaque) and last.kind == REDACTED)
        return thinks or any(media.kind == "document" for media in media_of(message))

    def said(self, role: str, text: str) -> Fields:
        """Return a message of one text."""
        return {"role": role, "content": [text_block(text)]}

    def text_part(self, role: str, text: str) -> Fields:
        """Return a text as a block."""
        del role
        return text_block(text)

    def render(self, items: Rendering, *, whole: bool = False) -> Rendered:
        """Write messages as native ones, see `Dialect.render`; their bytes as boto3 takes them."""
        done = super().render(items, whole=whole)
        messages, system = with_bytes(done.messages), with_bytes(done.system)
        return msgspec.structs.replace(done, messages=messages, system=system)

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        """Check turns, the names of documents, and what must be beside them."""
        super()._check(problems, bodies, last)
        taken: set[str] = set()
        for index, body in bodies:
            blocks = items_of(body.get("content"))
            kinds = set(map(kind_of, blocks))
            if "document" in kinds and "text" not in kinds:
                problems.append(Problem(index, "document-text", "a message with a document must have a text"))
            for before, block in pairwise(blocks):
                if BLOCKS.is_silent(block) and BLOCKS.is_thought(before):
                    problems.append(
                        Problem(index, "cache-after-thinking", "a cachePoint follows reasoningContent")
                    )
            for name in [held.get("name") for block in blocks for held in documents(block)]:
                if isinstance(name, str) and name in taken:
                    problems.append(
                        Problem(index, "document-duplicate", f"two documents are called {name!r}")
                    )
                taken.add(str(name))

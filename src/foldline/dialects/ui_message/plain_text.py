"""Turn plain text messages (a role and a text, without id and parts) into UI messages."""

from __future__ import annotations

import hashlib
from typing import Any, cast

from foldline.core.log import codec
from foldline.dialects.payload import peek
from foldline.dialects.ui_message.read import ROLES, V4_KEYS


def to_ui_message(payload: Any, salt: str) -> Any:
    """Return a plain text message as a UI message, everything else unchanged.

    Its id is made from its text and `salt`, which tells equal texts apart.
    """
    if not isinstance(payload, dict) or any(key in payload for key in ("parts", "id", *V4_KEYS)):
        return cast("Any", payload)
    body = cast("dict[str, Any]", payload)
    role, content = body.get("role"), body.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(role, str) or role not in ROLES or not isinstance(blocks, list) or not blocks:
        return body
    for block in cast("list[Any]", blocks):
        if peek(block, "type") != "text" or not isinstance(peek(block, "text"), str):
            return body
    words = [cast("dict[str, Any]", block)["text"] for block in cast("list[Any]", blocks)]
    made_of = codec.encode([salt, role, words])
    digest = hashlib.blake2s(made_of, digest_size=8).hexdigest()
    parts = [{"type": "text", "text": text} for text in words]
    kept = {key: value for key, value in body.items() if key != "content"}
    return {"id": f"msg_{digest}", **kept, "parts": parts}

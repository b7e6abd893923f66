"""The chunks that the readers of AI SDK 5, 6 and 7 take, as strictly as all of them together.

A chunk type that one of them lacks is refused, and so is a field that the first release of 5 lacks: it knew no
others. `tests/e2e/test_use_chat.py` asks the real packages.
"""

from __future__ import annotations

import json
from typing import Any

ANY = object
_PART = {"id": str}
FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # type -> fields needed, fields allowed
    "start": ({}, {"messageId": str, "messageMetadata": ANY}),
    "start-step": ({}, {}),
    "text-start": (_PART, {"providerMetadata": dict}),
    "text-delta": ({**_PART, "delta": str}, {"providerMetadata": dict}),
    "text-end": (_PART, {"providerMetadata": dict}),
    "reasoning-start": (_PART, {"providerMetadata": dict}),
    "reasoning-delta": ({**_PART, "delta": str}, {"providerMetadata": dict}),
    "reasoning-end": (_PART, {"providerMetadata": dict}),
    "tool-input-start": ({"toolCallId": str, "toolName": str}, {"dynamic": bool, "providerExecuted": bool}),
    "tool-input-delta": ({"toolCallId": str, "inputTextDelta": str}, {}),
    "tool-input-available": (
        {"toolCallId": str, "toolName": str, "input": ANY},
        {"dynamic": bool, "providerExecuted": bool, "providerMetadata": dict},
    ),
    "finish-step": ({}, {}),
    "finish": ({}, {"messageMetadata": ANY}),
    "message-metadata": ({"messageMetadata": ANY}, {}),
    "abort": ({}, {}),
    "error": ({"errorText": str}, {}),
}
DATA = ({"data": ANY}, {"id": str, "transient": bool})


def chunks_of(text: str) -> list[dict[str, Any]]:
    """Read a stream of events to its end, and check every chunk and their order."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    check(chunks)
    return chunks


def check(chunks: list[dict[str, Any]]) -> None:
    """Check that chunks are of the protocol, and come in its order."""
    assert chunks[0]["type"] == "start"
    ended = [place for place, one in enumerate(chunks) if one["type"] in ("finish", "error")]
    assert ended
    assert chunks[-1]["type"] in ("finish", "error")
    opened: set[tuple[str, str]] = set()
    for chunk in chunks:
        _check_fields(chunk)
        kind, _, step = chunk["type"].rpartition("-")
        if kind in ("text", "reasoning"):
            part = kind, chunk["id"]
            assert (part in opened) == (step != "start"), chunk
            opened = opened ^ {part} if step != "delta" else opened
    assert not opened or chunks[-1]["type"] == "error"


def _check_fields(chunk: dict[str, Any]) -> None:
    kind = chunk["type"]
    assert kind in FIELDS or kind.startswith("data-"), f"no reader takes {kind!r}"
    needed, allowed = DATA if kind.startswith("data-") else FIELDS[kind]
    for name, of in needed.items():
        assert isinstance(chunk[name], of), chunk
    for name in set(chunk) - {"type", *needed}:
        assert isinstance(chunk[name], allowed[name]), chunk

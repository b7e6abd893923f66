"""Small lists of Converse messages for tests."""

from __future__ import annotations

from typing import Any

Block = dict[str, Any]


def user(*blocks: str | Block) -> dict[str, Any]:
    return {"role": "user", "content": [_block(block) for block in blocks]}


def reply(*blocks: str | Block) -> dict[str, Any]:
    return {"role": "assistant", "content": [_block(block) for block in blocks]}


def _block(block: str | Block) -> Block:
    return {"text": block} if isinstance(block, str) else block


def use(call_id: Any = "t1", name: Any = "read", arguments: Any = None) -> Block:
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": {} if arguments is None else arguments}}


def result(call_id: Any = "t1", *blocks: str | Block, **more: Any) -> Block:
    return {"toolResult": {"toolUseId": call_id, "content": [_block(one) for one in blocks], **more}}


def reasoning(text: str = "hm", signature: str | None = "sig") -> Block:
    signed = {"signature": signature} if signature is not None else {}
    return {"reasoningContent": {"reasoningText": {"text": text, **signed}}}


def image(data: Any = b"\x89PNG", form: str = "png") -> Block:
    return {"image": {"format": form, "source": {"bytes": data}}}


def document(name: str = "notes", data: Any = b"Use tabs.", form: str = "txt") -> Block:
    return {"document": {"format": form, "name": name, "source": {"bytes": data}}}


POINT = {"cachePoint": {"type": "default"}}
ALL = [
    user(
        "Fix a.py",
        {"guardContent": {"text": {"text": "Never push.", "qualifiers": ["query"]}}},
        image(),
        image("iVBORw0KGgo="),
        document(),
        {"document": {"name": "cited", "source": {"text": "All of it."}, "citations": {"enabled": True}}},
        {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://bucket/a.mp4", "bucketOwner": "123456789012"}}}},
        POINT,
    ),
    reply(
        reasoning(),
        {"reasoningContent": {"redactedContent": b"sealed"}},
        {"citationsContent": {"content": [{"text": "As you said."}], "citations": [{"title": "cited"}]}},
        use("t.1:a", "read", {"path": "a.py"}),
        use("t2", "shot"),
    ),
    user(
        result("t.1:a", "no such file", status="error"),
        result("t2", {"json": {"size": [1, 2]}}, image(b"jpg", "jpeg"), document("page", b"%PDF", "pdf"), status="success"),
        {"searchResult": {"source": "web", "title": "T", "content": [{"text": "found"}], "citations": {"enabled": False}}},
        "go on",
        POINT,
    ),
    reply("Done.", POINT),
    user("Now?", {"newer": {"x": 1}}),
]  # fmt: skip

"""What does a message cost on its way in (decode) and out (render), in each dialect?"""

from __future__ import annotations

import json
from typing import Any

from budgets.table import Row, cpu

from foldline.bench.corpus import Talk
from foldline.core.log.messages import Message
from foldline.dialects import decode_all, get

MESSAGES = 2_000


def main(*, full: bool = False) -> list[Row]:
    """Measure a session of Chat Completions messages, and its conversion to Anthropic's."""
    del full
    natives = Talk().messages(MESSAGES)
    read = decode_all(natives, "openai-chat")
    converted = get("anthropic").render([(message, ()) for message in read]).messages
    parsed = cpu(lambda: [json.loads(json.dumps(native)) for native in natives])
    return [
        Row("json.loads(json.dumps(message))", parsed / len(natives) * 1e6, "µs/message"),
        *dialect("openai-chat", natives, read),
        *dialect("anthropic", converted, decode_all(converted, "anthropic")),
        Row(
            "render openai-chat as anthropic",
            cpu(lambda: get("anthropic").render([(message, ()) for message in read])) / len(read) * 1e6,
            "µs/message",
        ),
    ]


def dialect(name: str, natives: list[Any], read: list[Message]) -> list[Row]:
    """Time decoding and rendering in one dialect."""
    items = [(message, ()) for message in read]
    return [
        Row(f"decode {name}", cpu(lambda: decode_all(natives, name)) / len(natives) * 1e6, "µs/message"),
        Row(f"render {name}", cpu(lambda: get(name).render(items)) / len(natives) * 1e6, "µs/message"),
        Row(f"validate {name}", cpu(lambda: get(name).validate(natives)) / len(natives) * 1e6, "µs/message"),
    ]

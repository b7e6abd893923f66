"""Tell a refusal of the roles of messages from every other error: chat templates want them in turn."""

from __future__ import annotations

import re
from typing import Final

# The words of the templates of Mistral, Gemma, Llama and Qwen, as llama.cpp and vLLM pass them on, of
# Mistral's own API, and of servers that imitate Anthropic's.
_REFUSED: Final = re.compile(
    r"\broles? must alternate\b|\bmust alternate between\b|\bunexpected role '?\w+'? after role\b"
    r"|\bsystem message must be (?:at the beginning|the first|first)\b"
    r"|\bonly (?:system, )?user,? (?:and |, )?assistant(?:,? (?:and )?\w+)* roles are supported\b",
    re.IGNORECASE,
)
_READ_CHARS: Final = 20_000


def refuses_roles(text: str) -> bool:
    """Return whether an error says that user and assistant must speak in turn, or system only at the head."""
    return bool(_REFUSED.search(text[:_READ_CHARS]))

"""Stored message shapes: native messages <-> `Message`, rendering of views, and a strict validator each."""

from foldline.dialects.base import decode_all, decode_placed, detect, elements
from foldline.dialects.dialect import Dialect, get, names
from foldline.dialects.values import (
    ANTHROPIC,
    BEDROCK_CONVERSE,
    GEMINI,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    UI_MESSAGE,
    Problem,
    Rendered,
)

__all__ = [
    "ANTHROPIC",
    "BEDROCK_CONVERSE",
    "GEMINI",
    "OPENAI_CHAT",
    "OPENAI_RESPONSES",
    "UI_MESSAGE",
    "Dialect",
    "Problem",
    "Rendered",
    "decode_all",
    "decode_placed",
    "detect",
    "elements",
    "get",
    "names",
]

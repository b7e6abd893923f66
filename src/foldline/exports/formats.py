"""The formats that a session can be written in, by name."""

from __future__ import annotations

from foldline import dialects
from foldline.errors import InputError, did_you_mean
from foldline.exports.base import ExportWriter
from foldline.exports.claude_code import ClaudeCodeWriter
from foldline.exports.codex import CodexWriter
from foldline.exports.coop import CoopWriter
from foldline.exports.gencode import GenCodeWriter
from foldline.exports.klaude import KlaudeWriter
from foldline.exports.lists import list_writer
from foldline.exports.markdown import MarkdownWriter
from foldline.exports.moldable import MoldableWriter
from foldline.exports.opencode import OpenCodeWriter
from foldline.exports.pi import PiPlanWriter, PiWriter

OWN = "jsonl"
"""Foldline's own format, which holds the log itself; `transcripts.dump` writes it."""

_TOOLS: dict[str, type[ExportWriter]] = {
    "pi": PiWriter,
    "claude-code": ClaudeCodeWriter,
    "moldable": MoldableWriter,
    "codex": CodexWriter,
    "opencode": OpenCodeWriter,
    "klaude-code": KlaudeWriter,
    "coop": CoopWriter,
    "gencode": GenCodeWriter,
    "pi-plan": PiPlanWriter,
    "markdown": MarkdownWriter,
}


def formats() -> tuple[str, ...]:
    """Return the names of all formats, our own first, then those of other tools, then the dialects' lists."""
    return (OWN, *_TOOLS, *dialects.names())


def agents() -> tuple[str, ...]:
    """Return the names of the formats of other agents."""
    return tuple(name for name in _TOOLS if name != "markdown")


def writer_of(name: str) -> type[ExportWriter]:
    """Return the writer of a format; raises InputError for an unknown one."""
    if name in _TOOLS:
        return _TOOLS[name]
    if name in dialects.names():
        return list_writer(name)
    hint = did_you_mean(name, formats())
    raise InputError(f"unknown format {name!r}{hint}; known are {', '.join(formats())}")

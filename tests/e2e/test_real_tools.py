"""Other tools themselves open what we export: `make soak`, where npm reaches its registry.

`FOLDLINE_TOOLS_TABLE` names a file to which a line is added for each session: tool, version, session, form, outcome,
warnings, what is missing and why.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
from pathlib import Path

import pytest
from tests.exports.moving import export
from tests.support.real_tools import ANSWER, PROMPT, TOOLS, Workspace, provider
from tests.support.sent import missing_parts

from foldline.config import settings
from foldline.core.decide.presets import preset
from foldline.core.measure.tokens import OFFLINE
from foldline.executor import run_sync
from foldline.folding import FoldOptions, fold_once
from foldline.loading import from_records
from foldline.testing import serve_in_thread
from foldline.transcripts import read

pytestmark = pytest.mark.soak

NATIVE = [
    "claude-code-1", "claude-code-2", "claude-code-3", "codex-1", "codex-2", "codex-3", "copilot-1", "copilot-2",
    "gemini-1", "gemini-2", "opencode-1", "opencode-2", "pi-1", "pi-2",
]  # fmt: skip
PLAIN = ["claude-code-db89a81841d5", "claude-code-fc0ed4e3d016", "claude-code-ace3cc8ec1ee"]

# What a request may lack, and the warning or the tool's own rule that says so.
EXPLAINED = {
    r"(system|developer) Text": "system prompt left out|system messages became",
    r"assistant Thinking": "thinking left out",
    r".* ToolResult": "which Codex may shorten",
    r"assistant (Text|ToolCall)": "which pi keeps but does not send",
    r"checkpoint Text": "encrypted",
}
OWN_RULES = {  # what a tool does to any session, its own too; docs/transcripts.md lists it
    "codex": r"tool \(unanswered\) ToolResult",
    "opencode": r"tool \(unanswered\) ToolResult",
    "pi": r"tool \(unanswered\) ToolResult|assistant Thinking",
    "claude-code": r"assistant Thinking",
}


def load(recorded, name):
    path = recorded / "native" / f"{name}.jsonl"
    if path.exists():
        raw = path.read_bytes()
    else:
        raw = gzip.decompress(next(recorded.glob(f"sessions/*/{name}.jsonl.gz")).read_bytes())
    return from_records(read(io.BytesIO(raw), name=name), OFFLINE)


def folded(loaded):
    """The entries with a boundary that folds them to three fifths, at most 32,000 tokens."""
    size = sum(getattr(entry, "tokens", 0) for entry in loaded.entries)
    info = settings().model_info(None, 200_000, recorded=loaded.model)
    done = run_sync(
        fold_once(
            loaded, FoldOptions(preset("foldline"), info, target=max(4_000, min(32_000, size * 3 // 5)))
        )
    )
    return [*loaded.entries, *([done.boundary] if done.boundary is not None else [])]


def unexplained(lost, tool, warnings, loaded):
    """The kinds of parts that a request lacks although nobody said so."""
    sealed = "The summary is encrypted" in str([getattr(e, "checkpoint", "") for e in loaded])
    told = " ".join([*warnings, "encrypted" if sealed else ""])
    known = [kind for kind, why in EXPLAINED.items() if re.search(why, told)] + [OWN_RULES[tool]]
    return {kind: parts for kind, parts in lost.items() if not any(re.fullmatch(one, kind) for one in known)}


CASES = [(tool, name, view) for tool in sorted(TOOLS) for name in (*NATIVE, *PLAIN) for view in (False, True)]


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{'folded' if case[2] else 'whole'}"
)
def test_a_tool_goes_on_with_the_whole_conversation(case, recorded, tools, tmp_path):
    tool, name, view = case
    loaded = load(recorded, name)
    entries = folded(loaded) if view else loaded.entries
    model = provider()
    with serve_in_thread(model) as url:
        place = Workspace(tools / "node_modules" / ".bin" / TOOLS[tool].program, tmp_path, url)
        raw, told = export(
            entries,
            TOOLS[tool].form,
            view=view,
            cwd=str(place.project),
            title=loaded.title,
            model=loaded.model,
        )
        done = TOOLS[tool].resume(place, told, raw)

    asked = max(model.requests, key=lambda one: len(one.messages), default=None)
    refused = [one.refused for one in model.requests if one.refused] + (
        [] if ANSWER in done.out else [done.err[-2_000:]]
    )
    lost = missing_parts(entries, asked) if asked is not None else {}
    left = unexplained(lost, tool, told.warnings, entries)
    note(case, {"warnings": told.warnings, "refused": refused, "lost": lost, "left": left})
    assert refused == []
    assert asked is not None
    assert PROMPT in json.dumps(asked.messages[-3:])  # some tools say more behind it
    assert left == {}


def note(case, row):
    """Add what came of a session to the table that the environment asks for."""
    table = os.environ.get("FOLDLINE_TOOLS_TABLE")
    if not table:
        return
    outcome = next((kind for kind in ("refused", "left", "lost") if row[kind]), "whole")
    known = dict(zip(("tool", "session", "view"), case, strict=True))
    with Path(table).open("a") as out:
        out.write(json.dumps({**known, "outcome": outcome, **row}) + "\n")

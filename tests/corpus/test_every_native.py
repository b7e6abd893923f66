"""Every recorded session loads, whatever its format; compactions are counted by a raw scan of the JSON and compared."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import product

import pytest
from tests.support import corpus

from foldline.core.log.entries import Compacted
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import native_items
from foldline.dialects import get
from foldline.loading import from_records
from foldline.transcripts import CompactionRecord, FactRecord, MessageRecord, WarningRecord, read

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_collection")]

FORMATS = {
    "claude-code": "claude-code", "codex": "codex", "copilot": "copilot-cli", "gemini": "gemini-cli",
    "opencode": "opencode", "pi": "pi",
}  # fmt: skip
COUNTS = {"claude-code": 3, "codex": 3, "copilot": 2, "gemini": 2, "opencode": 2, "pi": 2}
NATIVE = [f"{agent}-{number}" for agent, count in COUNTS.items() for number in range(1, count + 1)]
ELSEWHERE = ("claude-code-1", "claude-code-2", "claude-code-3", "pi-1", "pi-2")  # folded in test_native.py
PLAIN = corpus.sessions(corpus.ROOT)


@pytest.fixture
def path(recorded, request):
    return recorded / "native" / f"{request.param}.jsonl"


def values(path):
    """The JSON values of a file, without any of our readers: its lines, or the one document."""
    raw = (gzip.decompress if path.suffix == ".gz" else bytes)(path.read_bytes())
    try:
        return [json.loads(line) for line in raw.splitlines() if line.strip()]
    except ValueError:
        return [json.loads(raw)]


def compactions(agent, found):
    """How many compactions the raw JSON has, by the mark that each agent leaves."""
    if agent == "opencode":
        parts = [part for message in found[0]["messages"] for part in message["parts"]]
        summaries = [message for message in found[0]["messages"] if message["info"].get("summary") is True]
        assert len(summaries) == sum(part["type"] == "compaction" for part in parts)
        return len(summaries)
    marks = {
        "pi": lambda row: row["type"] == "compaction",
        "codex": lambda row: row["type"] == "compacted",
        "claude-code": lambda row: row.get("subtype") == "compact_boundary" and not row["isSidechain"],
        "copilot": lambda row: row["type"] == "session.compaction_complete",
        "gemini": lambda row: "$set" in row,
    }
    return sum(marks[agent](row) for row in found)


def said(agent, found):
    """How many calls and results the raw JSON has outside of sub-agents."""
    counts = Counter()
    for row in found[0]["messages"] if agent in ("gemini", "opencode") else found:
        counts.update(_marks(agent, row))
    return counts["call"], counts["result"]


def _marks(agent, row):
    if agent == "gemini":
        calls = row.get("toolCalls", [])
        return [*("call" for _ in calls), *("result" for call in calls for _ in call["result"])]
    if agent == "opencode":
        tools = [part for part in row["parts"] if part["type"] == "tool"]
        return [
            *("call" for _ in tools),
            *("result" for part in tools if part["state"]["status"] in ("completed", "error")),
        ]
    if agent == "codex":
        kind = row["payload"].get("type", "") if row["type"] == "response_item" else ""
        names = {"function_call": "call", "custom_tool_call": "call"}
        return [names.get(kind, "result" if kind.endswith("_output") else "")]
    if agent == "copilot":
        requests = row["data"].get("toolRequests", []) if row["type"] == "assistant.message" else []
        return [
            *("call" for _ in requests),
            *(["result"] if row["type"] == "tool.execution_complete" else []),
        ]
    message = row.get("message") or {}
    content = message.get("content") if not row.get("isSidechain") and row["type"] != "progress" else []
    kinds = (
        [block.get("type") for block in content if isinstance(block, dict)]
        if isinstance(content, list)
        else []
    )
    names = {"tool_use": "call", "toolCall": "call", "tool_result": "result"}
    return [*(names.get(kind, "") for kind in kinds), "result" if message.get("role") == "toolResult" else ""]


@pytest.mark.parametrize("path", NATIVE, indirect=True)
def test_every_native_file_is_read_without_loss(path):
    agent = path.stem.rpartition("-")[0]
    found = list(read(path))
    raw = values(path)
    heard = [record for record in found if isinstance(record, MessageRecord)]
    assert next(record.data["format"] for record in found if isinstance(record, FactRecord)) == FORMATS[agent]
    assert [record for record in found if isinstance(record, WarningRecord)] == []
    assert sum(isinstance(record, CompactionRecord) for record in found) == compactions(agent, raw)
    beside = next(
        (r.data["messages"] for r in found if isinstance(r, FactRecord) and r.kind == "branches"), 0
    )
    calls = sum(len(record.message.calls) for record in heard)
    results = sum(len(record.message.results) for record in heard)
    if not beside:
        assert (calls, results) == said(agent, raw)
    assert all(record.at for record in heard if record.key and not record.message.injected)


@pytest.mark.parametrize("path", NATIVE, indirect=True)
def test_every_native_file_loads_and_its_view_is_valid(path):
    found = list(read(path))
    loaded = from_records(found, OFFLINE)
    boundaries = [entry for entry in loaded.entries if isinstance(entry, Compacted)]
    folds = [record for record in found if isinstance(record, CompactionRecord)]
    assert [entry.checkpoint.summary for entry in boundaries] == [record.summary for record in folds]
    assert [entry.receipt.tokens_before for entry in boundaries] == [record.tokens_before for record in folds]
    fold = ViewState(loaded.entries, counter=OFFLINE)
    assert list(corpus.check_valid(fold)) == []
    dialect = get(loaded.dialect)
    rendered = dialect.render(native_items(fold.view()), whole=True)
    assert dialect.validate(rendered.messages, rendered.system) == []
    assert loaded.model or loaded.format == "claude-code"


@pytest.mark.parametrize("path", [name for name in NATIVE if name not in ELSEWHERE], indirect=True)
def test_every_native_file_is_folded(path):
    loaded = from_records(read(path), OFFLINE)
    report = corpus.check_loaded(loaded, product(["foldline"], [0.5]), path.stem)
    assert report.wrong == []
    assert report.folds + len(report.floors) == 1


def test_codex_keeps_the_encrypted_part_of_its_compaction(recorded):
    loaded = from_records(read(recorded / "native" / "codex-1.jsonl"), OFFLINE)
    fold = ViewState(loaded.entries, counter=OFFLINE)
    rendered = get("openai-responses").render(native_items(fold.view()), whole=True)
    assert next(item["type"] for item in rendered.messages if "encrypted_content" in item) == "compaction"
    assert len(fold.quoted) == 5
    history = fold.boundary.receipt.origin["replacement_history"]
    assert history[-1]["type"] == "compaction"


@pytest.mark.skipif(
    not PLAIN, reason="no recorded sessions beside the checkout (../shared/data, or FOLDLINE_CORPUS)"
)
def test_every_plain_session_loads_and_every_compaction_is_a_boundary():
    total = Counter()
    for path in PLAIN:
        found = list(read(path))
        raw = values(path)
        folds = [record for record in found if isinstance(record, CompactionRecord)]
        assert [record for record in found if isinstance(record, WarningRecord)] == [], path.name
        assert len(folds) == sum(row.get("role") == "summary" for row in raw), path.name
        sizes = [row.get("pre_tokens") for row in raw if row.get("role") == "boundary"]
        assert [record.tokens_before for record in folds] == sizes, path.name
        heard = sum(isinstance(record, MessageRecord) for record in found)
        assert heard == sum(row.get("role") in ("system", "user", "assistant", "tool") for row in raw), (
            path.name
        )
        total.update(sessions=1, compactions=len(folds), messages=heard)
    assert total["sessions"] == 208
    assert total["compactions"] == 79

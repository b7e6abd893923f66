"""Every value of a session file replaced by one of a wrong type: the reader never fails, and reads on."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.synthetic import SYNTHETIC
from tests.transcripts import test_claude_code as claude
from tests.transcripts import test_codex as codex
from tests.transcripts import test_copilot as copilot
from tests.transcripts import test_gemini as gemini
from tests.transcripts import test_opencode as opencode
from tests.transcripts import test_pi as pi
from tests.transcripts.reading import lines, messages_in, records

from foldline.errors import FormatError

WRONG = (None, 3, "wrong", [3], {"wrong": [1]})

CODEX = [
    codex.META,
    codex.user("Be careful.", "developer"),
    codex.context(),
    codex.user("first"),
    codex.thought(),
    codex.answer("Looking."),
    codex.call("c1"),
    codex.counted(112),
    codex.output("c1", "a.py"),
    codex.item("custom_tool_call", call_id="c2", name="apply_patch", input="x"),
    codex.item("custom_tool_call_output", call_id="c2", output='{"metadata":{"exit_code":1}}'),
    codex.compacted("So far.", replacement_history=[codex.message("first"), codex.SEALED]),
    codex.line("event_msg", type="thread_rolled_back", num_turns=1),
    codex.user("last"),
]
COPILOT = [
    copilot.START,
    copilot.event("system.message", "s1", role="system", content="Rules."),
    copilot.event("user.message", "u1", content="See.", attachments=[{"mimeType": "image/png", "data": "aGk="}]),
    copilot.reply("Looking.", calls=("c1",), reasoningText="Hm.", reasoningOpaque="sealed", outputTokens=3),
    copilot.event(
        "tool.execution_complete", "r1", toolCallId="c1", success=True,
        result={"content": "a", "contents": [{"mimeType": "image/png", "data": "aGk="}]},
    ),
    copilot.event("session.compaction_start", "x1"),
    copilot.event("session.compaction_complete", "x2", success=True, summaryContent="S", preCompactionTokens=9),
    copilot.event("session.snapshot_rewind", "x3", upToEventId="x9"),
    copilot.user("last", "u9"),
]  # fmt: skip
GEMINI = [
    gemini.META,
    gemini.user("m1", [{"text": "go"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}]),
    gemini.gemini("m2", "Hm.", thoughts=[{"subject": "s", "description": "d"}], tokens=gemini.TOKENS,
                  toolCalls=[gemini.call("c1", "A")]),
    {"$set": {"messages": [gemini.user("s1", "summary"), gemini.gemini("m2", "Hm.")], "lastUpdated": "x"}},
    {"$rewindTo": "m9"},
    gemini.user("m3", "last"),
]  # fmt: skip
OPENCODE = {
    "info": opencode.INFO,
    "messages": [
        opencode.user("msg_1", opencode.text("a"), opencode.text("b", synthetic=True)),
        opencode.reply(
            "msg_2", opencode.STEP,
            {"type": "reasoning", "text": "Hm.", "metadata": {"openai": {"signature": "sealed"}}},
            opencode.tool("c1", output="A", time={"end": 1, "compacted": 2}, attachments=[{"mime": "image/png", "url": "data:,"}]),
            opencode.finish(), tokens=opencode.TOKENS, error={"name": "x"},
        ),
        opencode.asked("msg_3", tail_start_id="msg_1"),
        opencode.summary("msg_4", "msg_3", opencode.text("## Goal"), finish="stop"),
        opencode.user("msg_5", opencode.text("last")),
    ],
}  # fmt: skip
PI = [
    {**pi.HEADER, "version": 3},
    pi.at(pi.user("first"), "e1", None),
    pi.at(pi.answer({"type": "thinking", "thinking": "Hm.", "thinkingSignature": "s"}, pi.CALL, usage={"input": 5}), "e2", "e1"),
    pi.at(pi.RESULT, "e3", "e2"),
    pi.at({"type": "compaction", "summary": "S", "firstKeptEntryId": "e2", "tokensBefore": 5}, "e4", "e3"),
    pi.at({"type": "model_change", "modelId": "m-2"}, "e5", "e4"),
    pi.at(pi.user("last"), "e6", "e5"),
]  # fmt: skip


def claude_rows() -> list[Any]:
    file = claude.File()
    file.user("first")
    file.reply("m1", {"type": "thinking", "thinking": "Hm.", "signature": "s"}, claude.text("Looking."))
    file.reply("m1", {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}, stop="tool_use")
    file.user(
        [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x"}]}], key="r"
    )
    file.add("attachment", attachment={"type": "queued_command", "prompt": "on", "commandMode": "prompt"})
    metadata = {"preTokens": 7, "preservedSegment": {"headUuid": "r"}, "preservedMessages": {"uuids": ["r"]}}
    file.add("system", subtype="compact_boundary", compactMetadata=metadata)
    file.user("Summary", isCompactSummary=True)
    file.user("last")
    return file.rows


CLAUDE = claude_rows()


def rows(name: str):
    return [json.loads(line) for line in (SYNTHETIC / name).read_text().splitlines()]


FEW = (0, 1, 2, 3, 7, 9, 13, 14)  # of klaude-code's lines, one of each kind
KLAUDE, COOP = rows("klaude-code/events.jsonl"), rows("coop/coop_dm_signal_alice-uuid.jsonl")
GENCODE = json.loads((SYNTHETIC / "gencode.json").read_bytes())
MOLDABLE = json.loads((SYNTHETIC / "moldable.json").read_bytes())


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside of a JSON value."""
    if at:
        yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*at, key))


def replaced(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    """A copy of a JSON value with one value in it replaced."""
    value = copy.deepcopy(value)
    holder = value
    for key in at[:-1]:
        holder = holder[key]
    holder[at[-1]] = new
    return value


def as_lines(rows: list[Any]) -> bytes:
    return lines(*rows)


def as_document(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()


@pytest.mark.parametrize(
    ("whole", "write", "newest"),
    [
        (CODEX, as_lines, (len(CODEX) - 1,)),
        (COPILOT, as_lines, (len(COPILOT) - 1,)),
        (GEMINI, as_lines, (len(GEMINI) - 1,)),
        (OPENCODE, as_document, ("messages", 4)),
        (PI, as_lines, (len(PI) - 1,)),
        (CLAUDE, as_lines, (len(CLAUDE) - 1,)),
        ([KLAUDE[row] for row in FEW], as_lines, (len(FEW) - 1,)),
        (COOP, as_lines, (len(COOP) - 1,)),
        (GENCODE, as_document, ("messages", len(GENCODE["messages"]) - 1)),
        (MOLDABLE, as_document, ("messages", len(MOLDABLE["messages"]) - 1)),
    ],
    ids=[
        "codex",
        "copilot",
        "gemini",
        "opencode",
        "pi",
        "claude",
        "klaude-code",
        "coop",
        "gencode",
        "moldable",
    ],
)
def test_a_value_of_a_wrong_type_never_stops_the_reader(whole, write, newest):
    last = messages_in(records(write(whole)))[-1].message.text
    tried = 0
    for at in places(whole):
        for new in WRONG:
            try:
                parsed = records(write(replaced(whole, at, new)))
            except FormatError:
                # no session any more: its header, or the list that holds the messages
                assert len(at) <= 2, at
                continue
            except Exception as error:
                raise AssertionError(f"{type(error).__name__}: {error} with {new!r} at {at}") from error
            tried += 1
            if len(at) > 1 and at[: len(newest)] != newest:
                assert messages_in(parsed)[-1].message.text == last, (at, new)
    assert tried > 200

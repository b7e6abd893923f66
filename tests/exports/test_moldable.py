from __future__ import annotations

import io
import json

import msgspec
from tests.exports.moving import load
from tests.exports.sessions import anthropic_messages, entries
from tests.support.synthetic import SYNTHETIC

from foldline import dialects
from foldline.core.log.entries import Compacted
from foldline.core.measure.tokens import OFFLINE
from foldline.exports import ExportRequest, export_entries
from foldline.loading import from_records
from foldline.stores import MemoryStore
from foldline.transcripts import read

CONVERSATION = SYNTHETIC / "moldable.json"


def written(path, **wish):
    """The conversation, and what the export told."""
    out = io.BytesIO()
    result = export_entries(path, "s1", ExportRequest("moldable", **wish), out.write)
    return json.loads(out.getvalue()), result


def loaded(conversation):
    return load(json.dumps(conversation).encode())


def api_messages(conversation):
    """What Moldable sends: the summary, and the display messages from where its state says."""
    state = conversation["compaction"]
    return [state["summaryMessage"], *conversation["messages"][state["apiStartIndex"] :]]


def test_a_conversation_comes_back_as_it_was():
    path = from_records(read(CONVERSATION), OFFLINE).entries
    conversation, result = written(path, title="Build me a to-do app. Keep all data on this ma...")
    before = json.loads(CONVERSATION.read_bytes())
    changed = {key for key in before if before[key] != conversation[key]}
    assert changed == {"updatedAt"}
    assert result.session == before["id"]
    assert result.count == before["messageCount"]
    assert result.warnings == ()


async def test_its_state_survives_the_store():
    store = MemoryStore()
    path = from_records(read(CONVERSATION), OFFLINE).entries
    await store.append("c", path, seen=None)
    stored = [entry async for entry in store.path("c")]
    assert written(stored)[0]["compaction"] == json.loads(CONVERSATION.read_bytes())["compaction"]


def test_our_own_boundary_is_written_as_a_state():
    path = entries(fold_at=6, keep_from=5)
    boundary = next(entry for entry in path if isinstance(entry, Compacted))
    conversation, result = written(path)
    state = conversation["compaction"]
    # one less than Anthropic has: results stand in the part of their call
    assert [message["role"] for message in conversation["messages"]] == [
        "user", "assistant", "assistant", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert state["version"] == boundary.checkpoint.number
    assert state["apiStartIndex"] == 4
    assert state["summarizedRange"] == {"fromIndex": 0, "toIndex": 3, "messageCount": 4}
    assert state["summaryMessage"]["parts"][0]["text"] == boundary.checkpoint.text
    assert dialects.get("ui-message").validate(api_messages(conversation)) == []
    assert conversation["messageCount"] == result.count == 7
    assert conversation["title"] == "The parser"


def test_the_boundary_comes_back_where_it_stood():
    path = entries(fold_at=6, keep_from=5)
    conversation, _ = written(path)
    again = loaded(conversation)
    boundary = next(entry for entry in again.entries if isinstance(entry, Compacted))
    assert again.index[boundary.first_kept] == conversation["compaction"]["apiStartIndex"]
    before = next(entry for entry in path if isinstance(entry, Compacted))
    assert boundary.checkpoint.text == before.checkpoint.text  # no checkpoint within a checkpoint


def test_a_range_that_no_longer_fits_is_counted_anew():
    path = [
        msgspec.structs.replace(one, first_kept=None) if isinstance(one, Compacted) else one
        for one in from_records(read(CONVERSATION), OFFLINE).entries
    ]
    state = written(path)[0]["compaction"]
    assert state["apiStartIndex"] == 10
    assert state["summarizedRange"] == {"fromIndex": 0, "toIndex": 9, "messageCount": 10}


def test_a_view_holds_what_is_sent_and_nothing_before_it():
    conversation, _ = written(entries(fold_at=6, keep_from=5), view=True)
    assert conversation["compaction"]["apiStartIndex"] == 0
    assert conversation["compaction"]["summarizedRange"]["messageCount"] == 0
    assert len(conversation["messages"]) == 3
    assert dialects.get("ui-message").validate(api_messages(conversation)) == []


def test_without_a_boundary_there_is_no_state_and_a_system_prompt_is_named():
    conversation, result = written(
        entries([{"role": "system", "content": "Be brief."}, *anthropic_messages()], dialect="anthropic")
    )
    assert conversation["compaction"] is None
    assert any("system prompt" in warning for warning in result.warnings)
    assert result.place is not None
    assert result.place.endswith(f"{result.session}.json")

"""Sessions in the forms of coop, klaude-code and GenCode: what their readers make of them again."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.exports.moving import as_loaded, boundaries, content, export, load, reload
from tests.exports.sessions import chat_messages, entries
from tests.support.openers import rows

from foldline.core.ledger.facts.kinds import FileFact, Item, Ledger, ToolFact
from foldline.core.log.entries import Checkpoint, Compacted, Edit, Pruned, Receipt, Said
from foldline.core.log.log import chained
from foldline.core.log.messages import Media, Text, Thinking, ToolResult

FACTS = Ledger(
    items=(
        Item("user", "Mend it.", "e1"),
        Item("answer", "[Asked] Keep the grammar?\n[User answered] Yes", "e1"),
        Item("proposal", "1. Mend the parser", "e2"),
    ),
    files=(FileFact("a.py", "read"), FileFact("parser.py", "modified")),
    tools=(ToolFact("bash", 7, ("ran pytest",)),),
)


def path(**kept):
    """A session of everything; its boundary has facts, and says how many messages it folded."""
    found = entries(**kept)
    receipt = Receipt("threshold", tokens_before=54_321, messages_before=8, messages_after=3)
    return [
        msgspec.structs.replace(entry, ledger=msgspec.to_builtins(FACTS), receipt=receipt) if isinstance(entry, Compacted) else entry
        for entry in found
    ]  # fmt: skip


SHOWN = Text(
    "[Shown by the tool calls above]"
)  # klaude-code shows the images of results in a message of their own


def words(loaded):
    """Who said what, without thoughts, images and marks of failure, which not all three have a place for."""
    result = [
        (role, part)
        for role, part in content(loaded)
        if not isinstance(part, Thinking | Media) and part != SHOWN
    ]
    return [
        (role, (part.call_id, part.text) if isinstance(part, ToolResult) else part) for role, part in result
    ]


@pytest.mark.parametrize("form", ["klaude-code", "coop"])
def test_a_boundary_is_the_tools_own_and_keeps_what_it_kept(form, tmp_path):
    original = path(fold_at=6, keep_from=4)
    raw, result = export(original, form)
    again = reload(raw, result, tmp_path)

    assert [one[:2] for one in boundaries(again)] == [one[:2] for one in boundaries(as_loaded(original))]
    (boundary,) = [entry for entry in again.entries if isinstance(entry, Compacted)]
    kept = next(entry for entry in again.entries if entry.id == boundary.first_kept)
    assert "Like this picture" in kept.message.text


def test_klaude_is_told_places_lines_and_files():
    raw, _ = export(path(fold_at=6, keep_from=4), "klaude-code")
    items = rows(raw)
    (fold,) = [row["data"] for row in items if row["type"] == "CompactionEntry"]

    assert items[fold["first_kept_line"]]["data"]["parts"][0]["text"] == "Like this picture:"
    assert fold["first_kept_index"] == fold["first_kept_line"]
    assert fold["details"] == {"read_files": ["a.py"], "modified_files": ["parser.py"]}


def test_gencode_is_told_what_a_summary_covers_and_what_it_knows():
    raw, _ = export(path(fold_at=6, keep_from=4), "gencode", view=True)
    document = json.loads(raw)
    (summary,) = document["summaries"]

    assert summary["coveringMessages"] == [1, 6]
    assert summary["keyDecisions"] == ["[Asked] Keep the grammar?\n[User answered] Yes", "1. Mend the parser"]
    assert summary["filesModified"] == ["parser.py"]
    assert summary["toolsUsed"] == [{"tool": "bash", "count": 7, "notableUses": ["ran pytest"]}]
    assert document["messages"][0]["content"].startswith("[Earlier conversation - 6 messages summarized]\n\n")
    assert document["fullMessageCount"] == document["metadata"]["fullMessageCount"] == 6 + 4
    assert document["metadata"]["messageCount"] == len(document["messages"])


def test_gencode_keeps_the_summaries_before_and_marks_what_was_blanked():
    found = path(fold_at=3, keep_from=1)
    leaf, kept = found[-1], [entry for entry in found if isinstance(entry, Said)]
    results = next(entry for entry in kept if entry.message.results)
    blank = ToolResult("toolu_1", (Text("[Old tool result cleared]"),))
    second = Compacted(
        id="",
        parent=None,
        checkpoint=Checkpoint("Second.", "Second.", number=2),
        receipt=Receipt("threshold", messages_before=8, messages_after=7),
        first_kept=kept[1].id,
        edits=(Edit(results.id, 0, "blanked", blank),),
    )
    raw, _ = export([*found, chained(second, leaf.id)], "gencode", view=True)
    document = json.loads(raw)

    assert [one["content"].startswith("Second") for one in document["summaries"]] == [False, True]
    blocks = [b for m in document["messages"] if isinstance(m["content"], list) for b in m["content"]]
    [cleared] = [block for block in blocks if block.get("pruned") is True]
    assert cleared["toolUseId"] == "toolu_1"
    assert cleared["prunedAt"].endswith("Z")


@pytest.mark.parametrize("form", ["gencode", "klaude-code", "claude-code"])
def test_a_view_s_edit_of_a_system_message_is_written(form):
    messages = [{"role": "user", "content": "Go."}, {"role": "developer", "content": "long " * 500}]
    found = entries([*messages, {"role": "assistant", "content": "Yes."}], dialect="openai-chat", title=None)
    short = Edit(found[1].id, 0, "elided", Text("short"))
    pruned = Pruned("", None, Receipt("threshold"), (short,))
    raw, _ = export([*found, chained(pruned, found[-1].id)], form, view=True)

    assert b"long long" not in raw
    assert b"short" in raw


def test_an_import_of_gencodes_keeps_its_count_and_its_summary():
    shown = {
        "role": "system",
        "content": "[Earlier conversation - 100 messages summarized]\n\nWe planned berths.",
    }
    result = {
        "id": "sum-1",
        "type": "compaction",
        "coveringMessages": [1, 100],
        "content": "We planned berths.",
    }
    rest = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "Gladly."}]
    given = {
        "metadata": {"id": "s", "title": "T", "fullMessageCount": 102},
        "messages": [shown, *rest],
        "summaries": [result],
        "fullMessageCount": 102,
    }
    loaded = load(json.dumps(given, indent=1).encode())
    for view in (False, True):
        document = json.loads(export(loaded.entries, "gencode", view=view)[0])
        assert document["fullMessageCount"] == 102
        assert [one["coveringMessages"] for one in document["summaries"]] == [[1, 100]]
        assert len(document["messages"]) == 3


def test_a_whole_history_for_gencode_names_the_boundaries_that_it_lacks():
    _, result = export(path(fold_at=6, keep_from=4), "gencode")

    assert "boundaries left out (GenCode's file would lack what they folded) (1)" in result.warnings


@pytest.mark.parametrize("form", ["klaude-code", "coop", "gencode"])
def test_a_chat_of_another_dialect_is_carried(form, tmp_path):
    raw, result = export(entries(chat_messages(), dialect="openai-chat", title=None), form)
    again = reload(raw, result, tmp_path)

    assert [part.text for _, part in content(again) if hasattr(part, "call_id")] == ["a.py", "no JSON"]
    assert [part.text for _, part in content(again) if isinstance(part, Text)][-1] == "One file: a.py."
    assert form == "coop" or "clock struck ten" in raw.decode()
    assert form != "coop" or "system messages left out (the agent adds its own) (2)" in result.warnings


@pytest.mark.parametrize("keep_from", [1, 4])
def test_pi_as_in_its_plan_counts_the_messages_that_it_kept(keep_from):
    original = path(fold_at=6, keep_from=keep_from)
    raw, result = export(original, "pi-plan")
    again = load(raw)
    (fold,) = [row for row in rows(raw) if row["type"] == "compaction"]

    assert not any("id" in row for row in rows(raw)[1:])
    assert fold["keepLastMessages"] == {1: 6, 4: 2}[keep_from]
    assert words(again) == words(as_loaded(original))
    assert boundaries(again) == boundaries(as_loaded(original))
    assert "title left out (1)" in result.warnings


def test_pi_as_in_its_plan_begins_a_view_with_its_compaction():
    again = load(export(path(fold_at=6, keep_from=4), "pi-plan", view=True)[0])

    assert "Mend it." in again.entries[0].checkpoint.text
    assert words(again)[0][1] == Text("Like this picture:")

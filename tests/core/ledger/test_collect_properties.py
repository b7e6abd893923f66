"""Facts stand in the entries they cite; no input makes `collect` raise."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.core.ledger.collect import collect
from foldline.core.ledger.facts import (
    commands,
    constraints,
    decisions,
    errors,
    files,
    open_work,
    requests,
    tools,
)
from foldline.core.ledger.facts.calls import uses
from foldline.core.ledger.merge import cited, merge
from foldline.core.log.entries import Said
from foldline.core.log.messages import Media, Message, Opaque, Text, Thinking, ToolCall, ToolResult

OF_ENTRIES = (requests, constraints, decisions)
OF_CALLS = (files, commands, errors, tools)
KINDS = (*OF_ENTRIES, *OF_CALLS, open_work)


def taken(kind: Any, entries: list[Said]) -> Any:
    """The facts of one kind that the entries hold."""
    if kind is open_work:
        return kind.collect(entries, uses(entries))
    return kind.collect(uses(entries) if kind in OF_CALLS else entries)


WORDS = st.sampled_from(
    "Never touch src/a.py.|Actually use tabs.|Use spaces.|You may now push.|We decided to use SQLite instead of Redis.|"
    "Next I'll test it.|- [ ] open item|- [x] done item|<system-reminder>Always x.</system-reminder>|<task>|</task>|"
    "Exit code 1\nerror: boom in /tmp/x1|3 passed|Exit code: 0|Command exited with code 2|*** Begin Patch\n*** Add File: n.md\n+hi|"
    "--- a/q.py\n+++ b/q.py\n+z = 1|rm a.py && mv b.py c.py|cd web; cat x.ts > y.ts|pytest -q|'\"$(`|\ud800|\x00|  |```|不要修改它。|"
    "<tool_use_error>No match</tool_use_error>|The user doesn't want to proceed".split("|")
)
TEXT = st.lists(WORDS | st.text(max_size=8), max_size=4).map(" ".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    "path file_path filePath paths files command cmd script argv old_string new_string oldText newText content edits todos plan items "
    "status text step taskId subject source destination patch input workdir query url".split()
)
NAMES = st.sampled_from("Read Edit Bash shell apply_patch TodoWrite TaskUpdate TaskCreate move_file delete_file zorp update_plan".split()) | st.text(max_size=3)  # fmt: skip
ARGUMENTS = st.dictionaries(KEYS | st.text(max_size=3), JSON, max_size=4) | TEXT
IDS = st.sampled_from(["c1", "c2", "c3", ""])
PARTS = st.one_of(
    TEXT.map(Text),
    TEXT.map(Thinking),
    st.builds(ToolCall, IDS, NAMES, ARGUMENTS),
    st.builds(
        ToolResult,
        IDS,
        st.lists(TEXT.map(Text) | st.just(Media("image")), max_size=2).map(tuple),
        st.booleans(),
    ),
    st.just(Opaque("anthropic", "x", None)),
)
MESSAGES = st.builds(
    Message, st.sampled_from(["system", "developer", "user", "assistant", "tool"]), st.lists(PARTS, max_size=4).map(tuple), injected=st.booleans()
)  # fmt: skip


def said(messages: list[Message]) -> list[Said]:
    return [Said(f"e{i}", f"e{i - 1}" if i else None, message, f"e{i}") for i, message in enumerate(messages)]


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def words_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, inner in value.items() for text in (str(key), *words_of(inner))]
    if isinstance(value, list):
        return [text for inner in value for text in words_of(inner)]
    return [str(value)]


def written(entries: list[Said], ids: tuple[str, ...]) -> str:
    texts: list[str] = []
    for entry in entries:
        for part in entry.message.parts if entry.id in ids else ():
            if isinstance(part, ToolCall):
                texts += [part.name, *words_of(part.arguments)]
            elif isinstance(part, Text | ToolResult):
                texts.append(part.text)
    return flat(" ".join(texts))


def stands(text: str, entries: list[Said], ids: tuple[str, ...]) -> bool:
    return all(flat(line.removesuffix("…")) in written(entries, ids) for line in text.split("\n"))


ENTRIES = st.lists(MESSAGES, max_size=8).map(said)


@settings(max_examples=80, deadline=None)
@given(ENTRIES)
def test_collecting_and_merging_never_raise(entries: list[Said]) -> None:
    for kind in KINDS:
        facts = taken(kind, entries)
        assert kind.merge((), facts) == facts
        kind.merge(facts, taken(kind, entries[2:]))
        assert msgspec.to_builtins(facts) is not None


@settings(max_examples=80, deadline=None)
@given(ENTRIES)
def test_facts_stand_in_the_entries_they_cite(entries: list[Said]) -> None:
    for request in requests.collect(entries):
        assert stands(request.text, entries, (request.entry,))
    for constraint in constraints.collect(entries):
        assert stands(constraint.text, entries, (constraint.entry,))
    for decision in decisions.collect(entries):
        assert stands(decision.text, entries, (decision.entry,))
    for command in commands.collect(uses(entries)):
        assert stands(command.command, entries, command.entries)
        assert stands(command.outcome, entries, command.entries)
    for error in errors.collect(uses(entries)):
        assert stands(error.text, entries, error.entries)
    for file in files.collect(uses(entries)):
        assert all(stands(note, entries, file.entries) for note in file.notes)
        assert stands(file.path.rsplit("/", 1)[-1], entries, file.entries)


@settings(max_examples=60, deadline=None)
@given(ENTRIES)
def test_requests_and_constraints_come_from_people_only(entries: list[Said]) -> None:
    people = {entry.id for entry in entries if entry.message.is_prompt}
    assert {fact.entry for fact in (*requests.collect(entries), *constraints.collect(entries))} <= people


@settings(max_examples=60, deadline=None)
@given(ENTRIES, st.integers(0, 8))
def test_merging_a_range_again_changes_nothing(entries: list[Said], cut: int) -> None:
    for kind in (requests, constraints, files, commands, errors, decisions):
        old, new = taken(kind, entries[:cut]), taken(kind, entries[cut:])
        once = kind.merge(old, new)
        assert kind.merge(once, new) == once


@settings(max_examples=40, deadline=None)
@given(ENTRIES, st.integers(0, 8))
def test_whole_ledgers_merge(entries: list[Said], cut: int) -> None:
    old, new = collect(entries[:cut]), collect(entries[cut:])
    once = merge(old, new)
    assert once.messages == len(entries)
    if new.requests or new.files or new.errors:
        assert merge(once, new) == once
    assert cited(once) <= {entry.id for entry in entries}

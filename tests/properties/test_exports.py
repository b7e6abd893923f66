"""Whatever a log holds: its view, written for another tool, opens there by that tool's rules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.exports.moving import export, load
from tests.support.logs import logs, view_of
from tests.support.openers import open_in_claude_code, open_in_codex, open_in_opencode, open_in_pi

from foldline.core.log.entries import Said
from foldline.core.view_items import MessageItem
from foldline.exports import formats

OPEN = {
    "pi": lambda raw: open_in_pi(raw, rising=False),
    "claude-code": lambda raw: open_in_claude_code(raw, rising=False),
    "codex": lambda raw: open_in_codex(raw, rising=False),
    "opencode": open_in_opencode,
}


@pytest.mark.parametrize("form", sorted(OPEN))
@settings(max_examples=12)
@given(made=logs())
def test_the_view_of_any_log_opens_in_the_other_tool(form, made):
    _, log = made
    raw, told = export(log.path(), form, view=True)

    if raw:
        OPEN[form](raw)
    if told.count:
        assert load(raw).warnings == []


@pytest.mark.parametrize("form", sorted(OPEN))
@settings(max_examples=12)
@given(made=logs())
def test_the_users_words_in_the_view_are_in_the_file(form, made):
    _, log = made
    raw, told = export(log.path(), form, view=True)
    found = [e.message.text for e in load(raw).entries if isinstance(e, Said)] if told.count else []
    for item in view_of(log).view():
        if isinstance(item, MessageItem) and item.entry.message.is_prompt and not item.edits:
            assert any(item.entry.message.text.strip() in text for text in found)


@pytest.mark.parametrize("form", [form for form in formats() if form != "jsonl"])
@settings(max_examples=8)
@given(made=logs())
def test_any_history_can_be_written_in_every_form(form, made):
    _, log = made
    raw, told = export(log.path(), form)

    assert raw.endswith(b"\n") or raw == b""
    calls = sum(len(entry.message.calls) for entry in log.path() if isinstance(entry, Said))
    answers = calls  # each by a result of the same message, or by a note, is written alone at most
    assert told.count <= 3 * len(log.path()) + calls + answers

"""Sizes over generated logs: what a view says it takes is what is sent."""

from __future__ import annotations

from hypothesis import given
from tests.support.logs import logs, view_of
from tests.support.talk import as_sent

from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.core.view_items import MessageItem


@given(logs())
def test_every_item_takes_what_its_message_counts_with_all_edits_made(made):
    _, log = made
    for item in view_of(log).view():
        counted = message_tokens(as_sent(item), OFFLINE)
        if isinstance(item, MessageItem) or item.kind != "unanswered":
            assert item.tokens == counted
        else:
            assert item.tokens == counted + 4 * (len(item.message.parts) - 1)


@given(logs())
def test_no_edit_of_a_boundary_is_lost_by_a_repair(made):
    _, log = made
    fold = view_of(log)
    listed = {(edit.entry, edit.part) for found in fold.edits.values() for edit in found}
    shown = {edit.entry: edit for item in fold.view() if isinstance(item, MessageItem) for edit in item.edits}
    for item in fold.view():
        if isinstance(item, MessageItem):
            parts = {(edit.entry, edit.part) for edit in item.edits}
            assert {pair for pair in listed if pair[0] == item.entry.id} <= parts
    assert all(edit.entry in {e.id for e in log.path()} for edit in shown.values())

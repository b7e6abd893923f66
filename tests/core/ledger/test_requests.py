"""What the user asked, over several ranges."""

from __future__ import annotations

import pytest

from foldline.core.ledger.facts import requests
from foldline.core.ledger.facts.kinds import RequestFact
from foldline.core.ledger.page.goal import first_and_newest
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text


def test_one_request_for_each_entry() -> None:
    first, second = RequestFact("Build it.", "e1"), RequestFact("Test it.", "e2")
    assert requests.merge((first,), (first, second)) == (first, second)
    assert requests.merge((), (second,)) == (second,)


def test_requests_read_back_from_a_checkpoint_cite_no_entry_and_all_stay() -> None:
    old = (RequestFact("Build it.", ""), RequestFact("Test it.", ""))
    new = RequestFact("Ship it.", "e3")
    assert requests.merge(old, (new,)) == (*old, new)


def said(role, text, id_):
    return Said(id_, None, Message(role, (Text(text),)), "")


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("continue", True),
        ("Yes please!", True),
        ("ok, go ahead", True),
        ("/them", True),
        ("/mode plan", True),
        ("<command-name>/exit</command-name>", True),
        ("weiter", True),
        ("继续", True),
        ("Yes, and rename it to limits.py.", False),
        ("/home/me/notes.md is wrong", False),
        ("Fix it", False),
        ("<image name=[Image #1]>\n</image>", True),
        ("<image name=[Image #1] />\n<image name=[Image #2]></image>", True),
        ("<image name=[Image #1]> </image> Make it like this", False),
        ('<task id="7">Fix the login bug in auth.py</task>', False),
        ('<message from="alice">Never touch the billing table</message>', False),
    ],
)
def test_is_bare(text, bare):
    assert requests.is_bare(text) is bare


def test_a_bare_answer_is_shown_with_its_question():
    entries = [
        said("user", "Build the importer.", "u1"),
        said("assistant", "Done. Shall I run the tests?", "a1"),
        said("user", "yes", "u2"),
    ]
    facts = requests.collect(entries)
    assert facts[1].question == "Shall I run the tests?"
    assert requests.shown(facts[1]) == 'yes (answering: "Shall I run the tests?")'
    assert [fact.text for fact in requests.substantial(facts)] == ["Build the importer."]
    assert first_and_newest(facts, 200) == [
        'Newest request: yes (answering: "Shall I run the tests?")',
        "First request: Build the importer.",
    ]


def test_bare_requests_count_only_where_there_is_no_other():
    bare, real = RequestFact("continue", "e1"), RequestFact("Mend the importer.", "e2")
    assert first_and_newest((bare, real, bare), 200) == ["First request: Mend the importer."]
    assert first_and_newest((bare,), 200) == ["First request: continue"]


def test_a_gist_leaves_out_courtesies_and_what_stands_elsewhere():
    text = "Very good, thanks. Never push. Move the port to 9090 in all the deploy files. Then tell me what is left to do."
    assert requests.gist(text, 60) == "Never push. Move the port to 9090 in all the deploy files."
    assert requests.gist(text, 200, ["Never push."]).startswith("Move the port")
    assert requests.gist("Never push. Thanks!", 200, ["Never push."]) == ""

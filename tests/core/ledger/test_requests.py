"""What the user asked, over several ranges."""

from __future__ import annotations

from foldline.core.ledger import requests
from foldline.core.ledger.facts import RequestFact


def test_one_request_for_each_entry() -> None:
    first, second = RequestFact("Build it.", "e1"), RequestFact("Test it.", "e2")
    assert requests.merge((first,), (first, second)) == (first, second)
    assert requests.merge((), (second,)) == (second,)


def test_requests_read_back_from_a_checkpoint_cite_no_entry_and_all_stay() -> None:
    old = (RequestFact("Build it.", ""), RequestFact("Test it.", ""))
    new = RequestFact("Ship it.", "e3")
    assert requests.merge(old, (new,)) == (*old, new)

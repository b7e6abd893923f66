"""What was pasted into a message is no request, and no step of the work."""

from __future__ import annotations

import pytest
from tests.core.ledger.session_samples import rough_count

from foldline.core.ledger.collect import collect
from foldline.core.ledger.facts.requests import gist
from foldline.core.ledger.page.page import compose
from foldline.core.ledger.text.pasted import is_pasted
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text

PASTED = [
    "    at Router.handle (/srv/app/router.ts:116:26)",
    "at async loadRows (file:///srv/app/rows.mjs:8:3)",
    '  File "/srv/app/rows.py", line 12, in load',
    "─────────────────────── status ───────",
    "⠇ Working... (esc to interrupt)",
    "Node.js v23.4.0",
    "'/var/folders/49/x/T/TemporaryItems/Screenshot 2025-11-21 at 01.27.21.png'",
]
TYPED = [
    "Look at src/rows.py:12, please.",
    "at the end of the day the importer must be fast",
    "Use the port 8080 at /srv/app.",
    "Mend the table | it has three columns",
    "I run Node.js v22 here.",
    "Save the picture as docs/plan.png",
]


@pytest.mark.parametrize("line", PASTED)
def test_what_no_person_types(line: str) -> None:
    assert is_pasted(line)


@pytest.mark.parametrize("line", TYPED)
def test_what_a_person_types(line: str) -> None:
    assert not is_pasted(line)


def test_a_request_is_told_without_what_was_pasted_into_it() -> None:
    text = "It crashed when I chose a theme.\n" + "\n".join(PASTED[:2]) + "\nInvalid themes must never crash."
    assert gist(text, 400) == "It crashed when I chose a theme. Invalid themes must never crash."
    answered = Message("assistant", (Text("The theme is checked now."),))
    entries = [Said("e0", None, Message("user", (Text(text),)), ""), Said("e1", None, answered, "")]
    page = compose(collect(entries), 800, rough_count).text.partition("## Work Log")[2]
    assert "Router.handle" not in page
    assert "rows.mjs" not in page


def test_a_request_of_pasted_lines_alone_stands_as_it_is() -> None:
    assert gist(PASTED[0].strip(), 400) == PASTED[0].strip()

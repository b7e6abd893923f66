"""What was pasted into a message is no rule of the user's."""

from __future__ import annotations

import pytest

from foldline.core.ledger.facts import constraints
from foldline.core.ledger.text.pasted import is_pasted, typed
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


RULE = "Never push to main."


@pytest.mark.parametrize(
    "pasted",
    [
        "diff --git a/a.md b/a.md\n@@ -1,3 +1,3 @@\n-Never use tabs.\n+Always use tabs.\n Never use spaces.",
        "+ Themes must never crash the app\n- Themes must never stop the app",
        "116 - Invalid themes must never crash\n117   the app",
        '{"type": "error", "message": "each call must have\n a result.\n Calls must never stand alone."}',
        'Error: 400 {"type":"error","error":{"message":"Each `tool_use`\n block must have a `tool_result` block."}}',
        "2026-01-02 10:11:12 You must never run this as root.",
        "WARNING: you must never run this as root.",
        "npm WARN deprecated: you must never use this.",
        "ValueError: the port must be a number",
        "\u23fa I will always ask before I push.\n  And I must never forget it.",
        "root@host:~# you must never run this",
        "src/app.ts:12:5 - values must never be null",
        "> We must always ask.",
    ],
)
def test_pasted_text_holds_no_rule_and_hides_none(pasted: str) -> None:
    message = Message("user", (Text(f"Look at this:\n\n{pasted}\n\n{RULE}"),))
    assert [fact.text for fact in constraints.standing([Said("e", None, message, "")])] == [RULE]


@pytest.mark.parametrize(
    "text",
    [
        "- Never push to main.\n- Use tabs.",
        "1 - use tabs\n2 - no emojis",
        "+ Use tabs.\n+ No emojis.",
        'Send {"dry_run": true} with every call, never without it.',
        "note: always use tabs",
        "At 10:30 we deploy, never later.",
    ],
)
def test_what_a_person_lists_or_quotes_in_a_line_stays(text: str) -> None:
    assert typed(text) == text

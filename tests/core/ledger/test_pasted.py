"""What was pasted into a message is no rule of the user's, and hides none in another paragraph."""

from __future__ import annotations

import re

import pytest

from foldline.core.checkpoint.prompts import FAMILIES
from foldline.core.decide.policy import Prompt
from foldline.core.ledger.facts import constraints
from foldline.core.ledger.text.origin import typed
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text

RULE = "Never push to main."
RUN = """=== Step 1: Resolve ===
✓ 14 packages resolved
  "kiosk": "berlin-4",
  "retries": 3
state/kiosk-berlin-4.json
Uploaded at 10:22:31

Names must be unique so that kiosks keep their place.
checksum: 9f86d081884c7d659a2feaa0c55ad015"""


def held(text: str) -> list[str]:
    return [fact.text for fact in constraints.standing([Said("e", None, Message("user", (Text(text),)), "")])]


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
        "    at Router.handle (/srv/app/router.ts:116:26)\nRoutes must always have a name.",
        '  File "/srv/app/rows.py", line 12, in load\nNever load rows.',
        "──────────── status ───\nAlways save.",
        "```\nNever load rows.\n```",
    ],
)
def test_pasted_text_holds_no_rule_and_hides_none(pasted: str) -> None:
    assert held(f"Look at this:\n\n{pasted}\n\n{RULE}") == [RULE]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pasted_checkpoint_states_no_rule(family: Prompt) -> None:
    shape = re.sub(r"^(- |1\. ).*", r"\1Never use tabs.", FAMILIES[family], flags=re.MULTILINE)
    said = shape[shape.index("## ") :].replace("]\n", "] We must always ask.\n")
    assert held(f"{RULE} Here is where I was:\n\n{said}") == [RULE]
    assert held(f"{said}\n\n## What I want\n{RULE}") == [RULE]


def test_a_list_under_the_heading_of_a_summary_states_no_rule() -> None:
    listed = "## Constraints & Preferences\n\n- Never use tabs.\n- Always ask.\n\nAnd never use spaces."
    assert held(f"{RULE}\n\n{listed}\n\n# Now\n\nUse at most 3 sentences per answer.") == [
        RULE,
        "Use at most 3 sentences per answer.",
    ]
    assert held(f"## Goal\nMend it.\n\n## Rules\n- {RULE}\n\n## Plan\n1. Look.") == [RULE]
    assert held("## Conversation\n\n[User] Never use tabs.\n- edit a.py") == []


def test_of_a_message_that_is_mostly_output_what_stands_around_it_is_typed() -> None:
    assert held(f"It still says three retries. {RULE}\n{RUN}") == [RULE]
    assert held(f"{RUN}\n\n{RULE}") == [RULE]
    assert held(f"{RUN}\n{RULE}") == []


@pytest.mark.parametrize(
    "text",
    [
        "- Never push to main.\n- Use tabs.",
        "1 - use tabs\n2 - no emojis",
        "+ Use tabs.\n+ No emojis.",
        'Send {"dry_run": true} with every call, never without it.',
        "note: always use tabs",
        "At 10:30 we deploy, never later.",
        "Look at src/rows.py:12, please.",
        "at the end of the day the importer must be fast",
        "Please do these:\n- Create the kiosk page.\n- Delete the old tests.\n- Rename Rates to Prices.\n- Copy the readme.\n- Never push.",
        "The plan:\n1. read the rates\n2. round them, as before\n3. write them\n\nUse tabs. Never call the bank.",
    ],
)
def test_what_a_person_lists_or_quotes_in_a_line_stays(text: str) -> None:
    assert typed(text) == text
